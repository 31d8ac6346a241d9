"""Normalisers: what they write, that they are stable, and what they say of themselves."""

from __future__ import annotations

import random
import subprocess
import sys
import unicodedata
from importlib.metadata import version

import pytest

from asr.text.normalise import NORMALIZERS, describe, normalise


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, World!", "hello world"),
        ("I DON'T  know", "i don't know"),
        ("don\u2019t don\u02bct don\u00b4t don`t don\uff07t", "don't don't don't don't don't"),
        ("'quoted' \u2018so\u2019 ''twice''", "quoted so twice"),
        ("the dogs' o'clock rock 'n' roll", "the dogs o'clock rock n roll"),
        ("well-known \u2014 yes\u2026 (really) [no]", "well known yes really no"),
        ("\u00bfQu\u00e9? \u00a1S\u00ed! Stra\u00dfe", "qué sí straße"),
        ("e\u0301te\u0301", "\u00e9t\u00e9"),
        ("\ufb01ne \uff21\uff22 \u00bd", "fine ab 1 2"),
        ("\u0130stanbul", unicodedata.normalize("NFKC", "i\u0307stanbul")),
        ("a\tb\u00a0c\nd\u2028e\x0bf\x00g", "a b c d e f g"),
        ("soft\u00adhyphen zero\u200bwidth \ufeffmark", "softhyphen zerowidth mark"),
        ("\u0645\u06cc\u200c\u0631\u0648\u0645", "\u0645\u06cc\u200c\u0631\u0648\u0645"),
        ("\u266a la $5 a+b", "la 5 a b"),
        ("thirty six", "thirty six"),
        (" ... ' - ", ""),
        ("", ""),
    ],
)
def test_basic(text: str, expected: str) -> None:
    assert normalise(text, "basic") == expected


def test_basic_is_the_default_and_none_changes_nothing() -> None:
    text = " A, b\t"
    assert normalise(text) == "a b"
    assert normalise(text, "none") == text


def test_basic_is_idempotent_and_leaves_no_punctuation() -> None:
    generator = random.Random(5)
    pool = [chr(generator.randrange(0x20, 0x2FFF)) for _ in range(300)]
    pool += list("''' .-aA\u0130\u00b4")
    for _ in range(500):
        once = normalise("".join(generator.choices(pool, k=20)), "basic")
        assert normalise(once, "basic") == once
        assert once == " ".join(once.split())
        assert not any(unicodedata.category(c)[0] in "PS" for c in once.replace("'", ""))
        assert all(word.strip("'") == word for word in once.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("thirty six", "36"),
        ("three thousand and six", "3006"),
        ("one hundred and one", "101"),
        ("Mr. Brown can't favour the colour", "mister brown can not favor the color"),
        ("[noise] uh hello", "hello"),
        ("", ""),
    ],
)
def test_english_numbers_and_spellings(text: str, expected: str) -> None:
    assert normalise(text, "english") == expected


def test_described_with_versions() -> None:
    assert describe("none") == {"name": "none", "version": ""}
    assert describe("basic")["version"]
    english = describe("english")
    assert english["version"] == version("whisper-normalizer")
    assert english["library"] == "whisper-normalizer"
    assert [describe(how)["name"] for how in NORMALIZERS] == list(NORMALIZERS)


@pytest.mark.parametrize("call", [lambda: normalise("a", "german"), lambda: describe("german")])
def test_unknown_name_lists_the_valid_ones(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="none, basic, english, not 'german'"):
        call()


def test_the_library_is_imported_only_when_used() -> None:
    code = (
        "import sys; from asr.text.normalise import normalise; normalise('A', 'basic');"
        "assert 'whisper_normalizer' not in sys.modules; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
