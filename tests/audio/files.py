"""Sound files made in memory, and what is asked of all that is read."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile

from asr.errors import InputError

RATE = 16000


def tone(rate: int = RATE, seconds: float = 1.0, hertz: float = 440.0) -> np.ndarray:
    return 0.3 * np.sin(2 * np.pi * hertz * np.arange(round(rate * seconds)) / rate)


def encoded(samples: np.ndarray, rate: int = RATE, format="WAV", codec="PCM_16") -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=format, subtype=codec)
    return file.getvalue()


def by_ffmpeg(samples: np.ndarray, rate: int, format: str, codec: str, **options: str) -> bytes:
    """``samples`` (frames, channels) in a container that FFmpeg writes."""
    layout = {1: "mono", 2: "stereo"}[samples.shape[1]]
    with (
        tempfile.NamedTemporaryFile() as file,
        av.open(file.name, "w", format=format, options=options) as container,
    ):
        stream = container.add_stream(codec, rate=rate, layout=layout)
        for start in range(0, len(samples), 1024):
            block = np.ascontiguousarray(samples[start : start + 1024].T, dtype=np.float32)
            frame = av.AudioFrame.from_ndarray(block, format="fltp", layout=layout)
            frame.sample_rate, frame.pts = rate, start
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
        container.close()
        return Path(file.name).read_bytes()


def pitch(samples: np.ndarray, rate: int = RATE) -> float:
    """Hz of the loudest partial: a count that no decoder or resampler of ours has a part in."""
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(spectrum.argmax() * rate / len(samples))


def one_line(error: pytest.ExceptionInfo[InputError], name: str) -> str:
    message = str(error.value)
    assert name in message and "\n" not in message and len(message) < 300
    return message
