"""Any audio file, path or binary stream -> mono float32 sound at the rate that is asked for."""

from asr.audio.columns import METER, Channel, Meter
from asr.audio.decoders import AudioInfo, Source
from asr.audio.reading import LONG, Recording, load, load_channels, probe, sounds

__all__ = [
    "LONG",
    "METER",
    "AudioInfo",
    "Channel",
    "Meter",
    "Recording",
    "Source",
    "load",
    "load_channels",
    "probe",
    "sounds",
]
