"""Any audio file, path or binary stream -> mono float32 sound at the rate that is asked for.

libsndfile decodes first (WAV, FLAC, Ogg, MP3, AIFF, AU, NIST, CAF, ...), FFmpeg through PyAV what
it refuses (m4a, mp4, webm, wma, ...). Sound is decoded, mixed down and resampled block by block,
so memory follows what a file really holds, never what its header says.
"""

from __future__ import annotations

import io
import itertools
import logging
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, TypeAlias

import numpy as np
import soundfile
import soxr
import torch

from asr.errors import InputError
from asr.types import Seconds, Waveform

if TYPE_CHECKING:
    from av.audio.stream import AudioStream
    from av.container import InputContainer

Source: TypeAlias = str | Path | BinaryIO
Channel: TypeAlias = Literal["mix"] | int

LOWEST_RATE, HIGHEST_RATE = 1_000, 384_000
_BLOCK = 1 << 20  # values (frames x channels) decoded at a time
_LOUDEST = 8.0  # above this, float samples are not in [-1, 1] but in units of their own
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AudioInfo:
    """What a file says of itself; ``duration`` is None where only decoding would tell.

    A film's ``duration`` is that of its longest track.
    """

    sample_rate: int
    channels: int
    duration: Seconds | None


@dataclass
class _Decoder:
    """An open file: its header, and a one-time iterator over blocks (frames, channels) float32."""

    info: AudioInfo
    blocks: Iterator[np.ndarray]


def load(source: Source, rate: int, *, channel: Channel = "mix", id: str = "") -> Waveform:
    """One mono :class:`Waveform` (L,) at ``rate`` Hz; ``channel`` "mix" (the mean) or an index.

    A file of zero samples gives an empty waveform. Raises :class:`InputError`, one line that names
    the file and the reason, for anything that cannot be decoded to its end.
    """
    name = _name(source, id)
    with _opened(source, name) as decoder:
        channels = decoder.info.channels
        if channel == "mix":
            if channels > 1:
                _log.info("%s: %d channels mixed to one", name, channels)
            picks: list[Channel] = ["mix"]
        elif 0 <= channel < channels:
            picks = [channel]
        else:
            raise InputError(
                f"{name}: has no channel {channel} (it has {channels}, counted from 0)"
            )
        return _render(decoder, picks, rate, source, name, id)[0]


def load_channels(source: Source, rate: int, *, id: str = "") -> list[Waveform]:
    """Every channel of a file by itself, each (L,) at ``rate`` Hz. Raises :class:`InputError`."""
    name = _name(source, id)
    with _opened(source, name) as decoder:
        return _render(decoder, list(range(decoder.info.channels)), rate, source, name, id)


def probe(source: Source) -> AudioInfo:
    """Rate, channels and duration as the header has them. Raises :class:`InputError`.

    Nothing is decoded, so a file that probes well may still be damaged further in.
    """
    with _opened(source, _name(source)) as decoder:
        return decoder.info


def _render(
    decoder: _Decoder, picks: list[Channel], rate: int, source: Source, name: str, id: str
) -> list[Waveform]:
    info = decoder.info
    if not LOWEST_RATE <= info.sample_rate <= HIGHEST_RATE:
        raise InputError(
            f"{name}: sample rate {info.sample_rate} Hz is not one of sound "
            f"({LOWEST_RATE} to {HIGHEST_RATE} Hz)"
        )
    if info.sample_rate < rate:
        _warn_narrow(info.sample_rate, rate)
    path = str(source) if isinstance(source, str | Path) else ""
    # Packed together these are the columns of one stream (frames, picks), resampled along time.
    stream = _resampler(info.sample_rate, rate, len(picks))
    pieces, unusable = [], 0
    energy, mixed = np.zeros(info.channels), 0.0
    for block in decoder.blocks:
        finite = np.isfinite(block)
        if not finite.all():
            unusable += int(finite.size - finite.sum())
            block = np.where(finite, block, np.float32(0))
        # Beyond +-2^16 squares and sums would overflow float32; 16-bit integers kept as floats fit.
        block = np.clip(block, -65536, 65536)
        if picks == ["mix"]:
            heard = block.mean(axis=1, keepdims=True)
            energy += np.square(block).sum(axis=0, dtype=np.float64)
            mixed += float(np.square(heard).sum(dtype=np.float64))
        else:
            heard = block[:, picks]
        pieces.append(stream(heard, False))
    pieces.append(stream(np.zeros((0, len(picks)), np.float32), True))
    sound = np.concatenate(pieces)
    if unusable:
        _log.warning("%s: %d samples are not finite numbers, taken as silence", name, unusable)
    if picks == ["mix"] and mixed < 0.001 * energy.max():
        _log.warning("%s: the channels cancel one another when mixed; choose one instead", name)
    peak = float(np.abs(sound).max(initial=0.0))
    if peak > _LOUDEST:
        _log.warning("%s: samples reach %.3g instead of 1, scaled down", name, peak)
        sound /= peak
    return [
        Waveform(
            samples=torch.from_numpy(np.ascontiguousarray(sound[:, column])),
            sample_rate=rate,
            id=id or (Path(path).stem if path else name),
            path=path,
            source_rate=info.sample_rate,
            source_channels=info.channels,
        )
        for column in range(len(picks))
    ]


