"""Implicit attention against finite differences, planted answers, and its picture."""

from __future__ import annotations

import base64
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from asr.glimpses import LogMel
from asr.inspection import implicit_figure, page, records
from asr.inspection.saliency import cell_power, implicit, jacobian, overlap, with_saliency
from asr.inspection.spectrogram import spectrogram_of
from asr.nn.attention import Attention
from asr.nn.decoders import Recurrent
from asr.nn.encoders import Encoder
from asr.nn.las import LAS
from asr.types import Listened, Saliency, Waveform, Word
from tests.html_page import Parsed
from tests.inspection import planted

TOKENS = [3, 4, 5, 3, 1]
LISTENERS = [
    {"name": "conformer", "position": "relative"},
    {"name": "conformer", "position": "rotary", "mask": "causal"},
    {"name": "conformer", "position": "relative_shaw"},
    {"name": "pyramidal", "layers": 2},
]


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(7)


def small(attention: str = "location_aware", listener: dict | None = None) -> LAS:
    made = Attention.resolve(attention)
    options = {"dim": 8} if "dim" in signature(made.__init__).parameters else {}
    listener = {"dim": 12, **(listener or {"name": "conformer"})}
    if listener["name"] == "conformer":
        listener = {"blocks": 1, "heads": 2, "kernel": 3, "channels": 3, **listener}
    return LAS(
        8000,
        9,
        frontend=partial(LogMel, bins=8),
        encoder=lambda dim: Encoder.build(listener, dim),
        attention=partial(made, **options),
        speller=partial(Recurrent, dim=12, embedding=5),
    ).eval()


