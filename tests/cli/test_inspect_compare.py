"""`asr inspect --compare`: two models on one sound and one clock."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from asr.glimpses import LogMel
from asr.inference import bundle
from asr.inference.bundle import Settings
from asr.nn.attention import LocationAware
from asr.nn.decoders import Recurrent
from asr.nn.encoders import Conformer
from asr.nn.las import LAS
from asr.text import CharacterTokenizer
from tests.html_page import Parsed, shown
from tests.inference.conftest import CARD, tiny


@pytest.fixture
def other(tmp_path) -> Path:
    """A model of other weights, which listens in pieces of at most a second."""
    torch.manual_seed(2)
    made = tiny(encoder=partial(Conformer, dim=16, heads=4, blocks=2, channels=4, kernel=3))
    search = {"beam_size": 1, "max_tokens_per_frame": 0.4}
    settings = Settings(search=search, max_piece_seconds=1.0)
    path = tmp_path / "other"
    bundle.save(path, made, CharacterTokenizer(" abcdefgh'"), card=CARD, settings=settings)
    return path


@pytest.mark.parametrize("mode", [[], ["--text", "a bad cab"]])
def test_two_models_on_the_same_sound(ask, sounds, other, noise_model, mode):
    one = sounds / "one.wav"
    forms = ["--export", "npz,ctm,png", "--layers", "0"]
    assert ask(one, "--compare", other, *mode, *forms)[0] == 0
    both = Parsed(Path("report.html").read_text())
    assert shown("report.html") == ["one"] and len(both.all("audio")) == 1
    assert shown("report.html", "h3") == ["A: noise", "B: other"]
    made = {path.name for path in Path().iterdir()}
    stems = ("one", "one.listener", "one.compare", "one.compare.listener")
    assert made == {"report.html", *(f"{stem}.png" for stem in stems)} | {
        f"one{suffix}.{form}" for suffix in ("", ".compare") for form in ("npz", "ctm")
    }
    # Each is what the model gives by itself.
    figures = []
    for place, (model, name) in enumerate(((noise_model, "one"), (other, "one.compare"))):
        alone = Path(f"alone{place}")
        assert ask(one, "-m", model, *mode, *forms, "-o", alone / "r.html")[0] == 0
        parsed = Parsed((alone / "r.html").read_text())
        assert parsed.data()[0] == both.data()[place]
        for form in ("ctm", "npz"):
            assert Path(f"{name}.{form}").read_bytes() == (alone / f"one.{form}").read_bytes()
        cells = [text for tag, text in parsed.text if tag == "td"]
        figures.append([cells[i - 1] for i, text in enumerate(cells) if text.startswith("How ")])
    cells = [text for tag, text in both.text if tag == "td"]
    places = [i for i, text in enumerate(cells) if text.startswith("How ")]
    assert [[cells[i - back] for i in places] for back in (3, 2)] == figures
    assert ask(one, "--compare", other, *mode, *forms, "--on-exists", "skip")[2].endswith(
        "report.html: there already, skipped\n"
    )


def test_models_that_cut_a_sound_differently_keep_one_clock(ask, sounds, other):
    noise = 0.1 * np.random.default_rng(0).standard_normal(16000 * 2)
    soundfile.write(sounds / "long.wav", noise, 16000)
    assert ask(sounds / "long.wav", "--compare", other, "--export", "npz")[0] == 0
    one, *pieces = Parsed(Path("report.html").read_text()).data()
    assert len(pieces) > 1 and one["offset"] == 0 and one["duration"] == 2.0
    assert {(p["start"], p["duration"]) for p in pieces} == {(one["start"], one["duration"])}
    starts = [float(np.load(path)["start"]) for path in Path().glob("long.compare*.npz")]
    assert [piece["offset"] for piece in pieces] == sorted(starts)


def test_models_of_different_rates_hear_one_sound(ask, sounds, tmp_path):
    coarse = LAS(
        8000, 13, frontend=partial(LogMel, bins=12), attention=LocationAware,
        encoder=partial(Conformer, dim=16, heads=2, blocks=1, channels=4, kernel=3),
        speller=partial(Recurrent, dim=16),
    )  # fmt: skip
    path = tmp_path / "coarse"
    bundle.save(path, coarse, CharacterTokenizer(" abcdefgh'"), card=CARD)
    words = ["--text", "a bad cab", "--saliency", "--export", "npz"]
    assert ask(sounds / "one.wav", "--compare", path, *words)[0] == 0
    fine, rough = Parsed(Path("report.html").read_text()).data()
    assert fine["spectrogram"] == rough["spectrogram"]
    assert ask(sounds / "one.wav", "-m", path, *words, "-o", "alone/r.html")[0] == 0
    with np.load("one.compare.npz") as both, np.load("alone/one.npz") as alone:
        assert set(both) == set(alone)
        np.testing.assert_allclose(both["weights"], alone["weights"], atol=1e-4)


def test_a_comparison_says_which_model_warns(ask, sounds, other, noise_model):
    soundfile.write(sounds / "silent.wav", np.zeros(8000), 16000)
    _, _, err = ask(sounds / "silent.wav", "--compare", other)
    assert "silent.wav (noise): there is only silence" in err
    assert "silent.wav (other): there is only silence" in err
    assert ask(sounds / "one.wav", "--compare", noise_model, "-o", "same.html")[0] == 0
    first, second = shown("same.html", "h3")
    assert first[1:] == second[1:] and len(first.split()) == 3  # by fingerprint, as names are one
    _, _, err = ask(sounds / "one.wav", "--compare", other, "--layers", "1", "-o", "x.html")
    assert "--layers 1: noise has no such layer" in err
