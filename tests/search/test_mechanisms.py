"""Whatever the attention mechanism, its state follows the beam; new ones join by themselves."""

from __future__ import annotations

import pytest
import torch

import asr.nn.attention  # registers the mechanisms
from asr.nn.attention.base import Attention
from asr.nn.decoders.recurrent import Recurrent
from asr.search import SearchOptions, SpellerScorer, Weighted, beam, forced, greedy
from asr.search.tree import take
from tests.search.tiny import encoded_of, one_of

NAMES = sorted(Attention.registry)


def test_there_are_mechanisms():
    assert {"location_aware", "additive"} <= set(NAMES) and asr.nn.attention


@pytest.mark.parametrize("name", NAMES)
def test_the_beam_keeps_each_hypothesis_its_own_state(name):
    torch.manual_seed(0)
    speller = Recurrent(9, Attention.resolve(name), 8, dim=8, embedding=4).eval()
    with torch.no_grad():
        for weight in speller.parameters():
            weight *= 3.0  # opinionated, so that hypotheses differ in more than rounding
    encoded = encoded_of(11, 6, dim=8)
    options = SearchOptions(beam_size=5, nbest=5, max_tokens_per_frame=0.9)
    heads = speller.attention.heads
    scorers = [Weighted(SpellerScorer(speller))]
    found = beam(scorers, encoded, options, heads=heads)
    for u, nbest in enumerate(found):
        alone = beam(scorers, one_of(encoded, u), options, heads=heads)[0]
        assert [h.tokens for h in alone] == [h.tokens for h in nbest]
        for h in nbest:
            targets, length = torch.tensor([[*h.tokens]]).long(), torch.tensor([len(h.tokens)])
            (wanted,) = forced(speller, one_of(encoded, u), targets, length)
            rows = len(h.log_probs)
            assert h.weights.shape == (rows, heads, int(encoded.lengths[u]))
            torch.testing.assert_close(h.weights, wanted.weights[:rows], atol=1e-4, rtol=1e-3)
            assert h.log_probs == pytest.approx(wanted.log_probs[:rows], abs=1e-3)
            assert h.terms.keys() == wanted.terms.keys()


@pytest.mark.parametrize("name", NAMES)
def test_greedy_in_a_batch_equals_greedy_alone(name):
    torch.manual_seed(1)
    speller = Recurrent(9, Attention.resolve(name), 8, dim=8, embedding=4).eval()
    encoded = encoded_of(7, 0, 12, 2, dim=8)
    together = greedy(speller, encoded)
    for u in (0, 2, 3):
        (alone,) = greedy(speller, one_of(encoded, u))
        assert alone.tokens == together[u].tokens and alone.ended == together[u].ended
        torch.testing.assert_close(alone.weights, together[u].weights, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_states_are_row_first(name):
    attention = Attention.resolve(name)(8, 8)
    state = attention.initial_state(attention.prepare(encoded_of(5, 3, dim=8)), 6)
    shorter = take(state, torch.tensor([4, 4]))
    leaves = [leaf for leaf in shorter if isinstance(leaf, torch.Tensor)] if shorter else []
    assert all(len(leaf) == 2 for leaf in leaves)