def _resampler(
    source_rate: int, rate: int, columns: int
) -> Callable[[np.ndarray, bool], np.ndarray]:
    """Band-limited resampling of (frames, columns) along time, block after block."""
    if source_rate == rate:
        return lambda block, last: block
    stream = soxr.ResampleStream(source_rate, rate, columns, dtype="float32", quality="HQ")
    return lambda block, last: stream.resample_chunk(block, last=last)


@cache
def _warn_narrow(source_rate: int, rate: int) -> None:
    _log.warning(
        "audio at %d Hz holds nothing above %d Hz, where the model (%d Hz) also listens: "
        "expect more errors",
        source_rate, source_rate // 2, rate,
    )  # fmt: skip


def _name(source: Source, id: str = "") -> str:
    if isinstance(source, str | Path):
        return str(source)
    name = getattr(source, "name", None)
    return id or (name if isinstance(name, str) else "stream")


@contextmanager
def _opened(source: Source, name: str) -> Iterator[_Decoder]:
    """The decoder that takes this source; what libraries raise becomes :class:`InputError`."""
    try:
        with _binary(source) as file:
            size = file.seek(0, os.SEEK_END)
            if size == 0:
                raise InputError(f"{name}: empty file (0 bytes)")
            file.seek(0)
            refusal = ""
            try:
                sound = _SoundFile(_Nameless(file))
            except soundfile.SoundFileError as error:
                refusal = _reason(error)
            else:
                # No frames in a file of some size: a recorder that never wrote the length, perhaps.
                if sound.frames or size < 4096:
                    with sound:
                        yield _libsndfile(sound, name)
                    return
                sound.close()
            file.seek(0)
            with _ffmpeg(file, name, refusal) as decoder:
                yield decoder
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}") from error
    except (MemoryError, ValueError) as error:  # ValueError: a path with a NUL in it, for one
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name}: {error or 'not enough memory'}") from error


@contextmanager
def _binary(source: Source) -> Iterator[BinaryIO]:
    """A seekable binary file; pipes (standard input, ``<(command)``) are read to memory first."""
    if not isinstance(source, str | Path):
        yield source if source.seekable() else io.BytesIO(source.read())
        return
    with open(source, "rb") as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            yield file
        else:
            yield io.BytesIO(file.read())


class _Nameless:
    """A file without its name, so that formats are told by content and not by suffix."""

    def __init__(self, file: BinaryIO) -> None:
        self.read, self.seek, self.tell = file.read, file.seek, file.tell
        if hasattr(file, "readinto"):
            self.readinto = file.readinto


class _SoundFile(soundfile.SoundFile):
    def seekable(self) -> bool:
        """No: soundfile seeks after each block, which FLAC of unknown length refuses."""
        return False


def _reason(error: Exception) -> str:
    said = getattr(error, "error_string", None) or getattr(error, "strerror", None) or error
    reason = str(said).strip().rstrip(".")
    if reason == "Format not recognised":
        reason += "; raw samples need a header, as in WAV"
    return reason


