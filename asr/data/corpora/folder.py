"""Any folder of recordings with their transcripts.

Source, whichever is there: a table (``*.tsv`` or ``*.csv`` with named columns, or ``*.jsonl``),
named itself or the only one in its folder; else every recording with a ``.txt`` beside it. Audio in
a table is relative to the table's folder.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from asr.data import describing, manifest, tables
from asr.data.checking import hear, refuse
from asr.data.manifest import Utterance
from asr.errors import InputError
from asr.text import Tokenizer, normalise

SPLITS = ("train", "valid", "test")
_NOT_SOUND = {".txt", ".tsv", ".csv", ".json", ".jsonl", ".md", ".lab", ".trn", ".pdf", ".html"}
_SEED = 1


def prepare(
    source: Path | str,
    out: Path | str,
    *,
    column: Sequence[str] = (),
    folders_are_speakers: bool = False,
    valid: float = 0.1,
    test: float = 0.1,
    shortest: float = 0.3,
    longest: float = 30.0,
    subwords: int = 0,
    tokenizer: str = "",
    skip_broken: bool = False,
    quiet: bool = False,
) -> list[Path]:
    """Write ``train.jsonl``, ``valid.jsonl``, ``test.jsonl`` and ``report.json``; the manifests.

    A table's own splits are kept (dev, validation, eval ... count as what they mean). Otherwise
    shares ``valid`` and ``test`` of the hours are held out: whole speakers where every utterance
    has one and there are at least three, else utterances, by a hash of their names. ``column``
    (``key=name``) says which column of a table is what, where its name does not tell.
    ``subwords`` trains a tokenizer on the training texts, in ``tokenizer/``. The report (on
    standard error too, unless ``quiet``) has hours, speakers, rates, characters, and by name what
    is suspicious: see :func:`asr.data.describing.suspicions`; the utterances stay in the
    manifests, and training leaves out by name what it cannot use. Running it again gives the same
    bytes. Raises InputError for a folder without recordings, an id that occurs twice, and, unless
    ``skip_broken``, for recordings without a transcript and files that cannot be decoded.
    """
    source, out = Path(source), Path(out)
    table = _table(source)
    if table is None and column:
        raise InputError(f"{source}: --column is for tables, and there is none in it")
    if table is not None and table.resolve() in {(out / f"{s}.jsonl").resolve() for s in SPLITS}:
        raise InputError(f"{table}: would be overwritten; -o must name another folder")
    utterances, broken = (
        _beside(source) if table is None else tables.read(table, tables.columns(column))
    )
    if folders_are_speakers:
        utterances = [replace(u, speaker=u.audio.parent.name) for u in utterances]
    if not utterances and not broken:
        raise InputError(
            f"{source}: no recordings; audio with a .txt beside each, or a table (.tsv, .csv, "
            ".jsonl), is expected"
        )
    return settle(
        utterances,
        broken,
        source,
        out,
        valid=valid,
        test=test,
        shortest=shortest,
        longest=longest,
        subwords=subwords,
        tokenizer=tokenizer,
        skip_broken=skip_broken,
        quiet=quiet,
    )


def settle(
    utterances: Sequence[Utterance],
    broken: Sequence[str],
    source: Path,
    out: Path,
    *,
    valid: float,
    test: float,
    shortest: float,
    longest: float,
    subwords: int,
    tokenizer: str,
    skip_broken: bool,
    quiet: bool,
) -> list[Path]:
    """What :func:`prepare` does once utterances are found, and what is ``broken`` about others.

    Other corpora whose splits leave something open use it too.
    """
    if valid + test >= 1:
        raise InputError(f"--valid {valid:g} --test {test:g}: together below 1, or nothing is left")
    given = _loaded(tokenizer)
    heard, undecoded = hear((u.audio for u in utterances), quiet=quiet)
    refuse([*broken, *undecoded.values()], skip=skip_broken)
    utterances = [
        replace(u, duration=_length(u, heard[u.audio].duration))
        for u in utterances
        if u.audio in heard
    ]
    if not utterances:
        raise InputError(f"{source}: nothing is left of it")
    # By id, so that the shape of the folder and the order of a table make no difference.
    utterances.sort(key=lambda u: u.id)
    parts = _split(utterances, {"valid": valid, "test": test})
    if not parts["train"]:
        raise InputError(f"{source}: nothing is left to train on; hold out less (--valid, --test)")
    written = []
    for name in SPLITS:
        path = out / f"{name}.jsonl"
        if parts[name]:
            manifest.write(path, parts[name])
            written.append(path)
        else:
            path.unlink(missing_ok=True)
    if subwords:
        from asr.text import SentencePieceTokenizer

        given = SentencePieceTokenizer.train([normalise(u.text) for u in parts["train"]], subwords)
        for file, content in given.files().items():
            manifest.write_bytes(out / "tokenizer" / file, content)
    rates = {path: found.rate for path, found in heard.items()}
    report = describing.describe(parts, rates, given, shortest=shortest, longest=longest)
    text = json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    manifest.write_bytes(out / "report.json", text.encode())
    if not quiet:
        print(describing.told(report), file=sys.stderr)
    return written


def _loaded(tokenizer: str) -> Tokenizer | None:
    if not tokenizer:
        return None
    if not Path(tokenizer).is_dir():
        raise InputError(f"--tokenizer: {tokenizer}: no such folder; a saved one is expected")
    return Tokenizer.load(tokenizer)


def _table(source: Path) -> Path | None:
    """The table that the source is or holds; InputError where it might be one of several."""
    if source.is_file():
        return source
    found = [path for path in sorted(source.iterdir()) if path.suffix.lower() in tables.SUFFIXES]
    found = [path for path in found if path.is_file() and not path.name.startswith(".")]
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise InputError(f"{source}: which of {names} is meant? Name it as the source")
    return found[0] if found else None


def _beside(source: Path) -> tuple[list[Utterance], list[str]]:
    """Every recording with a .txt beside it, and the ones without."""
    utterances: dict[str, Utterance] = {}
    broken = []
    for path in sorted(source.rglob("*")):
        within = path.relative_to(source)
        hidden = any(part.startswith(".") for part in within.parts)
        if hidden or path.suffix.lower() in _NOT_SOUND or not path.is_file():
            continue
        beside, id = path.with_suffix(".txt"), within.with_suffix("").as_posix()
        if id in utterances:
            raise InputError(
                f"{path}: the id {id!r} was there already ({utterances[id].audio}); ids must differ"
            )
        try:
            text = " ".join(beside.read_bytes().decode("utf-8-sig").split())
        except FileNotFoundError:
            broken.append(f"{path}: no transcript {beside.name} beside it")
            continue
        except UnicodeDecodeError as error:
            raise InputError(f"{beside}: not UTF-8 (byte {error.start})") from None
        utterances[id] = Utterance(id, path, 0.0, text)
    return list(utterances.values()), broken


def _length(utterance: Utterance, whole: float) -> float:
    """Seconds of an utterance that may be a piece of its file."""
    end = whole if utterance.end is None else min(utterance.end, whole)
    if end < utterance.start:
        raise InputError(
            f"{utterance.audio}: {utterance.id} starts at {utterance.start:g} s, but the file "
            f"lasts {whole:.2f} s"
        )
    return end - utterance.start


def _split(
    utterances: Sequence[Utterance], shares: Mapping[str, float]
) -> dict[str, list[Utterance]]:
    """Utterances by split, in the order given; a table's own splits are kept."""
    if any(u.split for u in utterances):
        unknown = [u for u in utterances if u.split not in SPLITS]
        if unknown:
            raise InputError(
                f"{unknown[0].audio}: {unknown[0].id}: the split {unknown[0].split!r} is none of "
                f"{', '.join(SPLITS)}"
            )
        if not any(u.split == "train" for u in utterances):
            raise InputError(f"{utterances[0].audio}: no utterance has the split 'train'")
        named = {u.split for u in utterances}
        # A table may have a test set but no validation set: that comes out of its training set.
        shares = {name: share for name, share in shares.items() if name not in named}
        parts = _held_out([u for u in utterances if u.split == "train"], shares)
        for name in ("valid", "test"):
            parts[name] = parts.get(name) or [u for u in utterances if u.split == name]
    else:
        parts = _held_out(utterances, shares)
    return {name: [replace(u, split=name) for u in parts.get(name, [])] for name in SPLITS}