@pytest.fixture
def _in_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is computed in float32 whatever comes in is left in float64, which is finer still."""
    single = Tensor.float
    monkeypatch.setattr(Tensor, "float", lambda x: x if x.dtype is torch.float64 else single(x))


def log_probs(model: LAS, frames: Tensor, tokens: list[int]) -> Tensor:
    """By steps, as decoding goes: (U,)."""
    encoded = model.encoder(frames, torch.tensor([frames.shape[1]]))
    memory, state = model.speller.start(encoded, 1)
    previous, found = 1, []
    for token in tokens:
        step = model.speller.step(torch.tensor([previous]), memory, state)
        found.append(torch.log_softmax(step.logits[0], -1)[token])
        previous, state = token, step.state
    return torch.stack(found)


@pytest.mark.usefixtures("_in_float64")
@pytest.mark.parametrize(
    ("attention", "listener"),
    [(name, LISTENERS[0]) for name in sorted(Attention.registry)]
    + [("location_aware", listener) for listener in LISTENERS[1:]],
    ids=str,
)
def test_equals_finite_differences_in_float64(attention: str, listener: dict) -> None:
    """Along random directions, and at single glimpses."""
    model = small(attention, listener).double()
    samples = 0.1 * torch.randn(2000)
    found = jacobian(model, samples, TOKENS)
    frames, _ = model.frontend(samples[None], torch.tensor([2000]))
    frames = frames.double()
    assert found.shape == (5, 25, 8) and found.dtype == torch.float64
    largest = found.abs().amax(0).flatten().topk(2).indices
    single = torch.nn.functional.one_hot(largest, 200).double().view(2, 25, 8)
    directions = torch.cat([torch.randn(3, 25, 8, dtype=torch.float64), single])
    small_step = 1e-5
    with torch.no_grad():
        for direction in directions:
            above, below = (
                log_probs(model, frames + sign * small_step * direction, TOKENS) for sign in (1, -1)
            )
            slope = (above - below) / (2 * small_step)
            expected = (found * direction).sum((1, 2))
            torch.testing.assert_close(slope, expected, rtol=1e-4, atol=1e-8)


def test_chunks_and_spans_are_parts_of_the_whole() -> None:
    model, samples = small(), 0.1 * torch.randn(3000)
    whole = jacobian(model, samples, TOKENS)
    assert whole.abs().amax((1, 2)).min() > 0
    torch.testing.assert_close(jacobian(model, samples, TOKENS, at_once=2 * 38 * 8), whole)
    torch.testing.assert_close(jacobian(model, samples, TOKENS, at_once=1), whole)
    torch.testing.assert_close(jacobian(model, samples, TOKENS, first=1, last=3), whole[1:3])
    # Each under its own prefix: what is written later changes nothing.
    torch.testing.assert_close(jacobian(model, samples, [3, 4, 8, 8, 8])[:2], whole[:2])
    assert not torch.allclose(jacobian(model, samples, [4, *TOKENS[1:]])[2], whole[2])
    assert jacobian(model, samples, TOKENS, first=2, last=2).shape == (0, 38, 8)
    assert jacobian(model, torch.zeros(0), TOKENS).shape == (5, 0, 8)


def test_nothing_matters_that_cannot_be_heard() -> None:
    """One glimpse is chosen, and the listener relates none to another: a few frames are left."""
    banded = {"name": "banded", "before": 0, "after": 0}
    model = small("hard", {"name": "conformer", "mask": banded, "kernel": 1})
    samples = 0.1 * torch.randn(8000)
    frames, sizes = model.frontend(samples[None], torch.tensor([8000]))
    encoded = model.encoder(frames, sizes)
    inputs = torch.tensor([[1, *TOKENS[:-1]]])
    chosen = model.speller(encoded, inputs, torch.tensor([5])).weights[0, :, 0].argmax(-1)
    found = jacobian(model, samples, TOKENS).abs().sum(2)
    heard = torch.zeros(5, 100, dtype=torch.bool)
    for row in range(5):
        for frame in chosen[: row + 1].tolist():  # what was heard before is remembered
            heard[row, max(0, 4 * frame - 3) : 4 * frame + 4] = True  # the subsampling's reach
    assert not found[~heard].any() and (found.sum(1) > 0).all()


def test_a_model_that_draws_at_random_and_a_wrong_span_are_refused() -> None:
    with pytest.raises(ValueError, match="training mode"):
        jacobian(small().train(), torch.zeros(800), TOKENS)
    with pytest.raises(ValueError, match="tokens 2 to 9: there are 5"):
        jacobian(small(), torch.zeros(800), TOKENS, first=2, last=9)


def with_planted(*places: tuple[int, int], frames: int = 10, size: int = 38):
    """A record whose token u depends on the glimpse (t, f) of ``places[u]`` alone."""
    made = torch.zeros(len(places), size, 16)
    for row, (t, f) in enumerate(places):
        made[row, t, f] = -3.0
    spans = [(t // 4, t // 4 + 1) for t, _ in places]
    record = planted.record(planted.rows(*spans, frames=frames), duration=size * 0.01)
    return replace(record, saliency=Saliency(made, 0.01))


def test_cells_hold_what_lies_in_them() -> None:
    record = with_planted((0, 0), (7, 15), (37, 8))
    power = cell_power(record, 4)  # bins of 16, so four bands
    assert power.shape == (3, 10, 4) and power.sum() == 27.0
    assert power[0, 0, 0] == power[1, 1, 3] == power[2, 9, 2] == 9.0
    assert torch.equal(implicit(record), record.weights[:, 0])
    assert torch.equal(overlap(record.weights[:, 0], implicit(record)), torch.ones(3))
    elsewhere = implicit(with_planted((4, 0), (7, 15), (36, 8)))
    assert overlap(record.weights[:, 0], elsewhere).tolist() == [0.0, 1.0, 1.0]


def test_a_record_needs_its_ids_and_the_models_rate() -> None:
    model = small()
    record = planted.record(planted.rows((0, 1), (1, 2), frames=10))
    sound = Waveform(0.1 * torch.randn(3200), 8000)
    with pytest.raises(ValueError, match="0 ids for 2 tokens"):
        with_saliency(record, model, sound)
    record = replace(record, ids=(4, 1))
    with pytest.raises(ValueError, match="16000 Hz; 8000 Hz is needed"):
        with_saliency(record, model, Waveform(sound.samples, 16000))
    made = with_saliency(record, model, sound)
    assert made.saliency.jacobian.shape == (2, 40, 8) and made.saliency.hop == 0.01
    torch.testing.assert_close(implicit(made).sum(1), torch.ones(2))
    with pytest.raises(ValueError, match="no saliency"):
        implicit(record)


def test_the_page_has_it(tmp_path: Path) -> None:
    record = with_planted((0, 0), (7, 15), (37, 8))
    record.saliency.jacobian[1, 7, 0] = 1.5  # half of what is greatest
    entry = page.Entry(planted.transcript(record), planted.wave(0.38))
    (data,) = Parsed(page.render([entry])).data()
    shown = data["implicit"]
    assert (shown["bands"], shown["wide"]) == (16, 1 / 16)
    roots = np.frombuffer(base64.b64decode(shown["roots"]), np.uint8).reshape(3, 10, 16)
    assert roots[0, 0, 0] == roots[1, 1, 15] == roots[2, 9, 8] == 255 and roots[1, 1, 0] == 128
    assert np.count_nonzero(roots) == 4
    bare = page.Entry(planted.transcript(replace(record, saliency=None)), planted.wave(0.38))
    assert "implicit" not in Parsed(page.render([bare])).data()[0]
    records.save(record, tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as file:
        assert file["saliency"].dtype == np.float16 and float(file["saliency_shift"]) == 0.01
        np.testing.assert_array_equal(file["saliency"], record.saliency.jacobian)


def test_the_picture_lights_what_mattered() -> None:
    record = with_planted((0, 0), (20, 15))
    record = replace(record, tokens=("$a$", "<eos>"))
    lit = implicit_figure.overlay(record)
    assert lit.shape == (38, 16) and lit[0, 0] == lit[20, 15] == 1.0 and lit.sum() == 2.0
    sound = spectrogram_of(planted.wave(0.38))
    figure = implicit_figure.draw(record, sound, words=[Word("a", 0.0, 0.2, 0.9)])
    top, explicit, implied = figure.axes
    glow = top.images[1]
    assert glow.get_extent() == pytest.approx([0.0, 0.38, -0.5, 79.5])
    shown = [axes.images[0].get_array() for axes in (explicit, implied)]
    assert shown[0].shape == shown[1].shape == (2, 10)
    assert shown[1].tolist() == implicit(record).tolist()
    figure.canvas.draw()


def test_saliency_is_of_what_the_model_was_given() -> None:
    """Of a piece with a margin before it and silence left out of it: where that lies in it."""
    model, generator = small(), torch.Generator().manual_seed(3)
    frame = model.frontend.hop * model.encoder.subsampling
    piece = torch.randn(9 * frame + 100, generator=generator)
    kept = [0, 1, 2, 6, 7, 8, 9]
    parts = [piece[k * frame : (k + 1) * frame] for k in kept]
    given = torch.cat([torch.zeros(2 * frame), *parts, torch.zeros(frame)])
    frames = torch.tensor([-1, -1, *kept, -1])
    spans = [(token, token + 1) for token in range(len(TOKENS))]
    record = planted.record(planted.rows(*spans, frames=10))
    record = replace(record, ids=tuple(TOKENS), listened=Listened(given, frames))
    found = with_saliency(record, model, Waveform(piece, 8000))
    whole = jacobian(model, given, TOKENS)
    tall = model.encoder.subsampling
    expected = torch.zeros(len(TOKENS), -(-len(piece) // model.frontend.hop), whole.shape[2])
    for place, frame_of in enumerate(frames.tolist()):
        for step in range(tall):
            there = frame_of * tall + step
            if frame_of >= 0 and there < expected.shape[1]:
                expected[:, there] = whole[:, place * tall + step]
    assert torch.equal(found.saliency.jacobian, expected)
    assert expected[:, 3 * tall : 6 * tall].abs().sum() == 0 < expected.abs().sum()
    assert implicit(found).shape == (len(TOKENS), 10)
