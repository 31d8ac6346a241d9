"""speechocean762 (Zhang et al. 2021, CC BY 4.0): English read by Mandarin speakers, half children.

Source: a clone of the public repository (``WAVE/SPEAKER*/*.WAV``, and in ``train`` and ``test`` the
Kaldi files ``wav.scp``, ``text``, ``utt2spk``, ``spk2age``, ``spk2gender``), or a folder with a
``manifest.tsv`` of the same recordings.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from asr.data import manifest
from asr.data.corpora import folder
from asr.data.manifest import Utterance
from asr.errors import InputError

_SPLITS = ("train", "test")


def prepare(
    source: Path | str,
    out: Path | str,
    *,
    valid: float = 0.1,
    shortest: float = 0.3,
    longest: float = 30.0,
    subwords: int = 0,
    tokenizer: str = "",
    skip_broken: bool = False,
    quiet: bool = False,
) -> list[Path]:
    """Write ``train.jsonl``, ``valid.jsonl``, ``test.jsonl`` and ``report.json``; the manifests.

    The test set is the published one; the share ``valid`` of the training hours, whole speakers, is
    for validation. ``age`` (years) and ``gender`` are kept where the source tells them. Options,
    the report, and what is refused, are those of :func:`asr.data.corpora.folder.prepare`. Running
    it again gives the same bytes. Raises InputError for a source that is neither layout too.
    """
    source, out = Path(source), Path(out)
    broken: list[str] = []
    if (source / "manifest.tsv").is_file():
        utterances = manifest.read_tsv(source)
    elif all((source / split / "wav.scp").is_file() for split in _SPLITS):
        utterances = [u for split in _SPLITS for u in _kaldi(source, split, broken)]
    else:
        raise InputError(
            f"{source}: neither train/wav.scp and test/wav.scp nor a manifest.tsv is in it"
        )
    return folder.settle(
        utterances,
        broken,
        source,
        out,
        valid=valid,
        test=0.0,
        shortest=shortest,
        longest=longest,
        subwords=subwords,
        tokenizer=tokenizer,
        skip_broken=skip_broken,
        quiet=quiet,
    )


def _kaldi(source: Path, split: str, broken: list[str]) -> Iterator[Utterance]:
    """The utterances of a split as ``wav.scp`` orders them; ``broken`` gets those without text."""
    texts, speakers = (_columns(source / split / name) for name in ("text", "utt2spk"))
    told = {
        key: _columns(path)
        for key in ("age", "gender")
        if (path := source / split / f"spk2{key}").is_file()
    }
    for id, audio in _columns(source / split / "wav.scp").items():
        if audio.endswith("|"):
            raise InputError(f"{source / split / 'wav.scp'}: {id}: a command; it is not run")
        if not texts.get(id):
            broken.append(f"{source / split / 'text'}: {id}: no transcript")
            continue
        speaker = speakers.get(id, "")
        extra = {key: value[speaker] for key, value in told.items() if value.get(speaker)}
        yield Utterance(id, source / audio, 0.0, texts[id], speaker, split, extra=extra)


def _columns(path: Path) -> dict[str, str]:
    """The first column of each line, and the rest of the line; blank lines are none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 (byte {error.start})") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        key, *rest = line.split(maxsplit=1)
        if key in found:
            raise InputError(f"{path}:{number}: {key!r} was there already")
        found[key] = rest[0].strip() if rest else ""
    return found
