"""Tokenizers: the same specials everywhere, exact round trips, spans that spell their words."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter

import pytest
import sentencepiece

from asr.errors import InputError
from asr.text import BLANK, EOS, UNK, CharacterTokenizer, SentencePieceTokenizer, Tokenizer

TEXTS = ["the cat sat on the mat", "a dog's life", "naïve cats and dogs", "o'clock"] * 3


@pytest.fixture(scope="module", params=["characters", "unigram", "bpe"])
def tokenizer(request) -> Tokenizer:
    if request.param == "characters":
        return CharacterTokenizer.train(TEXTS)
    return SentencePieceTokenizer.train(TEXTS, 26, model_type=request.param)


def random_ids(tokenizer: Tokenizer, seed: int) -> list[int]:
    draw = random.Random(seed)
    return [draw.randrange(tokenizer.vocabulary_size) for _ in range(draw.randrange(30))]


def test_specials_have_the_same_ids_in_every_tokenizer(tokenizer):
    assert (BLANK, EOS, UNK) == (0, 1, 2)
    assert [tokenizer.token(id) for id in range(3)] == ["<blank>", "<eos>", "<unk>"]


def test_known_text_comes_back_and_uses_no_special(tokenizer):
    for text in [*TEXTS, "", "the dogs sat"]:
        ids = tokenizer.encode(text)
        assert min(ids, default=3) >= 3
        assert tokenizer.decode(ids) == text


def test_unknown_characters_become_unk_and_are_listed(tokenizer):
    ids = tokenizer.encode("the Zebra")
    assert UNK in ids
    assert max(ids) < tokenizer.vocabulary_size
    counted = tokenizer.missing(["the Zebra ZZ", "Ж"])
    assert counted == {"Z": 3, "b": 1, "r": 1, "Ж": 1}
    assert next(iter(counted)) == "Z"
    assert tokenizer.missing(TEXTS) == {}


def test_case_is_the_callers(tokenizer):
    assert tokenizer.encode("THE") != tokenizer.encode("the")


@pytest.mark.parametrize("seed", range(20))
def test_whatever_the_ids_no_special_is_in_the_text(tokenizer, seed):
    ids = random_ids(tokenizer, seed)
    assert not {"<", ">"} & set(tokenizer.decode(ids))


@pytest.mark.parametrize("seed", range(20))
def test_words_are_the_texts_and_their_spans_spell_them(tokenizer, seed):
    ids = random_ids(tokenizer, seed)
    found = tokenizer.words(ids)
    assert [word for word, _, _ in found] == tokenizer.decode(ids).split()
    borders = [border for _, first, end in found for border in (first, end)]
    assert all(first < end for _, first, end in found)
    assert borders == sorted(borders)
    for word, first, end in found:
        assert tokenizer.decode(ids[first:end]).strip() == word


def test_spans_of_characters_leave_spaces_out():
    tokenizer = CharacterTokenizer(" abc")
    ids = [EOS, *tokenizer.encode("ab  c"), UNK, EOS]
    assert tokenizer.words(ids) == [("ab", 1, 3), ("c", 5, 6)]
    assert tokenizer.token(tokenizer.encode(" ")[0]) == "␣"


def test_subwords_decode_as_the_library_does():
    ours = SentencePieceTokenizer.train(TEXTS, 26)
    theirs = sentencepiece.SentencePieceProcessor(model_proto=ours.files()["tokenizer.model"])
    for text in TEXTS:
        assert ours.encode(text) == theirs.encode(text)
        assert ours.decode(ours.encode(text)) == theirs.decode(theirs.encode(text))


@pytest.mark.parametrize("id", [-1, 10**6])
def test_an_id_out_of_range_is_refused(tokenizer, id):
    with pytest.raises(ValueError, match="id must be in"):
        tokenizer.token(id)
    with pytest.raises(ValueError, match="id must be in"):
        tokenizer.decode([id])


def test_saved_and_loaded_it_is_the_same(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "new")
    again = Tokenizer.load(tmp_path / "new")
    assert type(again) is type(tokenizer)
    assert again.fingerprint == tokenizer.fingerprint
    assert len(again.fingerprint) == 64
    assert [again.token(i) for i in range(again.vocabulary_size)] == [
        tokenizer.token(i) for i in range(tokenizer.vocabulary_size)
    ]
    assert again.encode("the Zebra's mat") == tokenizer.encode("the Zebra's mat")


def test_training_is_deterministic_and_fingerprints_tell_apart():
    prints = Counter(SentencePieceTokenizer.train(TEXTS, size).fingerprint for size in (25, 26, 25))
    assert sorted(prints.values()) == [1, 2]
    assert CharacterTokenizer("ab").fingerprint != CharacterTokenizer("ba").fingerprint


@pytest.mark.parametrize("characters", ["", "aba"])
def test_characters_must_be_some_and_differ(characters):
    with pytest.raises(ValueError, match="each once"):
        CharacterTokenizer(characters)


@pytest.mark.parametrize(
    ("texts", "size", "reason"),
    [(TEXTS, 5, "5"), (TEXTS, 500, "<= "), ([], 20, "empty"), (["", " "], 20, "vocabulary_size")],
)
def test_pieces_that_cannot_be_learnt_say_why_on_one_line(texts, size, reason):
    with pytest.raises(InputError, match=reason) as error:
        SentencePieceTokenizer.train(texts, size)
    assert "\n" not in str(error.value)


def test_a_model_with_other_special_ids_is_refused(tmp_path):
    prefix = tmp_path / "foreign"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS), model_prefix=str(prefix), vocab_size=26, minloglevel=2
    )
    with pytest.raises(InputError, match="must be 0, 1, 2"):
        SentencePieceTokenizer(prefix.with_suffix(".model").read_bytes())


GOOD = {"format": 1, "kind": "characters", "characters": "ab"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "no such file"),
        ("", "not a saved tokenizer"),
        ("{", "not a saved tokenizer"),
        ("[]", "not a saved tokenizer"),
        ("[" * 100_000, "not a saved tokenizer"),
        (GOOD | {"format": 2}, "format 2"),
        (GOOD | {"kind": "os.system"}, "valid: characters, sentencepiece"),
        (GOOD | {"kind": ["a"]}, "not a saved tokenizer"),
        ({"format": 1, "kind": "characters"}, "'characters' is missing"),
        (GOOD | {"characters": ["a"]}, "must be a string"),
        (GOOD | {"characters": "aa"}, "each once"),
        ({"format": 1, "kind": "sentencepiece", "model": "../m"}, "model must be"),
        ({"format": 1, "kind": "sentencepiece", "model": "tokenizer.model"}, "is missing"),
    ],
)
def test_a_file_that_is_none_is_refused_by_name(tmp_path, content, reason):
    if content is not None:
        text = content if isinstance(content, str) else json.dumps(content)
        (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(InputError, match=reason) as error:
        Tokenizer.load(tmp_path)
    assert str(tmp_path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("model", [b"", b"no model", b"\x80\x04" * 50])
def test_bytes_that_are_no_model_are_refused(model):
    with pytest.raises(InputError, match="not a SentencePiece model"):
        SentencePieceTokenizer(model)


def test_texts_need_no_torch():
    script = "import asr.text, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