def _held_out(
    utterances: Sequence[Utterance], shares: Mapping[str, float]
) -> dict[str, list[Utterance]]:
    """Whole groups, in the order of a hash of their names, until each share of hours is reached."""
    speakers = {u.speaker for u in utterances}
    by_speaker = "" not in speakers and len(speakers) > len(shares)

    def group(utterance: Utterance) -> str:
        return utterance.speaker if by_speaker else utterance.id

    seconds: dict[str, float] = {}
    for u in utterances:
        seconds[group(u)] = seconds.get(group(u), 0.0) + u.duration
    total = sum(seconds.values())
    order = sorted(seconds, key=lambda name: (zlib.crc32(f"{_SEED}/{name}".encode()), name))
    place = dict.fromkeys(order, "train")
    waiting = iter(order)
    for name, share in shares.items():
        _fill(place, waiting, name, share * total, seconds, len(order) - len(shares))
    return {name: [u for u in utterances if place[group(u)] == name] for name in SPLITS}


def _fill(
    place: dict[str, str],
    waiting: Iterable[str],
    name: str,
    wanted: float,
    seconds: Mapping[str, float],
    most: int,
) -> None:
    """Give ``name`` at least one group, where there are some to spare, up to ``wanted`` seconds."""
    filled, count = 0.0, 0
    if wanted <= 0 or most < 1:
        return
    for group in waiting:
        place[group] = name
        filled, count = filled + seconds[group], count + 1
        if filled >= wanted or count >= most:
            return
