"""The embedded corpus of synthetic digit strings, for the demonstration and the tests.

Source: the folder of ``recipes/digits/corpus``, or one like it: a ``manifest.jsonl`` whose
utterances have a split (train, valid, test), a speaker, and the times of their words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from asr.data import manifest
from asr.data.manifest import Utterance, WordTime
from asr.errors import InputError

_MARGIN = 0.02  # seconds of silence that a word keeps on either side, where it has them
_SPLITS = ("train", "valid", "test")


def prepare(source: Path | str, out: Path | str) -> list[Path]:
    """Write manifests to ``out`` that refer to the corpus where it stands; returns their paths.

    ``pool-train.jsonl``: the words of the training strings, each a span of its string, for
    :class:`StringPool`, and ``pool-train-ENGINE.jsonl`` the same by synthesiser, so that one with
    many voices need not drown the others; ``train.jsonl``, ``valid.jsonl`` and ``test.jsonl``: the
    strings. Running it again gives the same. Raises InputError for a source without such a
    manifest, and with the recordings that are missing.
    """
    source, out = Path(source), Path(out)
    path = source / "manifest.jsonl"
    utterances = manifest.read(path)
    missing = [str(u.audio) for u in utterances if not u.audio.is_file()]
    if missing:
        more = f" (and {len(missing) - 3} more)" if len(missing) > 3 else ""
        raise InputError(f"{', '.join(missing[:3])}{more}: no such file, though in {path}")
    parts = {name: [u for u in utterances if u.split == name] for name in _SPLITS}
    for name, part in parts.items():
        if not part:
            raise InputError(f"{path}: no utterances with the split {name!r}")
    parts["pool-train"] = [word for utterance in parts["train"] for word in _words(utterance, path)]
    for word in parts["pool-train"]:
        parts.setdefault(f"pool-train-{word.extra.get('engine', 'unknown')}", []).append(word)
    written = []
    for name, part in sorted(parts.items()):
        manifest.write(out / f"{name}.jsonl", part)
        written.append(out / f"{name}.jsonl")
    return written


def _words(utterance: Utterance, path: Path) -> Iterator[Utterance]:
    """Each word of a string as a span of its file, up to half the gaps to its neighbours."""
    if [word.word for word in utterance.words] != utterance.text.split():
        raise InputError(f"{path}: {utterance.id}: 'words' must be the words of 'text'")
    ends = [0.0, *(word.end for word in utterance.words)]
    starts = [*(word.start for word in utterance.words), utterance.duration]
    for index, word in enumerate(utterance.words):
        before = word.start - ends[index] if index == 0 else (word.start - ends[index]) / 2
        last = index + 1 == len(utterance.words)
        after = (starts[index + 1] - word.end) / (1 if last else 2)
        start = word.start - min(max(before, 0.0), _MARGIN)
        end = word.end + min(max(after, 0.0), _MARGIN)
        yield replace(
            utterance,
            id=f"{utterance.id}-{index}",
            duration=end - start,
            text=word.word,
            words=(WordTime(word.word, word.start - start, word.end - start),),
            start=start,
            end=end,
        )
