"""What a transcript warns of: words that are not sure, sound that was not listened to."""

from __future__ import annotations

import math

import pytest
import torch

from asr.inference import bundle, transcriber
from asr.inference.transcriber import Transcriber
from asr.types import Hypothesis, Waveform
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
