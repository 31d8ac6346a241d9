"""LibriSpeech's preparation: downloads from a server of our own, and folders that are there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import soundfile
import torchaudio

from asr.cli.main import main
from asr.data import checking, download, manifest
from asr.data.corpora import librispeech
from asr.data.corpora.librispeech import prepare
from asr.errors import InputError
from asr.text import Tokenizer

from .libri import Server, limited, official, packed, serving

EVALUATION = ("dev-clean", "dev-other", "test-clean", "test-other")


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    official(folder, "train-clean-5", "dev-clean-2", "train-clean-100", *EVALUATION)
    return limited(folder)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> tuple[Path, dict[str, str]]:
    """The archives as the servers have them, and their checksums."""
    root, sums = tmp_path_factory.mktemp("served"), {}
    for part in ("train-clean-5", "dev-clean-2", "train-clean-100", *EVALUATION):
        number = librispeech.OFFICIAL[part][0]
        sums[part] = packed(corpus, f"LibriSpeech/{part}", root / number / f"{part}.tar.gz")
    name = "librispeech_finetuning"
    sums[name] = packed(corpus, name, root / f"{name}.tgz")
    return root, sums


@pytest.fixture
def server(
    served: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    root, sums = served
    numbers = {part: number for part, (number, _) in librispeech.OFFICIAL.items()}
    table = {part: (numbers[part], sums.get(part, "md5:0")) for part in numbers}
    monkeypatch.setattr(librispeech, "OFFICIAL", table)
    monkeypatch.setattr(librispeech, "_LIMITED_CHECKSUM", sums["librispeech_finetuning"])
    monkeypatch.setattr(librispeech, "SUBSETS", few_subwords())
    monkeypatch.setattr(download, "_PATIENCE", 0.0)
    with serving(root) as server:
        yield server


def few_subwords() -> dict[str, librispeech.Subset]:
    """The subsets, with as few subwords as tiny texts can fill."""
    return {
        name: librispeech.Subset(subset.train, subset.evaluation, 34 if subset.subwords else 0)
        for name, subset in librispeech.SUBSETS.items()
    }


def test_the_published_checksums() -> None:
    theirs = torchaudio.datasets.librispeech._CHECKSUMS
    assert len(theirs) == 7
    for address, digits in theirs.items():
        number, part = address.split("/")[-2:]
        assert librispeech.OFFICIAL[part.removesuffix(".tar.gz")] == (number, f"sha256:{digits}")
    limited = torchaudio.datasets.librilight_limited
    assert f"sha256:{limited._CHECKSUM}" == librispeech._LIMITED_CHECKSUM
    assert f"{librispeech._LIBRILIGHT}/{librispeech._LIMITED}.tgz" == limited._URL
    assert {name.removeprefix("limited-"): list(w) for name, w in librispeech.LIMITED.items()} == (
        limited._SUBSET_MAP
    )


def test_a_download(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server.cuts = 2
    argv = ["prepare", "librispeech", "--subset", "mini", "--url", server.url, "-o", str(tmp_path)]
    assert main(argv) == 0
    shown = capsys.readouterr()
    assert [Path(line).stem for line in shown.out.splitlines()] == ["dev-clean-2", "train-clean-5"]
    assert shown.err.count("\n") == 1 and "prepared in" in shown.err
    utterances = manifest.read(tmp_path / "train-clean-5.jsonl")
    assert [u.id for u in utterances] == ["1-7-0000", "1-7-0001", "2-7-0000", "2-7-0001"]
    assert [u.duration for u in utterances] == [0.5, 0.75, 0.5, 0.75]
    assert utterances[0].text == "JUMPS OVER A LAZY DOG" and utterances[0].speaker == "1"
    assert utterances[0].audio == tmp_path / "LibriSpeech/train-clean-5/1/7/1-7-0000.flac"
    assert (tmp_path / "LibriSpeech" / "README.TXT").is_file()
    assert not list((tmp_path / "download").iterdir())
    assert Tokenizer.load(tmp_path / "tokenizer-mini").vocabulary_size == 34
    before, asked = contents(tmp_path), len(server.asked)
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")}
    assert main(argv) == 0
    assert contents(tmp_path) == before and len(server.asked) == asked
    assert stamps == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")}


def test_an_interrupted_download_goes_on(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(None, tmp_path / "whole", subset=["mini"], url=server.url)
    unpack = download.unpack

    def half(archive: Path, folder: Path) -> None:
        if archive.name == "dev-clean-2.tar.gz":
            folder.mkdir(parents=True)
            (folder / "LibriSpeech").mkdir()
            raise KeyboardInterrupt
        unpack(archive, folder)

    with monkeypatch.context() as patch:
        patch.setattr(download, "unpack", half)
        with pytest.raises(KeyboardInterrupt):
            prepare(None, tmp_path / "part", subset=["mini"], url=server.url)
    asked = len(server.asked)
    prepare(None, tmp_path / "part", subset=["mini"], url=server.url)
    assert not [path for path, _ in server.asked[asked:] if path.endswith(".gz")]
    assert contents(tmp_path / "part") == contents(tmp_path / "whole")


def test_the_limited_sets(server: Server, tmp_path: Path) -> None:
    for name, count in (("10min", 2), ("1h", 12), ("10h", 14)):
        written = prepare(None, tmp_path, subset=[name], url=server.url)
        assert [path.stem for path in written] == [*EVALUATION, f"limited-{name}"]
        assert len(manifest.read(tmp_path / f"limited-{name}.jsonl")) == count
    assert len([path for path, _ in server.asked if path.endswith(".tgz")]) == 1
    assert Tokenizer.load(tmp_path / "tokenizer-10h")
    assert not (tmp_path / "tokenizer-1h").exists()


def test_a_wrong_checksum_and_what_the_server_lacks(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=r"train-clean-360\.tar\.gz: the server says 404"):
        prepare(None, tmp_path, subset=["train-clean-360"], url=server.url)
    monkeypatch.setitem(librispeech.OFFICIAL, "dev-clean", ("12", "md5:0"))
    with pytest.raises(InputError, match="but 0 was published"):
        prepare(None, tmp_path, subset=["dev-clean"], url=server.url)
    assert not list(tmp_path.rglob("dev-clean*"))


@pytest.mark.parametrize("within", ["", "LibriSpeech", "LibriSpeech/dev-clean"])
def test_a_folder_that_is_there(corpus: Path, tmp_path: Path, within: str) -> None:
    written = prepare(corpus / within, tmp_path, subset=["dev-clean"] if within else [])
    if within:
        assert [path.stem for path in written] == ["dev-clean"]
    else:
        assert len(written) == 7 + 3
    utterance = manifest.read(tmp_path / "dev-clean.jsonl")[0]
    assert utterance.audio.is_file() and not list(tmp_path.rglob("*.flac"))
    assert utterance.split == "dev-clean"


def test_a_manifest_gives_the_same(corpus: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tsv"
    rows = ["id\taudio\tduration_s\tspeaker\tsplit\ttranscript"]
    for part in ("dev-clean", "test-clean"):
        prepare(corpus, tmp_path / "a", subset=[part])
        for u in reversed(manifest.read(tmp_path / "a" / f"{part}.jsonl")):
            (folder / part).mkdir(parents=True, exist_ok=True)
            shutil.copy(u.audio, folder / part)
            rows.append(f"{u.id}\t{part}/{u.audio.name}\t9.9\t{u.speaker}\t{part}\t{u.text}")
    (folder / "manifest.tsv").write_text("\n".join(rows) + "\n")
    prepare(folder, tmp_path / "b")
    for part in ("dev-clean", "test-clean"):
        a, b = (manifest.read(tmp_path / name / f"{part}.jsonl") for name in "ab")
        assert [(u.id, u.text, u.duration, u.speaker) for u in a] == [
            (u.id, u.text, u.duration, u.speaker) for u in b
        ]


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    return official(tmp_path / "broken", "dev-clean") / "LibriSpeech" / "dev-clean"


def damage(folder: Path, how: str) -> str:
    """Break something; what has to be named."""
    sound = folder / "1" / "7" / "1-7-0001.flac"
    texts = folder / "1" / "7" / "1-7.trans.txt"
    lines = texts.read_text().splitlines(keepends=True)
    if how == "nonsense":
        sound.write_bytes(b"no sound")
    elif how == "cut":
        sound.write_bytes(sound.read_bytes()[: sound.stat().st_size // 2])
    elif how == "gone":
        sound.unlink()
        return "1-7.trans.txt:2: no file 1-7-0001.flac"
    elif how == "unwritten":
        texts.write_text(lines[0])
        return "1-7-0001.flac: no transcript"
    else:
        texts.write_text(lines[0] + "1-7-0001\n")
        return "1-7.trans.txt:2: 1-7-0001: no transcript"
    return "1-7-0001.flac"


@pytest.mark.parametrize("how", ["nonsense", "cut", "gone", "unwritten", "empty"])
def test_what_is_broken_is_named(
    broken: Path, tmp_path: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = damage(broken, how)
    argv = ["prepare", "librispeech", str(broken), "-o", str(tmp_path / "out")]
    assert main(argv) == 1
    error = capsys.readouterr().err
    assert error.startswith("asr: error: ") and error.count("\n") == 1
    assert named in error and "--skip-broken" in error
    assert not (tmp_path / "out").exists()
    assert main([*argv, "--skip-broken"]) == 0
    error = capsys.readouterr().err
    assert "asr: warning: left out: " in error and named in error
    assert len(manifest.read(tmp_path / "out" / "dev-clean.jsonl")) == 3


def test_what_changed_is_listened_to_again(
    broken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Path] = []
    hear = checking._hear

    def counted(path: Path) -> object:
        heard.append(path)
        return hear(path)

    monkeypatch.setattr(checking, "_hear", counted)
    prepare(broken, tmp_path / "out")
    assert len(heard) == 4
    prepare(broken, tmp_path / "out")
    assert len(heard) == 4
    changed = broken / "1" / "7" / "1-7-0000.flac"
    sound, rate = soundfile.read(changed)
    soundfile.write(changed, sound[:4000], rate)
    prepare(broken, tmp_path / "out")
    assert heard[4:] == [changed]
    assert manifest.read(tmp_path / "out" / "dev-clean.jsonl")[0].duration == 0.25


@pytest.mark.parametrize(
    ("argv", "status", "told"),
    [
        ([], 1, "--subset is needed for a download; valid: 10min, 1h, 10h, mini, 100, 460, 960"),
        (["--subset", "200"], 1, "--subset: unknown name '200'; valid: 10min"),
        (["{source}", "--subset", "100"], 1, "no part train-clean-100, dev-other"),
        (["{source}", "--url", "http://x"], 1, "--url is for downloads"),
        (["{empty}"], 1, "neither a part of LibriSpeech"),
        (["{source}", "--leave-out", "1"], 2, "--leave-out is for fsdd, not for librispeech"),
        (["{source}", "{empty}"], 2, "one SOURCE is expected"),
    ],
)
def test_mistakes_are_one_line(
    broken: Path,
    tmp_path: Path,
    argv: list[str],
    status: int,
    told: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty").mkdir()
    places = {"source": str(broken), "empty": str(tmp_path / "empty")}
    given = [word.format(**places) for word in argv]
    assert main(["prepare", "librispeech", "-o", str(tmp_path / "out"), *given]) == status
    error = capsys.readouterr().err
    assert error.startswith("asr: error: ") and error.count("\n") == 1 and told in error, error


def test_an_id_twice(broken: Path, tmp_path: Path) -> None:
    texts = broken / "1" / "7" / "1-7.trans.txt"
    texts.write_text(texts.read_text() + "1-7-0000 AGAIN\n")
    with pytest.raises(InputError, match=r"trans\.txt:3: the id '1-7-0000' was there already"):
        prepare(broken, tmp_path / "out")
