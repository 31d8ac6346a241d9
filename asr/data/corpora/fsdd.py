"""Free Spoken Digit Dataset (Jackson et al., CC BY-SA 4.0): isolated digits, strings made of them.

Source: a clone of the public repository (``recordings/<digit>_<speaker>_<take>.wav``, of which
takes 0 to 4 are the test set), or a folder with a ``manifest.tsv`` of the same recordings.
"""

from __future__ import annotations

import io
import logging
import re
import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from asr.data import manifest
from asr.data.manifest import Utterance, WordTime
from asr.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from asr.data.pool import Clip

RATE = 8000
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
LEFT_OUT = "test-left-out"

_TEST_TAKES = 5
_VALID_TAKES = 3  # of each word by each speaker: the first ones outside the test set
_FRAME = 0.010
_RANGE = 35.0  # dB below the loudest frame, where a word begins to be heard
_SEED = 2018
_NAME = re.compile(r"([0-9])_([^_]+)_([0-9]+)")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Strings:
    """A set of strings to make: at least ``count`` in all, of ``shortest`` to ``longest`` words."""

    name: str
    count: int
    shortest: int
    longest: int


_VALID = Strings("valid", 100, 1, 8)
_TESTS = (
    Strings("test", 500, 1, 8),
    Strings("test-9-15", 100, 9, 15),
    Strings("test-16-25", 100, 16, 25),
)
_UNHEARD = Strings(LEFT_OUT, 200, 1, 8)


def prepare(source: Path | str, out: Path | str, *, leave_out: Collection[str] = ()) -> list[Path]:
    """Write the corpus at 8 kHz and its manifests to ``out``; the manifests' paths are returned.

    ``pool-train.jsonl`` and ``pool-valid.jsonl`` are isolated words for :class:`StringPool`,
    ``test-isolated.jsonl`` those of the test set; ``valid.jsonl``, ``test.jsonl`` (1 to 8 words),
    ``test-9-15.jsonl`` and ``test-16-25.jsonl`` are strings with true word times, and
    ``test-left-out.jsonl`` those of the speakers in ``leave_out``, of whom nothing is in the
    others. Running it again changes nothing that is right already, and finishes what was begun.
    Raises InputError for a source that is neither layout, with all recordings that cannot be
    read, and for speakers that are not in the corpus.
    """
    source, out = Path(source), Path(out)
    recordings = _find(source)
    speakers = sorted({recording.speaker for recording in recordings})
    unknown = sorted(set(leave_out) - set(speakers))
    if unknown:
        raise InputError(
            f"{source}: no speaker {', '.join(unknown)} to leave out; the speakers "
            f"are {', '.join(speakers)}"
        )
    clips = _convert(recordings, out)
    heard = [r for r in recordings if r.speaker not in leave_out]
    valid = _held_apart(heard)
    train = [r for r in heard if r.split != "test" and r.id not in valid]
    apart = [r for r in heard if r.id in valid]
    test = [r for r in heard if r.split == "test"]
    unheard = _tested(r for r in recordings if r.speaker in leave_out)
    return _write(
        {
            "pool-train": [_entry(r, "train", clips, out) for r in train],
            "pool-valid": [_entry(r, "valid", clips, out) for r in apart],
            "test-isolated": [_entry(r, "test", clips, out) for r in test],
            _VALID.name: _strings(_VALID, apart, clips, out),
            **{strings.name: _strings(strings, test, clips, out) for strings in _TESTS},
            LEFT_OUT: _strings(_UNHEARD, unheard, clips, out),
        },
        out,
    )


def _find(source: Path) -> list[Utterance]:
    """All recordings, in the order of speaker, word and take; ``text`` is the word."""
    if (source / "manifest.tsv").is_file():
        found = manifest.read_tsv(source)
        for recording in found:
            if recording.text.strip().lower() not in WORDS:
                raise InputError(
                    f"{source / 'manifest.tsv'}: {recording.id}: the transcript must "
                    f"be one of {', '.join(WORDS)}, not {recording.text!r}"
                )
            if not recording.speaker:
                raise InputError(f"{source / 'manifest.tsv'}: {recording.id}: no speaker")
        found = [
            replace(r, text=r.text.strip().lower(), split="test" if r.split == "test" else "train")
            for r in found
        ]
    elif (source / "recordings").is_dir():
        found = []
        for path in (source / "recordings").glob("*.wav"):
            name = _NAME.fullmatch(path.stem)
            if name is None:
                raise InputError(f"{path}: the name must be <digit>_<speaker>_<take>.wav")
            digit, speaker, take = name.groups()
            split = "test" if int(take) < _TEST_TAKES else "train"
            found.append(Utterance(path.stem, path, 0.0, WORDS[int(digit)], speaker, split))
    else:
        raise InputError(
            f"{source}: neither recordings/<digit>_<speaker>_<take>.wav nor a manifest.tsv is there"
        )
    if not found:
        raise InputError(f"{source}: no recordings")
    return sorted(found, key=lambda r: (r.speaker, WORDS.index(r.text), _take(r.id), r.id))


def _take(id: str) -> int:
    digits = re.search(r"[0-9]+$", id)
    return int(digits.group()) if digits else 0


