"""`asr doctor`: is everything that the other commands need here, and does it work."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_PACKAGES = (
    "torch", "torchaudio", "lightning", "numpy", "soundfile", "av", "soxr", "sentencepiece",
    "safetensors", "matplotlib", "librosa",
)  # fmt: skip
_MATRIX = 512  # rows and columns of the product whose speed is measured


@dataclass(frozen=True)
class Check:
    """One line of the report; ``ok`` False where a command would fail."""

    name: str
    ok: bool
    detail: str


def add_parser(subparsers: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Add ``doctor``."""
    parser = subparsers.add_parser(
        "doctor",
        help="check versions, codecs, devices, threads and the starter model",
        description="Check that what the other commands need is here and works. "
        "Exit status 1 if something does not.",
    )
    parser.add_argument(
        "--json", action=argparse.BooleanOptionalAction, default=False,
        help="the report as one JSON object",
    )  # fmt: skip
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Report on standard output; 1 if a check failed, else 0."""
    checks = [_checked(name, check) for name, check in _checks()]
    broken = [check.name for check in checks if not check.ok]
    if args.json:
        report = {
            "schema": "asr-doctor/1",
            "ok": not broken,
            "checks": [asdict(check) for check in checks],
        }
        print(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        width = max(len(check.name) for check in checks)
        for check in checks:
            print(f"{'ok  ' if check.ok else 'FAIL'}  {check.name:{width}}  {check.detail}")
        print(f"broken: {', '.join(broken)}" if broken else "everything works")
    return 1 if broken else 0


def _checks() -> list[tuple[str, Callable[[], str]]]:
    return [
        ("python", lambda: f"{platform.python_version()} on {platform.platform()}"),
        ("asr", lambda: _version("asr")),
        *((name, lambda name=name: _version(name)) for name in _PACKAGES),
        *(
            (f"{format.lower()} {codec.lower()}", lambda pair=(format, codec): _libsndfile(*pair))
            for format, codec in (
                ("WAV", "PCM_16"), ("FLAC", "PCM_16"), ("OGG", "VORBIS"), ("OGG", "OPUS"),
                ("MP3", "MPEG_LAYER_III"),
            )
        ),
        ("mp4 aac", _ffmpeg),
        ("devices", _devices),
        ("threads", _threads),
        ("bfloat16", _bfloat16),
        ("starter model", _starter),
    ]  # fmt: skip


def _checked(name: str, check: Callable[[], str]) -> Check:
    try:
        return Check(name, True, check())
    except Exception as error:  # whatever is wrong is what this command is for
        reason = " ".join(str(error).split()) or type(error).__name__
        return Check(name, False, reason)


def _version(package: str) -> str:
    if package == "asr":
        from asr import __version__

        return __version__
    version = metadata.version(package)
    __import__(package)
    return version


def _decoded(file: BytesIO) -> str:
    """What comes back of one second of sound."""
    from asr import audio

    file.seek(0)
    wave = audio.load(file, 16000, id="a second of sound")
    if abs(wave.duration - 1) > 0.2:
        raise RuntimeError(f"one second decodes to {wave.duration:.2f} s")
    return "decodes"


def _libsndfile(format: str, codec: str) -> str:
    import numpy as np
    import soundfile

    file = BytesIO()
    soundfile.write(file, np.zeros(16000, np.float32), 16000, format=format, subtype=codec)
    return _decoded(file)


def _ffmpeg() -> str:
    import av
    import numpy as np

    file = BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("aac", rate=16000, layout="mono")
        frame = av.AudioFrame.from_ndarray(
            np.zeros((1, 16000), np.float32), format="fltp", layout="mono"
        )
        frame.sample_rate = 16000
        for each in (frame, None):
            container.mux(stream.encode(each))
    return _decoded(file)


def _devices() -> str:
    import torch

    names = ["cpu"]
    for index in range(torch.cuda.device_count()):
        device = torch.cuda.get_device_properties(index)
        names.append(f"cuda:{index} {device.name} ({device.total_memory / 2**30:.0f} GiB)")
    return ", ".join(names)


def _threads() -> str:
    import torch

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"torch uses {torch.get_num_threads()} of {usable} processors"


def _bfloat16() -> str:
    """Measured, since a CPU may have the type and yet be slower with it."""
    import torch

    ratio = _seconds(torch.float32) / _seconds(torch.bfloat16)
    speed = f"{ratio:.1f} times as fast as" if ratio >= 1 else f"{1 / ratio:.1f} times slower than"
    return f"on the CPU {speed} float32"


def _seconds(dtype: torch.dtype) -> float:
    """The best of a few matrix products."""
    import torch

    left = torch.randn(_MATRIX, _MATRIX, dtype=dtype)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        left @ left
        times.append(time.perf_counter() - start)
    return min(times)


def _starter() -> str:
    import torch

    from asr.inference.transcriber import Transcriber
    from asr.types import Waveform

    start = time.perf_counter()
    transcriber = Transcriber.from_bundle(device="cpu")
    loaded = time.perf_counter()
    rate = transcriber.sample_rate
    noise = 0.01 * torch.randn(rate, generator=torch.Generator().manual_seed(0))
    transcriber([Waveform(noise, rate, id="noise")])
    done = time.perf_counter()
    return (
        f"{transcriber.name}: loads in {loaded - start:.1f} s, "
        f"hears 1 s of sound in {done - loaded:.2f} s"
    )
