"""Every option changes something, and a wrong one says what would be right."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace

import pytest
import torch

from asr.errors import InputError
from asr.search import SearchOptions, search
from tests.search.tiny import TinyModel, encoded_of

#: an option, and two values of it between which some result must differ
CHANGES = {
    "beam_size": (1, 8),
    "ctc_weight": (0.0, 0.6),
    "length_bonus": (0.0, 2.0),
    "length_exponent": (0.0, 1.0),
    "eos_threshold": (None, 0.5),
    "min_tokens_per_frame": (0.0, 0.9),
    "max_tokens_per_frame": (0.2, 1.5),
    "nbest": (1, 2),
}


def test_every_option_is_tested():
    assert {field.name for field in fields(SearchOptions)} == CHANGES.keys()


@pytest.mark.parametrize("name", CHANGES)
def test_it_changes_something(name):
    base = SearchOptions(beam_size=4, ctc_weight=0.0, length_exponent=0.7, eos_threshold=None)
    encoded = encoded_of(12, 9, 5)
    found = [
        [
            [h.tokens for nbest in search(TinyModel(7, seed=seed), encoded, options) for h in nbest]
            for seed in range(6)
        ]
        for options in (replace(base, **{name: value}) for value in CHANGES[name])
    ]
    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "beam_size": (0, -1, 2.0, True, "8"),
        "ctc_weight": (-0.1, 1.1, float("nan"), "much"),
        "length_bonus": (float("inf"), float("nan"), None),
        "length_exponent": (-0.5, 1.5, float("nan")),
        "eos_threshold": (0, -1.0, float("inf")),
        "min_tokens_per_frame": (-1, 2.0, float("nan")),
        "max_tokens_per_frame": (0, float("inf"), float("nan"), None),
        "nbest": (0, 9, 1.0),
    }.items(),
)
def test_a_wrong_value_is_named_with_what_is_allowed(name, values):
    for value in values:
        with pytest.raises(ValueError, match=r"allowed: ") as error:
            SearchOptions(**{name: value})
        message = str(error.value)
        other = "max_tokens_per_frame" if (name, value) == ("min_tokens_per_frame", 2.0) else name
        assert message.startswith(f"{other} ") and "\n" not in message


@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("bounds", [(0.5, 0.5), (0.0, 0.25), (1.0, 1.5)])
def test_lengths_stay_within_their_bounds(size, bounds):
    least, most = bounds
    options = SearchOptions(
        beam_size=size,
        nbest=size,
        min_tokens_per_frame=least,
        max_tokens_per_frame=most,
        ctc_weight=0.0,
    )
    for seed in range(4):
        found = search(TinyModel(6, seed=seed), encoded_of(8, 4, 12), options)
        for frames, nbest in zip((8, 4, 12), found, strict=True):
            assert all(least * frames <= len(h.tokens) <= most * frames for h in nbest)


@pytest.mark.parametrize(
    ("ratios", "frames", "limits"),
    [
        ((0.1, 1.1), 10, (1, 11)),
        ((0.0, 0.1), 1, (0, 1)),
        ((0.3, 0.3), 10, (3, 3)),
        ((0, 1), 0, (0, 1)),
    ],
)
def test_limits_in_tokens(ratios, frames, limits):
    options = SearchOptions(min_tokens_per_frame=ratios[0], max_tokens_per_frame=ratios[1])
    assert options.limits(frames) == limits


def test_what_is_really_used():
    assert SearchOptions().resolve(has_ctc=True).ctc_weight == 0.3
    assert SearchOptions().resolve(has_ctc=False).ctc_weight == 0.0
    assert SearchOptions().resolve(has_ctc=True).length_exponent == 1.0
    assert SearchOptions(length_bonus=0.5).resolve(has_ctc=True).length_exponent == 0.0
    resolved = SearchOptions(length_bonus=0.5, length_exponent=0.2).resolve(has_ctc=True)
    assert resolved.length_exponent == 0.2 and resolved.resolve(has_ctc=True) == resolved


def test_ctc_is_refused_where_there_is_none():
    model, encoded = TinyModel(6, ctc=False), encoded_of(4)
    assert search(model, encoded)  # the default asks for what there is
    with pytest.raises(InputError, match=r"ctc_weight 0\.5: this model has no CTC head"):
        search(model, encoded, SearchOptions(ctc_weight=0.5))


def test_the_threshold_on_eos_keeps_a_wide_beam_from_ending_early():
    early = 0
    for seed in range(20):
        model, encoded = TinyModel(7, seed=seed), encoded_of(12, seed=seed)
        free = SearchOptions(beam_size=8, ctc_weight=0.0, length_exponent=0.0, eos_threshold=None)
        lengths = [
            len(search(model, encoded, options)[0][0].tokens)
            for options in (free, replace(free, eos_threshold=1.0))
        ]
        assert lengths[0] <= lengths[1]
        early += lengths[0] < lengths[1]
    assert early


def test_options_need_no_torch():
    code = "import sys; from asr.search import SearchOptions; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_search_leaves_no_gradients_behind():
    model = TinyModel(6)
    (one,) = search(model, encoded_of(4))[0]
    assert not one.weights.requires_grad and isinstance(one.weights, torch.Tensor)