def _held_apart(recordings: Iterable[Utterance]) -> set[str]:
    training = (r for r in recordings if r.split != "test")
    groups = groupby(training, key=lambda r: (r.speaker, r.text))
    return {r.id for _, group in groups for r in list(group)[:_VALID_TAKES]}


def _tested(recordings: Iterable[Utterance]) -> list[Utterance]:
    """The test recordings of each speaker; all recordings of one whose tests lack a word."""
    kept: list[Utterance] = []
    for _, group in groupby(recordings, key=lambda r: r.speaker):
        everything = list(group)
        test = [r for r in everything if r.split == "test"]
        complete = {r.text for r in test} == {r.text for r in everything}
        kept += test if complete else everything
    return kept


def _convert(recordings: Sequence[Utterance], out: Path) -> dict[str, Clip]:
    """Every recording as 8 kHz FLAC in ``out``/audio, and in memory. A word is heard from its first
    frame within 35 dB of its loudest one to its last."""
    from asr import audio
    from asr.data.pool import Clip

    clips, broken = {}, []
    for recording in recordings:
        try:
            samples = _sixteen_bits(audio.load(recording.audio, RATE).samples.numpy())
            onset, offset = heard_span(samples, RATE)
        except InputError as error:
            broken.append(str(error))
            continue
        except ValueError:
            broken.append(f"{recording.audio}: silent, or shorter than 10 ms")
            continue
        manifest.write_bytes(out / _audio_path(recording.id), _flac(samples))
        clips[recording.id] = Clip(recording.text, recording.speaker, samples, onset, offset)
    if broken:
        more = f" (and {len(broken) - 3} more recordings)" if len(broken) > 3 else ""
        raise InputError("; ".join(broken[:3]) + more)
    return clips


def heard_span(samples: NDArray[np.float32], rate: int) -> tuple[int, int]:
    """Where sound (L,) is heard, in samples: the 10 ms frames within 35 dB of the loudest one.

    ValueError where there is no frame, or none with any sound.
    """
    size = round(_FRAME * rate)
    frames = samples[: len(samples) // size * size].reshape(-1, size).astype(np.float64)
    power = (frames**2).mean(axis=1)
    if not power.any():
        raise ValueError("no sound")
    heard = np.flatnonzero(power >= power.max() * 10 ** (-_RANGE / 10))
    return int(heard[0]) * size, (int(heard[-1]) + 1) * size


def _entry(recording: Utterance, split: str, clips: dict[str, Clip], out: Path) -> Utterance:
    clip = clips[recording.id]
    word = WordTime(clip.word, clip.onset / RATE, clip.offset / RATE)
    return Utterance(
        recording.id,
        out / _audio_path(recording.id),
        len(clip.samples) / RATE,
        clip.word,
        clip.speaker,
        split,
        (word,),
    )


def _strings(
    strings: Strings,
    recordings: Sequence[Utterance],
    clips: dict[str, Clip],
    out: Path,
) -> list[Utterance]:
    """Strings of every speaker, as many of each length, their sound written to ``out``.

    A speaker's strings depend on his own recordings and the name of the set alone.
    """
    from asr.data.pool import StringPool
    from asr.data.strings import render

    if not recordings:
        return []
    pool = StringPool.of((clips[r.id] for r in recordings), RATE)
    lengths = strings.longest - strings.shortest + 1
    entries = []
    for speaker in pool.speakers:
        for index in range(-(-strings.count // len(pool.speakers))):
            seed = (_SEED, zlib.crc32(f"{strings.name}/{speaker}".encode()), index)
            string = render(pool, seed, strings.shortest + index % lengths, speaker=speaker)
            id = f"{strings.name}-{speaker}-{index:03d}"
            path = out / "strings" / strings.name / f"{speaker}-{index:03d}.flac"
            manifest.write_bytes(path, _flac(string.samples))
            entries.append(
                Utterance(
                    id,
                    path,
                    len(string.samples) / RATE,
                    string.text,
                    speaker,
                    strings.name,
                    string.words,
                )
            )
    return entries


def _write(manifests: dict[str, list[Utterance]], out: Path) -> list[Path]:
    """Manifests that would be empty are not written, and an earlier run's is removed: it would name
    speakers that are now in another part."""
    written = []
    for name, entries in manifests.items():
        path = out / f"{name}.jsonl"
        if entries:
            manifest.write(path, entries)
            written.append(path)
        else:
            path.unlink(missing_ok=True)
            if name != LEFT_OUT:
                _log.warning("%s: the source has no recordings for it", path)
    return written


def _audio_path(id: str) -> Path:
    return Path("audio") / f"{id}.flac"


def _sixteen_bits(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """What a 16-bit file will hold, so that memory and disk agree."""
    return (np.clip(np.rint(samples * 32768), -32768, 32767) / 32768).astype(np.float32)


def _flac(samples: NDArray[np.float32]) -> bytes:
    import soundfile

    stream: Any = io.BytesIO()
    soundfile.write(stream, (samples * 32768).astype("int16"), RATE, format="FLAC")
    return stream.getvalue()
