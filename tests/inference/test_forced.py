"""Texts that are dictated: written as given, and placed in the sound."""

from __future__ import annotations

import pytest
import torch

from asr.inference import bundle
from asr.inference.transcriber import Transcriber
from asr.text import CharacterTokenizer
from tests.inference.sounds import noise, same


def test_forced_text_is_written_as_given(listen):
    waves = [noise(16_000), noise(9_000), noise(0)]
    first, second, third = listen.force(waves, ["Bad cab!", "a", "dad"])
    assert first.text == "bad cab"
    assert [w.word for w in first.words] == ["bad", "cab"]
    assert first.record.mode == "forced"
    assert first.record.tokens == (*"bad␣cab", "<eos>")
    assert first.decoding["mode"] == "forced"
    assert second.record.weights.shape[0] == 2
    assert third.text == "" and [w.code for w in third.warnings] == ["empty-audio"]


def test_forced_alone_and_in_company_are_alike(listen):
    waves, texts = [noise(16_000), noise(9_000)], ["bad cab", "a"]
    for found, wave, text in zip(listen.force(waves, texts), waves, texts, strict=True):
        (alone,) = listen.force([wave], [text])
        assert same(alone, found)
        assert torch.allclose(alone.record.weights, found.record.weights, atol=1e-5)


def test_the_attention_of_what_was_said_is_the_same_when_forced(tmp_path, model):
    # Without a space every text is its tokens.
    bundle.save(tmp_path / "b", model, CharacterTokenizer("abcdefghij"), card={})
    listen = Transcriber.from_bundle(tmp_path / "b", device="cpu", search={"beam_size": 2})
    wave = noise(4_000)
    (free,) = listen([wave], record=True)
    (told,) = listen.force([wave], [free.text])
    size = len(free.text)
    assert told.record.tokens[:size] == free.record.tokens[:size] == tuple(free.text) != ()
    difference = told.record.weights[:size] - free.record.weights[:size]
    assert difference.abs().max() < 1e-5


def test_characters_that_cannot_be_written_are_named(listen):
    (found,) = listen.force([noise(9_000)], ["zoë bad"])
    (warning,) = [w for w in found.warnings if w.code == "unknown-characters"]
    assert all(c in warning.message for c in "zoë")
    (empty,) = listen.force([noise(9_000)], [""])
    assert empty.record.tokens == ("<eos>",)


def test_a_text_for_each_waveform(listen):
    with pytest.raises(ValueError, match="2 texts for 1 waveforms"):
        listen.force([noise(9_000)], ["a", "b"])
