"""Any audio file, path or binary stream -> blocks of samples, all channels, at the file's own rate.

libsndfile decodes first (WAV, FLAC, Ogg, MP3, AIFF, AU, NIST, CAF, ...), FFmpeg through PyAV what
it refuses (m4a, mp4, webm, wma, ...). Memory follows what a file really holds, never what its
header says.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

import numpy as np
import soundfile

from asr.errors import InputError
from asr.types import Seconds

if TYPE_CHECKING:
    from av.audio.stream import AudioStream
    from av.container import InputContainer

Source: TypeAlias = str | Path | BinaryIO

_BLOCK = 1 << 20  # values (frames x channels) decoded at a time
# Of these, libsndfile gives nothing of the block in which the file breaks: small ones lose little.
_COMPRESSED, _SMALL_BLOCK = ("FLAC", "OGG", "MP3"), 4096
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AudioInfo:
    """What a file says of itself; ``duration`` is None where only decoding would tell.

    A film's ``duration`` is that of its longest track.
    """

    sample_rate: int
    channels: int
    duration: Seconds | None


class Incomplete(InputError):
    """The file ends, or breaks, before all of its sound came; ``reason`` is without its name."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.reason = reason


@dataclass
class Decoder:
    """An open file: its header, and a one-time iterator over blocks (frames, channels) float32.

    The iterator raises :class:`Incomplete` after the last block that could be had.
    """

    info: AudioInfo
    blocks: Iterator[np.ndarray]


def name_of(source: Source, id: str = "") -> str:
    if isinstance(source, str | Path):
        return str(source)
    name = getattr(source, "name", None)
    return id or (name if isinstance(name, str) else "stream")


@contextmanager
def opened(source: Source, name: str) -> Iterator[Decoder]:
    """The decoder that takes this source; what libraries raise becomes :class:`InputError`."""
    with _refusals(name), _binary(repeatable(source, name)) as file:
        size = file.seek(0, os.SEEK_END)
        if size == 0:
            raise InputError(f"{name}: empty file (0 bytes)")
        file.seek(0)
        refusal = ""
        try:
            read = _ForC(file)
            sound = _SoundFile(read)
        except soundfile.SoundFileError as error:
            read.raise_kept()
            refusal = _reason(error)
        else:
            # No frames in a file of some size: a recorder that never wrote the length, perhaps.
            if sound.frames or size < 4096:
                with sound:
                    yield _libsndfile(sound, read, name)
                return
            sound.close()
        file.seek(0)
        with _ffmpeg(file, name, refusal) as decoder:
            yield decoder


def repeatable(source: Source, name: str) -> Source:
    """The source itself, or its bytes where it can be read only once.

    Those are pipes: standard input, ``<(command)``. Raises :class:`InputError`.
    """
    with _refusals(name):
        if not isinstance(source, str | Path):
            return source if source.seekable() else io.BytesIO(source.read())
        mode = os.stat(source).st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            return source
        with open(source, "rb") as file:
            return io.BytesIO(file.read())


@contextmanager
def _refusals(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}") from error
    except (MemoryError, ValueError) as error:  # ValueError: a path with a NUL in it, for one
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name}: {error or 'not enough memory'}") from error


@contextmanager
def _binary(source: Source) -> Iterator[BinaryIO]:
    if not isinstance(source, str | Path):
        yield source
        return
    with open(source, "rb") as file:
        yield file


class _Nameless:
    """A file without its name, so that formats are told by content and not by suffix."""

    def __init__(self, file: BinaryIO) -> None:
        self.read, self.seek, self.tell = file.read, file.seek, file.tell
        if hasattr(file, "readinto"):
            self.readinto = file.readinto


class _ForC(_Nameless):
    """A file that libsndfile calls back: it cannot be told of ^C or an error in the middle of that.

    To it that would look like the end of the file; so it is kept, and raised afterwards.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._kept: BaseException | None = None
        for name, nothing in (("read", b""), ("readinto", 0), ("seek", 0), ("tell", 0)):
            if hasattr(self, name):
                setattr(self, name, self._keeping(getattr(self, name), nothing))

    def _keeping(self, call: Callable[..., Any], nothing: Any) -> Callable[..., Any]:
        def kept(*args: Any) -> Any:
            try:
                return call(*args)
            except BaseException as error:
                self._kept = error
                return nothing

        return kept

    def raise_kept(self) -> None:
        if self._kept is not None:
            raise self._kept


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


def _libsndfile(sound: soundfile.SoundFile, file: _ForC, name: str) -> Decoder:
    rate, channels, declared = sound.samplerate, sound.channels, sound.frames
    # A stream written without knowing its length declares a huge one; MP3 only estimates.
    known = declared < 1 << 40 and sound.format != "MP3"
    missing = _missing(sound.extra_info) if known else ""

    def blocks() -> Iterator[np.ndarray]:
        frames, lacks = 0, missing
        size = _SMALL_BLOCK if sound.format in _COMPRESSED else max(1, _BLOCK // channels)
        try:
            while len(block := sound.read(size, dtype="float32", always_2d=True)):
                file.raise_kept()
                frames += len(block)
                yield block
        except soundfile.SoundFileError as error:
            file.raise_kept()
            raise Incomplete(
                name, f"damaged after {frames / rate:.2f} s ({_reason(error)})"
            ) from error
        file.raise_kept()
        if known and frames < declared:
            lacks = f"{frames / rate:.2f} s of {declared / rate:.2f} s can be read"
        if lacks:
            raise Incomplete(name, f"cut short ({lacks})")

    return Decoder(AudioInfo(rate, channels, declared / rate if known else None), blocks())


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
def _ffmpeg(file: BinaryIO, name: str, refusal: str) -> Iterator[Decoder]:
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
            yield Decoder(info, itertools.chain([block], (block for _, block in blocks)))
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
    try:
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
    except av.error.FFmpegError as error:
        if not frames:
            raise
        raise Incomplete(name, f"damaged after {frames / rate:.2f} s ({_reason(error)})") from error
    if bad > good:
        raise InputError(f"{name}: damaged ({bad} of {good + bad} packets cannot be decoded)")
    if bad:
        _log.warning("%s: %d damaged packets passed over", name, bad)
    # Other containers' durations are guesses from the bit rate, or count a longer picture track.
    expected = (_declared(stream) or 0.0) if "mp4" in container.format.name else 0.0
    if rate and frames / rate < 0.9 * expected - 1:
        raise Incomplete(name, f"cut short ({frames / rate:.2f} s of {expected:.2f} s can be read)")
