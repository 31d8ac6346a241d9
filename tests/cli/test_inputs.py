"""Which sounds the arguments stand for, and what is written for each."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from asr.cli.inputs import Expanded, expand, file_name, name_outputs
from asr.cli.options import UsageError


def touch(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of many kinds of files, and the current one."""
    touch(
        tmp_path / "in",
        "b.wav", "a.mp3", "it's a.file.flac", "no suffix", ".hidden.wav", "notes.txt", "t.TSV",
        "t.csv", "t.json", "t.jsonl", "README.md", "sub/c.wav", "sub/deep/d.wav", ".git/e.wav",
    )  # fmt: skip
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(expanded: Expanded) -> list[str]:
    assert not expanded.errors
    return [each.name for each in name_outputs(expanded.inputs)]


def test_a_folder(tree: Path) -> None:
    expanded = expand(["in"])
    assert names(expanded) == ["a", "b", "it's a.file", "no suffix"]
    assert [each.label for each in expanded.inputs] == [
        os.path.join("in", name) for name in ("a.mp3", "b.wav", "it's a.file.flac", "no suffix")
    ]


def test_below_a_folder_the_tree_is_mirrored(tree: Path) -> None:
    assert names(expand(["in"], recursive=True)) == [
        "a", "b", "it's a.file", "no suffix", "sub/c", "sub/deep/d"
    ]  # fmt: skip
    assert names(expand([str(tree / "in/sub")], recursive=True)) == ["c", "deep/d"]


def test_files_land_at_the_top(tree: Path) -> None:
    for path in ("in/sub/c.wav", "./in/sub/c.wav", str(tree / "in/sub/c.wav")):
        (each,) = expand([path]).inputs
        assert (each.name, each.id, each.label, str(each.path)) == ("c", "c", None, str(Path(path)))


def test_what_lies_in_no_suffix_list_is_tried_when_named(tree: Path) -> None:
    assert names(expand(["in/notes.txt", "in/.hidden.wav"])) == ["notes", ".hidden"]


def test_globs(tree: Path) -> None:
    assert names(expand(["in/*.wav"])) == ["b"]
    assert names(expand(["in/*/*.wav"])) == ["sub/c"]
    assert names(expand(["in/**/*.wav"])) == ["b", "sub/c", "sub/deep/d"]
    assert names(expand([str(tree / "in" / "s*" / "[a-c].wav")])) == ["sub/c"]
    assert names(expand(["in/s*"], recursive=True)) == ["sub/c", "sub/deep/d"]
    assert expand(["in/*.wav"]).inputs[0].label == os.path.join("in", "b.wav")


def test_names_with_wildcards_in_them(tree: Path) -> None:
    touch(tree, "take [1].wav", "what?.wav")
    assert names(expand(["take [1].wav", "what?.wav"])) == ["take [1]", "what?"]


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("nowhere.wav", "nowhere.wav: no such file or folder"),
        ("*.nothing", "*.nothing: no file matches"),
        ("empty", "empty: no files to transcribe in this folder; --recursive looks below it too"),
        ("in/s*", "in/s*: only folders match; --recursive goes into them"),
        ("@nolist.txt", "nolist.txt: the list cannot be read (No such file or directory)"),
        ("@empty.txt", "empty.txt: the list is empty"),
        ("empty.jsonl", "empty.jsonl: the manifest is empty"),
        ("broken.jsonl", "broken.jsonl:1: not JSON"),
    ],
)
def test_what_stands_for_nothing_is_named_and_the_rest_goes_on(
    tree: Path, argument: str, reason: str
) -> None:
    touch(tree, "empty/notes.txt", "empty.txt", "empty.jsonl")
    (tree / "broken.jsonl").write_text("{\n")
    expanded = expand([argument, "in/b.wav"])
    (error,) = expanded.errors
    assert error.startswith(reason)
    assert [each.name for each in expanded.inputs] == ["b"]
    assert expanded.inputs[0].label is not None  # there were two arguments