def _libsndfile(sound: soundfile.SoundFile, name: str) -> _Decoder:
    rate, channels, declared = sound.samplerate, sound.channels, sound.frames
    # A stream written without knowing its length declares a huge one; MP3 only estimates.
    known = declared < 1 << 40 and sound.format != "MP3"
    if known and (missing := _missing(sound.extra_info)):
        raise InputError(f"{name}: cut short ({missing})")

    def blocks() -> Iterator[np.ndarray]:
        frames, size = 0, max(1, _BLOCK // channels)
        try:
            while len(block := sound.read(size, dtype="float32", always_2d=True)):
                frames += len(block)
                yield block
        except soundfile.SoundFileError as error:
            raise InputError(
                f"{name}: damaged after {frames / rate:.2f} s ({_reason(error)})"
            ) from error
        if known and frames < declared:
            raise InputError(
                f"{name}: cut short ({frames / rate:.2f} s of {declared / rate:.2f} s can be read)"
            )

    return _Decoder(AudioInfo(rate, channels, declared / rate if known else None), blocks())


def _missing(header_log: str) -> str:
    """What libsndfile's header log says is missing from a WAV, AIFF or AU file; "" if nothing."""
    found = re.search(r"(?:data|SSND|Data Size)\s*: (\d+) \(should be (\d+)\)", header_log)
    if not found:
        return ""
    declared, present = map(int, found.groups())
    # 0x7FFFxxxx and 0xFFFFFFFF are what recorders that stream write before they know the length.
    if declared >= 0x7FFF0000 or present >= 0.99 * declared:
        return ""
    return f"{present} of {declared} bytes of sound are there"


@contextmanager
def _ffmpeg(file: BinaryIO, name: str, refusal: str) -> Iterator[_Decoder]:
    """FFmpeg's decoder of what libsndfile refused because of ``refusal``."""
    import av  # heavy, and rarely needed

    try:
        # No protocols: a playlist must not make us open other files or addresses.
        with av.open(
            _Nameless(file), "r", metadata_errors="ignore", options={"protocol_whitelist": "none"}
        ) as container:
            stream = container.streams.best("audio")
            if not isinstance(stream, av.AudioStream):
                raise InputError(f"{name}: holds no sound ({container.format.long_name})")
            blocks = _ffmpeg_blocks(container, stream, name)
            first = next(blocks, None)
            if first is None:
                raise InputError(f"{name}: no sound can be decoded from it ({refusal})")
            rate, block = first
            whole = container.duration / av.time_base if container.duration else None
            info = AudioInfo(rate, block.shape[1], _declared(stream) or whole)
            yield _Decoder(info, itertools.chain([block], (block for _, block in blocks)))
    except (av.error.FFmpegError, UnicodeError) as error:
        reason = refusal or _reason(error)
        raise InputError(f"{name}: not audio that can be decoded ({reason})") from error


def _declared(stream: AudioStream) -> Seconds | None:
    if not stream.duration or not stream.time_base:
        return None
    return float(stream.duration * stream.time_base)


def _ffmpeg_blocks(
    container: InputContainer, stream: AudioStream, name: str
) -> Iterator[tuple[int, np.ndarray]]:
    """(rate in Hz, block (frames, channels)) as FFmpeg decodes; single bad packets are passed over.

    The rate is taken from decoded frames: HE-AAC declares half of what it decodes to.
    """
    import av

    resampler = av.AudioResampler(format="fltp")  # keeps rate and channels
    good = bad = frames = rate = 0
    for packet in container.demux(stream):
        try:
            decoded = packet.decode()
        except av.error.InvalidDataError:
            bad += 1
            continue
        for frame in decoded:
            if rate not in (0, frame.sample_rate):
                raise InputError(f"{name}: its sample rate changes half-way")
            good, rate = good + 1, frame.sample_rate
            for plain in resampler.resample(frame):
                block = plain.to_ndarray().T
                frames += len(block)
                yield rate, block
    if bad > good:
        raise InputError(f"{name}: damaged ({bad} of {good + bad} packets cannot be decoded)")
    if bad:
        _log.warning("%s: %d damaged packets passed over", name, bad)
    # Other containers' durations are guesses from the bit rate, or count a longer picture track.
    expected = (_declared(stream) or 0.0) if "mp4" in container.format.name else 0.0
    if rate and frames / rate < 0.9 * expected - 1:
        raise InputError(
            f"{name}: cut short ({frames / rate:.2f} s of {expected:.2f} s can be read)"
        )
