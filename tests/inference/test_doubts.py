"""What a transcript warns of: words that are not sure, sound that was not listened to."""

from __future__ import annotations

import math

import pytest
import torch

from asr.inference import bundle, transcriber
from asr.inference.transcriber import Transcriber
from asr.types import Hypothesis, Waveform
from tests.inference.conftest import tiny
from tests.inference.sounds import RATE, noise


def answering(monkeypatch, confidence: float, every: int = 10) -> None:
    """A search that writes a letter of that probability for every so many frames."""

    def search(model, encoded, options):
        found = []
        for frames in encoded.lengths.tolist():
            heard = torch.arange(0, frames, every)
            weights = torch.nn.functional.one_hot(heard, frames).float().unsqueeze(1)
            log_probs = (math.log(confidence),) * len(heard)
            found.append([Hypothesis((4,) * (len(heard) - 1), -1.0, log_probs, weights)])
        return found

    monkeypatch.setattr(transcriber, "search", search)


@pytest.mark.parametrize(("confidence", "least"), [(0.7, 0.75), (0.8, 0.75), (0.7, 0.6)])
def test_words_that_the_model_is_not_sure_of_are_warned_of(
    tmp_path, model, tokenizer, monkeypatch, confidence, least
):
    settings = bundle.Settings(least_confidence=least)
    bundle.save(tmp_path / "b", model, tokenizer, card={}, settings=settings)
    listen = Transcriber.from_bundle(tmp_path / "b", device="cpu", max_piece_seconds=2.0)
    answering(monkeypatch, confidence)
    (found,) = listen([noise(5 * RATE)], record=True)
    unsure = [w for w in found.warnings if w.code == "low-confidence"]
    pieces = [(r.start, r.start + r.duration) for r in found.records]
    assert [(w.start, w.end) for w in unsure] == (pieces if confidence < least else [])
    assert all(f"{confidence:.2f}" in w.message for w in unsure)


@pytest.mark.parametrize(("every", "warned"), [(10, False), (60, True)])
def test_sound_that_is_mostly_not_listened_to_is_warned_of(listen, monkeypatch, every, warned):
    answering(monkeypatch, 0.95, every)
    (found,) = listen([noise(5 * RATE)])
    assert ("low-coverage" in [w.code for w in found.warnings]) == warned
    assert (found.attention["coverage"] < 0.4) == warned


def test_background_that_is_not_listened_to_is_nothing_missed(listen, monkeypatch):
    """A second of speech in ten of hiss: what was left out is not counted as sound."""
    answering(monkeypatch, 0.95)
    hiss = noise(10 * RATE, seed=5).samples * 0.01
    hiss[4 * RATE : 5 * RATE] += noise(RATE).samples
    (found,) = listen([Waveform(hiss, RATE)])
    assert found.text and found.warnings == ()
    assert found.attention["coverage"] == 1.0 and found.attention["unattended_tail"] < 0.3


@pytest.mark.parametrize("late", [0.0, 0.4, 1.8])
@pytest.mark.parametrize("margin", [0.0, 0.3])
def test_words_that_ctc_hears_elsewhere_are_warned_of(
    saved, tokenizer, monkeypatch, late, margin
) -> None:
    """Two words, both said before the third second; CTC spells them so much later."""
    listen = Transcriber.from_bundle(saved, device="cpu", margin_seconds=margin)
    shift = listen.model.frame_shift
    tokens = tuple(tokenizer.encode("ab cd"))
    margins = round(margin / shift)
    frames = [margins + round(t / shift) for t in (0.5, 0.8, 1.2, 1.6, 2.0)]

    def search(model, encoded, options):
        (size,) = encoded.lengths.tolist()
        rows = torch.tensor([*frames, size - 1])
        weights = torch.nn.functional.one_hot(rows, size).float().unsqueeze(1)
        return [[Hypothesis(tokens, -1.0, (-0.01,) * 6, weights)]]

    def ctc_log_probs(encoded):
        logits = torch.zeros(1, encoded.states.shape[1], 13)
        logits[..., 0] = 9.0  # blank
        for token, frame in zip(tokens, frames, strict=True):
            logits[0, frame + round(late / shift), token] = 20.0
        return logits.log_softmax(-1)

    monkeypatch.setattr(transcriber, "search", search)
    monkeypatch.setattr(listen.model, "ctc_log_probs", ctc_log_probs)
    (found,) = listen([noise(4 * RATE)], record=True)
    assert found.text == "ab cd"
    lost = late > 1
    assert found.attention["ctc_agreement"] == (0.0 if lost else 1.0)
    assert found.record.ctc_agreement == found.attention["ctc_agreement"]
    codes = [w.code for w in found.warnings]
    assert codes == (["attention-astray"] if lost else [])
    assert not lost or "100%" in found.warnings[0].message


def test_a_model_without_ctc_says_nothing_of_it(tmp_path, tokenizer) -> None:
    bundle.save(tmp_path / "b", tiny(ctc=False), tokenizer, card={}, settings=bundle.Settings())
    (found,) = Transcriber.from_bundle(tmp_path / "b", device="cpu")([noise(RATE)])
    assert found.attention and "ctc_agreement" not in found.attention