def test_a_list(tree: Path) -> None:
    """Relative to the list's own folder, whatever the current one."""
    listed = ["sub/c.wav", "", str(tree / "in/b.wav"), "a.mp3\r", "gone.wav", "s*/deep/*"]
    (tree / "in/list.txt").write_bytes(b"\xef\xbb\xbf" + "\n".join(listed).encode())
    expanded = expand(["@in/list.txt"])
    assert [each.name for each in expanded.inputs] == ["sub/c", "b", "a", "sub/deep/d"]
    assert expanded.inputs[0].path == Path("in/sub/c.wav")
    assert expanded.errors == (f"{Path('in/gone.wav')}: no such file or folder",)
    assert all(each.label for each in expanded.inputs)


def test_a_list_beside_us(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree / "in")
    Path("list").write_text("../in/sub/c.wav\nsub/deep/d.wav\n")
    assert names(expand(["@list"])) == ["in/sub/c", "sub/deep/d"]  # never above the output folder


def test_a_manifest(tree: Path) -> None:
    rows = [
        {"id": "a/b c%é", "audio": "b.wav"},
        {"id": "..", "audio": "/abs/x.wav", "start": 1.5, "end": 2},
    ]
    path = tree / "in/m.jsonl"
    path.write_text("\n\n".join(map(json.dumps, rows)), encoding="utf-8")
    first, second = expand([str(path)]).inputs
    assert (first.id, first.label, first.name) == ("a/b c%é", "a/b c%é", "a%2Fb c%é")
    assert first.path == tree / "in/b.wav"
    assert (second.id, second.name) == ("..", "%2E%2E")
    assert (second.start, second.end, second.path) == (1.5, 2, Path("/abs/x.wav"))


@pytest.mark.parametrize(
    ("id", "name"),
    [
        ("84-121550-0000", "84-121550-0000"), ("a/b", "a%2Fb"), (".", "%2E"), ("a\0\n", "a%00%0A"),
        ("日本", "日本"), ("\ud800", "%ED%A0%80"), (".x", ".x"), ("50%", "50%"),
    ],
)  # fmt: skip
def test_ids_as_file_names(tmp_path: Path, id: str, name: str) -> None:
    assert file_name(id) == name
    (tmp_path / f"{file_name(id)}.txt").touch()  # a file system can hold it
    assert [path.name for path in tmp_path.iterdir()] == [f"{name}.txt"]


def test_standard_input(tree: Path) -> None:
    (each,) = expand(["-"]).inputs
    assert (each.path, each.name, each.label) == (None, "stdin", None)
    assert expand(["-", "in/b.wav"]).inputs[0].label == "stdin"
    with pytest.raises(UsageError):
        expand(["-", "in/b.wav", "-"])


def test_names_that_coincide_keep_their_suffix(tree: Path) -> None:
    touch(tree, "jfk.mp3", "jfk.wav", "other.wav")
    inputs = name_outputs(expand(["jfk.mp3", "jfk.wav", "other.wav"]).inputs)
    assert [each.name for each in inputs] == ["jfk.mp3", "jfk.wav", "other"]
    assert [each.id for each in inputs] == ["jfk.mp3", "jfk.wav", "other"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["x/a.wav", "y/a.wav"],
        ["x/a.wav", "x/a.wav"],
        ["x/a.wav", "x"],
        ["x", "y"],
        ["a", "a.wav", "x/a.wav"],
        ["-", "stdin"],
        ["a.jsonl", "x/a"],
    ],
)
def test_what_still_coincides_is_refused(tree: Path, arguments: list[str]) -> None:
    touch(tree, "x/a.wav", "y/a.wav", "a", "a.wav", "stdin", "x/a")
    (tree / "a.jsonl").write_text(json.dumps({"id": "a", "audio": "b.wav"}))
    expanded = expand(arguments)
    assert not expanded.errors
    with pytest.raises(UsageError, match="would both be written as"):
        name_outputs(expanded.inputs)


def test_a_tree_and_its_parts_do_not_coincide(tree: Path) -> None:
    touch(tree, "x/a.wav", "y/a.wav")
    os.rename(tree / "in", tree / "old")
    touch(tree, "both/x/a.wav", "both/y/a.wav")
    assert names(expand(["both"], recursive=True)) == ["x/a", "y/a"]
    assert names(expand(["both/*/a.wav"])) == ["x/a", "y/a"]
