"""`asr inspect --saliency`: what each token depended on, beside what it attended to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from asr.audio import load
from asr.inference import bundle
from asr.inference.transcriber import Transcriber
from asr.inspection.saliency import jacobian


@pytest.mark.parametrize("text", [(), ("--text", "a bad cab")])
def test_it_is_exported(ask, sounds, noise_model, text):
    one = sounds / "one.wav"
    assert ask(one, "--saliency", "--export", "npz,png", *text)[0] == 0
    assert sorted(p.name for p in Path().glob("one*")) == ["one.npz", "one.png", "one.saliency.png"]
    model = bundle.load(noise_model)
    with np.load("one.npz") as file:
        found = torch.from_numpy(file["saliency"]).float()
        tokens, shift = file["tokens"].tolist(), float(file["saliency_shift"])
    assert found.shape[0] == len(tokens) and shift == pytest.approx(0.01)
    ids = {model.tokenizer.token(number): number for number in range(model.model.vocabulary_size)}
    wave = load(one, model.model.sample_rate)
    (heard,) = Transcriber(model, device="cpu")([wave], record=True)
    given = heard.record.listened  # the same for every text: the whole, with a margin around it
    expected = jacobian(model.model, given.samples, [ids[token] for token in tokens])
    first = given.frames.tolist().index(0) * model.model.encoder.subsampling
    assert first > 0 and given.frames[given.frames >= 0].diff().eq(1).all()
    expected = expected[:, first : first + found.shape[1]]
    assert expected.abs().max() > 0
    torch.testing.assert_close(found, expected, rtol=2e-3, atol=1e-6)


def test_without_the_flag_there_is_none(ask, sounds):
    assert ask(sounds / "one.wav", "--export", "npz,png", "--no-saliency")[0] == 0
    assert not list(Path().glob("*saliency*"))
    with np.load("one.npz") as file:
        assert not {"saliency", "saliency_shift"} & set(file)


def test_its_picture_overwrites_nothing_unasked(ask, sounds):
    Path("one.saliency.svg").write_text("mine")
    status, _, err = ask(sounds / "one.wav", "--saliency", "--export", "svg")
    assert status == 2 and "one.saliency.svg" in err
    assert Path("one.saliency.svg").read_text() == "mine"
