"""A record can be believed: rows, sums and seconds are checked when it is made."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from asr.inspection.records import (
    by_piece,
    frames_within,
    record_of,
    save,
    sound_of,
    validate,
)
from asr.text import CharacterTokenizer
from asr.types import Hypothesis, TranscriptWarning
from tests.inspection.planted import SHIFT, record, rows, transcript, wave

TOKENIZER = CharacterTokenizer("ab ")
IDS = tuple(TOKENIZER.encode("a b"))


def model(*, normalised: bool = True):
    attention = SimpleNamespace(normalised=normalised)
    return SimpleNamespace(frame_shift=SHIFT, speller=SimpleNamespace(attention=attention))


def hypothesis(weights, **fields):
    return Hypothesis(IDS, -1.0, (-0.1,) * len(weights), weights, **fields)


def test_tokens_as_produced_with_the_eos_row():
    weights = rows((0, 1), (1, 2), (2, 3), (3, 4), frames=4)
    made = record_of("x", hypothesis(weights), TOKENIZER, model(), 4 * SHIFT, start=3.0)
    assert made.tokens == ("a", "␣", "b", "<eos>")
    assert (made.mode, made.start, made.duration) == ("free", 3.0, 4 * SHIFT)
    assert made.weights.dtype == torch.float32
    cut = hypothesis(weights[:3], ended=False)
    assert record_of("x", cut, TOKENIZER, model(), 4 * SHIFT).tokens == ("a", "␣", "b")


def test_padding_of_the_batch_is_cut_but_attention_never_is():
    weights = rows((0, 1), (1, 2), (2, 3), (3, 4), frames=9)
    assert record_of("x", hypothesis(weights), TOKENIZER, model(), 4 * SHIFT).weights.shape[-1] == 4
    weights[3, 0] = torch.eye(9)[8]
    with pytest.raises(ValueError, match="x: 9 frames of 0.04 s end at 0.360 s"):
        record_of("x", hypothesis(weights), TOKENIZER, model(), 4 * SHIFT)


@pytest.mark.parametrize("samples", [1, 639, 640, 641, 16000, 16001, 560000])
def test_the_last_frame_ends_within_one_frame_of_the_audio(samples):
    duration = samples / 16000
    frames = frames_within(duration, SHIFT)
    assert frames == -(-samples // 640)
    made = record(rows((0, 1), frames=frames), duration=duration)
    assert validate(made) is made
    assert 0 <= frames * SHIFT - made.duration < SHIFT
    with pytest.raises(ValueError, match="more than a frame away"):
        validate(record(rows((0, 1), frames=frames + 2), duration=duration))


def test_rows_must_sum_to_one_unless_the_mechanism_may_stop():
    half = record(0.5 * rows((0, 1), frames=2))
    with pytest.raises(ValueError, match=r"example: a row sums to 0\.5000; 1 is right"):
        validate(half)
    assert validate(half, normalised=False) is half
    for normalised in (True, False):
        with pytest.raises(ValueError, match=r"sums to 2\.0000; at most 1"):
            validate(record(2 * rows((0, 1), frames=2)), normalised=normalised)
    weights = 0.5 * rows((0, 1), (1, 2), (2, 3), (3, 4), frames=4)
    with pytest.raises(ValueError, match="1 is right"):
        record_of("x", hypothesis(weights), TOKENIZER, model(), 4 * SHIFT)
    record_of("x", hypothesis(weights), TOKENIZER, model(normalised=False), 4 * SHIFT)


def test_other_nonsense_is_refused():
    with pytest.raises(ValueError, match="1 rows of weights for 2 tokens"):
        validate(record(rows((0, 1), frames=2), "ab"))
    with pytest.raises(ValueError, match="finite"):
        validate(record(torch.full((1, 1, 2), float("nan"))))
    with pytest.raises(ValueError, match="not negative"):
        validate(record(torch.tensor([[[1.5, -0.5]]])))
    with pytest.raises(ValueError, match="shape"):
        validate(record(torch.ones(1, 1)))
    with pytest.raises(ValueError, match="without keeping its weights"):
        record_of("x", Hypothesis(IDS, 0.0, ()), TOKENIZER, model(), 1.0)


def test_nothing_written_about_nothing_heard_is_fine():
    validate(record(torch.zeros(0, 1, 0), duration=0.0))
    validate(record(torch.zeros(0, 2, 5)))


def test_long_sound_is_shown_piece_by_piece():
    first = record(rows((0, 1), frames=25))
    second = record(rows((0, 1), frames=25), start=1.0)
    warning = TranscriptWarning("tail", "unheard", 1.5, 2.0)
    whole = transcript(
        first, ("one", 0.1, 0.4), ("two", 1.2, 1.4), duration=2.0, warnings=(warning,)
    )
    assert by_piece(whole) == [whole]
    from dataclasses import replace

    whole = replace(whole, record=None, records=(first, second), attention={"coverage": 0.5})
    a, b = by_piece(whole)
    assert (a.text, b.text) == ("one", "two")
    assert a.record is first and b.record is second
    assert a.warnings == () and b.warnings == (warning,)
    assert not a.attention
    assert torch.equal(sound_of(second, wave(2.0)).samples, wave(2.0).samples[16000:])
    assert sound_of(second, wave(1.0)).samples.shape == (16000,)


def test_a_record_is_saved_as_plain_arrays(tmp_path):
    made = record(rows((0, 1), (1, 2), frames=2, heads=2), ("ä", "<eos>"), mode="forced")
    save(made, tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz", allow_pickle=False) as file:
        assert file["tokens"].tolist() == ["ä", "<eos>"]
        assert file["weights"].shape == (2, 2, 2)
        assert (file["mode"], file["frame_shift"]) == ("forced", SHIFT)
