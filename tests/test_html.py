"""What all pages share: hashes that name what is there, text that stays text, whole files."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest

from asr import html


def test_the_hash_is_what_browsers_compute() -> None:
    digest = base64.b64encode(hashlib.sha256(b"let a = 1;").digest()).decode()
    assert html.digest("let a = 1;") == f"sha256-{digest}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain <b> & \"text\"", "plain <b> & \"text\""),
        ("naïve שלום 𝒳 e\u0301", "naïve שלום 𝒳 e\u0301"),
        ("\u202eevil", "⟨U+202E⟩evil"),
        ("a\x00b\x1b[2J", "a⟨U+0000⟩b⟨U+001B⟩[2J"),
        ("zero\u200bwidth", "zero⟨U+200B⟩width"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("half \ud800", "half ⟨U+D800⟩"),
        ("two\nlines", "two⟨U+000A⟩lines"),
    ],
)  # fmt: skip
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    assert html.visible(text) == shown


def test_data_without_numbers_is_refused() -> None:
    template = html.environment("asr.evaluation").from_string("{{ data|tojson }}")
    assert template.render(data={"b": "</script>", "a": 1}).count("<") == 0
    with pytest.raises(ValueError, match="JSON"):
        template.render(data=float("nan"))


def test_files_are_whole_or_not_there(tmp_path: Path) -> None:
    html.write(tmp_path / "a.html", "one \ud800")
    html.write(tmp_path / "a.html", "two")
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]
    assert (tmp_path / "a.html").read_text() == "two"
    with pytest.raises(OSError):
        html.write(tmp_path / "nowhere" / "a.html", "x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        html.write(tmp_path / "folder", "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "folder"]
