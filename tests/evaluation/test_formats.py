"""Formats are told apart by content; what is wrong is named with its line."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

from asr.errors import InputError
from asr.evaluation.formats import read


def written(tmp_path: Path, content: str | bytes, name: str = "any.xyz") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("a\tI\nb\thello world\n", "tsv"),
        ("a I\nb hello world\n", "kaldi"),
        ("a   I\nb hello\tworld\n", "kaldi"),
        ("I (a)\nhello world (b)\n", "trn"),
        ('{"id": "a", "text": "I"}\n{"id": "b", "text": "hello world", "speaker": "s"}\n', "jsonl"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("suffix", ["txt", "jsonl", "trn"])
def test_format_by_content(
    tmp_path: Path, content: str, name: str, end: str, mark: str, suffix: str
) -> None:
    content = mark + content.replace("\n", end) + end
    found = read(written(tmp_path, content, f"x.{suffix}"))
    assert found.format == name
    assert {id: text.split() for id, text in found.texts.items()} == {
        "a": ["I"],
        "b": ["hello", "world"],
    }


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a\t\nb\tx\n", {"a": "", "b": "x"}),
        ("a\nb\tx\n", {"a": "", "b": "x"}),  # an editor removed the tab at the line's end
        ("a\nb x\n", {"a": "", "b": "x"}),
        ("(a)\nx (b)\n", {"a": "", "b": "x"}),
        ('{"id": "a", "text": ""}\n{"id": 7, "text": "x"}\n', {"a": "", "7": "x"}),
        ("my file.wav\tx y\n", {"my file.wav": "x y"}),
        ("\n  \na\tx\n\n", {"a": "x"}),
        ("", {}),
        ("a\tx\t\n", {"a": "x"}),
        ("well (I mean) yes (a)\n", {"a": "well (I mean) yes"}),
    ],
)
def test_blank_texts_and_lines(tmp_path: Path, content: str, expected: dict[str, str]) -> None:
    assert read(written(tmp_path, content)).texts == expected


@pytest.mark.parametrize("character", ["\x0b", "\x0c", "\x1c", "\x1e", "\x85", "\u2028", "\u2029"])
@pytest.mark.parametrize("line", ["a\tx{}y\n", "a x{}y\n", "x{}y (a)\n"])
def test_only_newlines_end_a_line(tmp_path: Path, character: str, line: str) -> None:
    found = read(written(tmp_path, line.format(character) + line.replace("a", "b").format(" ")))
    assert [(id, text.split()) for id, text in found.texts.items()] == [
        ("a", ["x", "y"]),
        ("b", ["x", "y"]),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tx\n\na\ty\n", "line 3: id 'a' is that of line 1 too"),
        ("a x\na y\n", "line 2: id 'a' is that of line 1 too"),
        ("x (a)\r\ny (a)\r\n", "line 2: id 'a'"),
        ('{"id": "a", "text": "x"}\n{"id": "a", "text": "x"}', "line 2: id 'a'"),
        ("a\tx\n\ty\n", "line 2: no utterance id"),
        ("a\tx\nb\ty\t1.0\tspk\n", "line 2: 4 columns; id<TAB>text is expected"),
        ("id\ttext\na\tx\n", "line 1: a header"),
        ("a\x07\tx\n", r"line 1: control character in the id 'a\\x07'"),
        ('{"id": "a", "text": "x"}\n{"id": "b", "tex\n', "line 2: not JSON"),
        ('{"id": "a", "text": "x"}\nb y\n', "line 2: not JSON"),
        ('{"id": "a", "text": "x"}\n[1]\n', "line 2: one JSON object"),
        ('{"id": "a"}\n', r"line 1: no 'text' \(id 'a'\)"),
        ('{"id": "a", "text": null}\n', "line 1: no 'text'"),
        ('{"id": "a", "text": 3}\n', "line 1: 'text' must be a string, not 3"),
        ('{"text": "x"}\n', "line 1: no utterance id"),
        ('{"id": true, "text": "x"}\n', "line 1: 'id' must be a string"),
        ("[\n{}\n]\n", "line 1: a JSON list"),
        ("a 1 0.0 0.5 x\na 2 0.5 0.5 y\n", "line 2: channel 2 of 'a', which has channel 1"),
        ("a 1 0.0 0.5 x\nb * 0.5 0.5 y\n", "line 2: alternative words"),
        ("a 1 s 0.0 0.5 <o> x y\nb 1 s 1.0 2.5 z\n", "line 1: NIST stm"),
        ('{\n "wer": 1\n}\n', "line 1: a JSON object that is no transcript"),
        ("a\tx\nb\ty\x07z\n", r"line 2: control character '\\x07' in the text of 'b'"),
        ("a x\nb \x1b[2Jy\n", r"line 2: control character '\\x1b'"),
        ("a\tx\n".encode("utf-16"), "line 1: UTF-16 text; UTF-8 is expected"),
        ("a\tx\n".encode("utf-16-be"), "line 1: NUL byte"),
        (b"a\tx\nb\tcaf\xe9\n", "line 2: byte 0xe9 is not UTF-8"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.tsv: cannot be read"):
        read(tmp_path / "nothing.tsv")


def test_ids_are_composed(tmp_path: Path) -> None:
    id = "caf\u00e9"
    path = written(tmp_path, f"{unicodedata.normalize('NFD', id)}\tx\n")
    assert list(read(path).texts) == [id]


def test_fields_of_json_lines(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "text": "x", "audio": "a.wav", "speaker": "s1", "words": [], "duration": 1.5},
        {"id": "b", "text": "y", "speaker": "", "session": 4},
    ]
    found = read(written(tmp_path, "\n".join(map(json.dumps, rows))))
    assert found.fields == {
        "a": {"audio": "a.wav", "speaker": "s1", "duration": 1.5},
        "b": {"speaker": "", "session": 4},
    }


def test_ctm(tmp_path: Path) -> None:
    content = ";; made by hand\nb 1 0.00 0.5 x 0.9\na A 1 .5 world\na A 0.2 0.8 hello 0.25\n"
    found = read(written(tmp_path, content))
    assert found.format == "ctm"
    assert found.texts == {"b": "x", "a": "hello world"}
    assert found.words == {"b": [("x", 0.9)]}  # of `world` there is no confidence
    assert not read(written(tmp_path, "a 1 0.0 1.0 x 1.5\n")).words


def test_spoken_numbers_are_no_ctm(tmp_path: Path) -> None:
    found = read(written(tmp_path, "a 1 2 3 4\nb 5 6 7 8 9\n"))
    assert (found.format, found.texts) == ("kaldi", {"a": "1 2 3 4", "b": "5 6 7 8 9"})


def test_what_the_product_writes_is_read(tmp_path: Path) -> None:
    """One file of every format that says which utterance it is."""
    from asr.cli.timed import ctm
    from asr.types import Transcript, Word

    words = (Word("it's", 0.0, 0.5, 0.9), Word("é", 0.5, 1.0, 0.8))
    content = ctm(Transcript("u 1", "it's é", words, 1.0))
    assert read(written(tmp_path, content)).texts == {"u 1": "it's é"}
    row = {"schema": "asr-transcript/1", "id": "u 1", "text": "it's é", "words": [
        {"word": word.word, "confidence": word.confidence} for word in words
    ]}  # fmt: skip
    for indent in (None, 1):
        found = read(written(tmp_path, json.dumps(row, indent=indent)))
        assert found.texts == {"u 1": "it's é"}
        assert found.words == {"u 1": [("it's", 0.9), ("é", 0.8)]}


def test_folder_of_transcripts(tmp_path: Path) -> None:
    def put(name: str, content: object) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))

    put("one.json", {"schema": "asr-transcript/1", "id": "named inside", "text": "from json"})
    put("one.txt", "not looked at\n")
    put("deep/er/two.txt", "first line\nsecond\n")
    put("a%2Fb.txt", "percent\n")
    put("c.d.json", {"text": "no id"})
    put("blank.txt", "\n")
    put("report.json", {"schema": "asr-evaluation/1", "wer": 0.5})
    put(".hidden.json", "half writ")
    put("one.srt", "1\n")
    found = read(tmp_path)
    assert found.format == "folder"
    assert {id: " ".join(text.split()) for id, text in found.texts.items()} == {
        "named inside": "from json",
        "deep/er/two": "first line second",
        "a/b": "percent",
        "c.d": "no id",
        "blank": "",
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"x.json": "{"}, "x.json: not JSON"),
        ({"x.json": "[]"}, "x.json: a JSON object"),
        ({"x.json": '{"id": "a"}'}, "x.json: no 'text'"),
        ({"x.json": '{"id": "y", "text": ""}', "y.txt": ""}, "id 'y' is that of x.json too"),
        ({"x.srt": ""}, "no .json or .txt transcript in this folder"),
    ],
)
def test_folder_errors(tmp_path: Path, content: dict[str, str], message: str) -> None:
    for name, text in content.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read(tmp_path)
