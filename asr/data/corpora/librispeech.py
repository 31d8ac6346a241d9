"""LibriSpeech (Panayotov et al. 2015, CC BY 4.0): parts by name, downloaded or from a folder.

Source: the official layout (``LibriSpeech/<part>/<speaker>/<chapter>/*.flac`` with a
``*.trans.txt`` a chapter, the part's folder itself, or a folder above), Libri-Light's limited sets
(``librispeech_finetuning/1h/<0-5>/<clean|other>/...`` and ``9h/<clean|other>/...``; Kahn et al.
2020), or a folder with a ``manifest.tsv``. Without a source the parts are downloaded.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from asr.data import download, manifest
from asr.data.checking import durations_of, hear, refuse
from asr.data.download import Archive
from asr.data.manifest import Utterance
from asr.errors import InputError

_log = logging.getLogger(__name__)

OPENSLR = "https://www.openslr.org/resources"
_LIBRILIGHT = "https://dl.fbaipublicfiles.com/librilight/data"
_LIMITED = "librispeech_finetuning"
_FOLDER = "LibriSpeech"

#: Part -> number of its OpenSLR resource and the checksum that was published for its archive.
OFFICIAL: Mapping[str, tuple[str, str]] = {
    "dev-clean": (
        "12", "sha256:76f87d090650617fca0cac8f88b9416e0ebf80350acb97b343a85fa903728ab3"
    ),
    "dev-other": (
        "12", "sha256:12661c48e8c3fe1de2c1caa4c3e135193bfb1811584f11f569dd12645aa84365"
    ),
    "test-clean": (
        "12", "sha256:39fde525e59672dc6d1551919b1478f724438a95aa55f874b576be21967e6c23"
    ),
    "test-other": (
        "12", "sha256:d09c181bba5cf717b3dee7d4d592af11a3ee3a09e08ae025c5506f6ebe961c29"
    ),
    "train-clean-100": (
        "12", "sha256:d4ddd1d5a6ab303066f14971d768ee43278a5f2a0aa43dc716b0e64ecbbbf6e2"
    ),
    "train-clean-360": (
        "12", "sha256:146a56496217e96c14334a160df97fffedd6e0a04e66b9c5af0d40be3c792ecf"
    ),
    "train-other-500": (
        "12", "sha256:ddb22f27f96ec163645d53215559df6aa36515f26e01dd70798188350adcb6d2"
    ),
    "dev-clean-2": ("31", "md5:6d7ab67ac6a1d2c993d050e16d61080d"),
    "train-clean-5": ("31", "md5:5df7d4e78065366204ca6845bb08f490"),
}  # fmt: skip
_LIMITED_CHECKSUM = "sha256:5d1efdc777b548194d7e09ba89126e2188026df9fd57aa57eb14408d2b2342af"

#: Limited part -> where its chapters lie within Libri-Light's archive.
LIMITED: Mapping[str, tuple[str, ...]] = {
    "limited-10min": ("1h/0",),
    "limited-1h": ("1h/*",),
    "limited-10h": ("1h/*", "9h"),
}


@dataclass(frozen=True)
class Subset:
    """What a subset is made of; ``subwords`` pieces of its training texts, 0 for characters."""

    train: tuple[str, ...]
    evaluation: tuple[str, ...] = ("dev-clean", "dev-other", "test-clean", "test-other")
    subwords: int = 0


SUBSETS: Mapping[str, Subset] = {
    "10min": Subset(("limited-10min",)),
    "1h": Subset(("limited-1h",)),
    "10h": Subset(("limited-10h",), subwords=150),
    "mini": Subset(("train-clean-5",), ("dev-clean-2",), subwords=150),
    "100": Subset(("train-clean-100",), subwords=1000),
    "460": Subset(("train-clean-100", "train-clean-360"), subwords=1000),
    "960": Subset(("train-clean-100", "train-clean-360", "train-other-500"), subwords=5000),
}
PARTS = (*OFFICIAL, *LIMITED)


def prepare(
    source: Path | str | None,
    out: Path | str,
    *,
    subset: Sequence[str] = (),
    url: str = "",
    skip_broken: bool = False,
    quiet: bool = False,
) -> list[Path]:
    """Write ``<part>.jsonl`` for each part, and subword tokenizers; the manifests are returned.

    ``subset`` names subsets (SUBSETS) or parts (PARTS); for a source it may be empty, which means
    every part that is found there. A subset whose tokenizer is one of subwords has it in
    ``tokenizer-<subset>/``. ``url`` stands in for both servers: ``<url>/12/dev-clean.tar.gz``,
    ``<url>/31/train-clean-5.tar.gz``, ``<url>/librispeech_finetuning.tgz``; a ``md5sum.txt`` beside
    an archive there says what its checksum must be. Audio stays where it is. Running it again
    changes nothing that is right already and finishes what was begun. Raises InputError for names
    that are unknown, for parts that are not there, and, with the names of files, for sound that
    cannot be decoded to its end and transcripts without sound or the other way round, unless
    ``skip_broken``.
    """
    out = Path(out)
    parts = _wanted(subset)
    if source is None:
        if not parts:
            raise InputError(
                f"--subset is needed for a download; valid: {', '.join((*SUBSETS, *PARTS))}"
            )
        source = _downloaded(parts, out, url, quiet)
    elif url:
        raise InputError("--url is for downloads; it does not go with a source")
    source = Path(source)
    found, broken = _from_tsv(source) if _has_tsv(source) else _from_folders(source, parts)
    missing = [part for part in parts if not found.get(part)]
    if missing:
        raise InputError(f"{source}: no part {', '.join(missing)} in it")
    if not found:
        raise InputError(
            f"{source}: neither a part of LibriSpeech ({', '.join(OFFICIAL)}) nor {_LIMITED} "
            "nor a manifest.tsv is in it"
        )
    refuse(broken, skip=skip_broken)
    done = {}
    for part in [part for part in PARTS if part in found and (not parts or part in parts)]:
        path = out / f"{part}.jsonl"
        done[part] = _checked(found[part], path, skip_broken=skip_broken, quiet=quiet)
        manifest.write(path, done[part])
    _tokenizers(done, [name for name in subset if name in SUBSETS], out)
    return [out / f"{part}.jsonl" for part in done]


def _wanted(names: Iterable[str]) -> list[str]:
    wanted: list[str] = []
    for name in names:
        if name in SUBSETS:
            wanted += [*SUBSETS[name].train, *SUBSETS[name].evaluation]
        elif name in PARTS:
            wanted.append(name)
        else:
            raise InputError(
                f"--subset: unknown name {name!r}; valid: {', '.join((*SUBSETS, *PARTS))}"
            )
    return list(dict.fromkeys(wanted))


# -- downloading


def _downloaded(parts: Collection[str], out: Path, url: str, quiet: bool) -> Path:
    """The folder that the parts are in, downloaded and unpacked where they were not."""
    base = url.rstrip("/")
    for part in parts:
        if part in OFFICIAL:
            number, checksum = OFFICIAL[part]
            archive = Archive(f"{base or OPENSLR}/{number}/{part}.tar.gz", checksum)
            folder = Path(_FOLDER) / part
        else:
            archive = Archive(f"{base or _LIBRILIGHT}/{_LIMITED}.tgz", _LIMITED_CHECKSUM)
            folder = Path(_LIMITED)
        if (out / folder).is_dir():
            continue
        if base:
            archive = download.published(archive)
        # FLAC does not get smaller: what is unpacked needs about as much room again.
        path = download.fetch(archive, out / "download", unpacked=1.05, quiet=quiet)
        _unpack(path, out, folder)
        path.unlink()
    return out


def _unpack(archive: Path, out: Path, folder: Path) -> None:
    """Unpack beside its place and move it there whole: a part that is there is complete."""
    aside = out / "download" / f"{folder.name}.unpacked"
    shutil.rmtree(aside, ignore_errors=True)
    download.unpack(archive, aside)
    if not (aside / folder).is_dir():
        raise InputError(f"{archive}: there is no {folder} in it")
    (out / folder).parent.mkdir(parents=True, exist_ok=True)
    for file in aside.glob("*/*"):  # the corpus' own notes and licence
        place = out / file.relative_to(aside)
        if file.is_file() and file.parent == (aside / folder).parent and not place.exists():
            shutil.move(file, place)
    (aside / folder).rename(out / folder)
    shutil.rmtree(aside)


# -- finding


def _has_tsv(source: Path) -> bool:
    return (source / "manifest.tsv").is_file()


def _from_tsv(source: Path) -> tuple[dict[str, list[Utterance]], list[str]]:
    """Utterances by part, and what is missing; the split is the part."""
    found: dict[str, list[Utterance]] = {}
    broken = []
    for utterance in sorted(manifest.read_tsv(source), key=lambda u: u.id):
        if utterance.split not in PARTS:
            raise InputError(
                f"{source / 'manifest.tsv'}: {utterance.id}: the split must be one of "
                f"{', '.join(PARTS)}, not {utterance.split!r}"
            )
        if not utterance.text.strip():
            broken.append(f"{source / 'manifest.tsv'}: {utterance.id}: no transcript")
        else:
            found.setdefault(utterance.split, []).append(utterance)
    return found, broken


def _from_folders(
    source: Path, parts: Collection[str]
) -> tuple[dict[str, list[Utterance]], list[str]]:
    """Utterances by part (all parts where none is asked for), and what does not belong together."""
    found: dict[str, list[Utterance]] = {}
    broken: list[str] = []
    for part in parts or PARTS:
        for chapters in _folders(source, part):
            utterances, wrong = _chapters(chapters, part)
            broken += wrong
            if utterances:
                found.setdefault(part, []).extend(utterances)
        found.get(part, []).sort(key=lambda utterance: utterance.id)
    return found, list(dict.fromkeys(broken))


def _folders(source: Path, part: str) -> list[Path]:
    """The folders that hold ``<speaker>/<chapter>/`` of a part."""
    if part in OFFICIAL:
        places = [source / _FOLDER / part, source / part]
        places += [source] if source.resolve().name == part else []
        return [place for place in places if place.is_dir()][:1]
    roots = [source / _LIMITED, source]
    root = next((root for root in roots if (root / "1h").is_dir()), None)
    if root is None:
        return []
    within = [folder for pattern in LIMITED[part] for folder in sorted(root.glob(pattern))]
    return [folder / kind for folder in within for kind in ("clean", "other")]


def _chapters(folder: Path, part: str) -> tuple[list[Utterance], list[str]]:
    """The utterances of ``<speaker>/<chapter>/``, and each file or line without its counterpart."""
    sounds = {path.stem: path for path in sorted(folder.glob("*/*/*.flac"))}
    texts: dict[str, str] = {}
    broken = []
    for path in sorted(folder.glob("*/*/*.trans.txt")):
        for number, line in _transcripts(path):
            id, _, text = line.strip().partition(" ")
            if id in texts:
                raise InputError(f"{path}:{number}: the id {id!r} was there already")
            texts[id] = text.strip()
            if id not in sounds:
                broken.append(f"{path}:{number}: no file {id}.flac")
            elif not texts[id]:
                broken.append(f"{path}:{number}: {id}: no transcript")
    broken += [f"{path}: no transcript" for id, path in sounds.items() if id not in texts]
    return [
        Utterance(id, path, 0.0, texts[id], path.parent.parent.name, part)
        for id, path in sounds.items()
        if texts.get(id)
    ], broken


def _transcripts(path: Path) -> list[tuple[int, str]]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 (byte {error.start})") from None
    return [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]


# -- checking


def _checked(
    utterances: Sequence[Utterance], path: Path, *, skip_broken: bool, quiet: bool
) -> list[Utterance]:
    """The utterances that can be decoded, with the durations that they really have."""
    heard, broken = hear(
        (utterance.audio for utterance in utterances), known=durations_of(path), quiet=quiet
    )
    refuse(list(broken.values()), skip=skip_broken)
    whole = [replace(u, duration=heard[u.audio].duration) for u in utterances if u.audio in heard]
    if not whole:
        raise InputError(f"{utterances[0].audio.parent}: nothing of {path.stem} can be decoded")
    return whole


def _tokenizers(done: Mapping[str, Sequence[Utterance]], asked: list[str], out: Path) -> None:
    """Subwords of each subset that was asked for; of those that are whole where none was."""
    from asr.text import SentencePieceTokenizer, normalise

    for name in asked or SUBSETS:
        subset = SUBSETS[name]
        if not subset.subwords or not set(subset.train) <= set(done):
            continue
        texts = [normalise(u.text) for part in subset.train for u in done[part]]
        try:
            tokenizer = SentencePieceTokenizer.train(texts, subset.subwords)
        except InputError as error:
            _log.warning("no tokenizer for the subset %s: %s", name, error)
            continue
        for file, content in tokenizer.files().items():
            manifest.write_bytes(out / f"tokenizer-{name}" / file, content)
