"""Greedy search and following a text, against a plain loop, the beam and teacher forcing."""

from __future__ import annotations

import pytest
import torch

from asr.search import SearchOptions, forced, greedy, search
from asr.text import EOS
from asr.types import Encoded
from tests.search.tiny import TinyModel, encoded_of, one_of, spelled

GREEDY = SearchOptions(beam_size=1, ctc_weight=0.0)


@torch.no_grad()
def plain(model: TinyModel, encoded: Encoded, most: int) -> tuple[list[int], bool]:
    memory, state = model.speller.start(encoded, 1)
    tokens, last = [], EOS
    for _ in range(most + 1):
        step = model.speller.step(torch.tensor([last]), memory, state)
        state = step.state
        likely = step.logits[0].clone()
        likely[[0, 2]] = -torch.inf
        last = int(likely.argmax())
        if last == EOS:
            return tokens, True
        tokens.append(last)
    return tokens[:most], False


@pytest.mark.parametrize("seed", range(8))
def test_equals_a_plain_loop_alone_and_in_a_batch(seed):
    model, encoded = TinyModel(7, seed=seed), encoded_of(8, 0, 3, 12, size=15, seed=seed)
    found = greedy(model, encoded)
    assert [h.tokens for h in greedy(model.speller, encoded)] == [h.tokens for h in found]
    for u in (0, 2, 3):
        alone = one_of(encoded, u)
        tokens, ended = plain(model, alone, GREEDY.limits(int(alone.lengths[0])).most)
        assert list(found[u].tokens) == tokens and found[u].ended == ended
        log_probs, weights = spelled(model, alone, found[u].tokens)
        rows = len(tokens) + ended
        torch.testing.assert_close(found[u].weights, weights[:rows], atol=1e-5, rtol=1e-4)
        assert found[u].log_probs == pytest.approx(log_probs[:rows].tolist(), abs=1e-4)
        assert found[u].score == pytest.approx(log_probs[:rows].mean().item(), abs=1e-4)
    assert found[1].tokens == () and found[1].ended


@pytest.mark.parametrize("threshold", [None, 1.5, 0.2])
@pytest.mark.parametrize("seed", range(8))
def test_a_beam_of_one_is_greedy(seed, threshold):
    from asr.search import SpellerScorer, Weighted, beam

    model, encoded = TinyModel(7, seed=seed), encoded_of(8, 3, 12, seed=seed)
    options = SearchOptions(beam_size=1, eos_threshold=threshold, min_tokens_per_frame=0.3)
    scorers = [Weighted(SpellerScorer(model.speller, eos_threshold=threshold))]
    narrow = beam(scorers, encoded, options)
    for one, (other,) in zip(greedy(model, encoded, options), narrow, strict=True):
        assert (one.tokens, one.ended) == (other.tokens, other.ended)
        assert one.score == pytest.approx(other.score, abs=1e-5)
        assert one.log_probs == pytest.approx(other.log_probs, abs=1e-5)
        torch.testing.assert_close(one.weights, other.weights)


def test_following_what_a_search_wrote_gives_what_it_heard():
    model, encoded = TinyModel(7, seed=3), encoded_of(8, 0, 3, 12)
    written = [nbest[0] for nbest in search(model, encoded, SearchOptions(beam_size=4))]
    lengths = torch.tensor([len(h.tokens) for h in written])
    targets = torch.full((4, int(lengths.max()) + 2), 99)  # padding may be anything
    for row, h in zip(targets, written, strict=True):
        row[: len(h.tokens)] = torch.tensor(h.tokens)
    for got, h in zip(forced(model, encoded, targets, lengths), written, strict=True):
        assert got.tokens == h.tokens
        rows = len(h.log_probs)
        torch.testing.assert_close(got.weights[:rows], h.weights, atol=1e-5, rtol=1e-4)
        assert got.log_probs[:rows] == pytest.approx(h.log_probs, abs=1e-4)
        assert got.terms.keys() == h.terms.keys()


def test_following_equals_teacher_forcing_whatever_the_tokens():
    model, encoded = TinyModel(7), encoded_of(5, 9)
    given = [(2, 3, 3), (6, 2, 0, 4, 4, 4, 4)]  # <unk> and <blank> may be asked about
    targets = torch.tensor([[*given[0], 0, 0, 0, 0], given[1]])
    for u, got in enumerate(forced(model, encoded, targets, torch.tensor([3, 7]))):
        log_probs, weights = spelled(model, one_of(encoded, u), given[u])
        assert got.tokens == given[u] and got.ended
        assert got.log_probs == pytest.approx(log_probs.tolist(), abs=1e-4)
        assert got.score == pytest.approx(log_probs.mean().item(), abs=1e-4)
        torch.testing.assert_close(got.weights, weights, atol=1e-5, rtol=1e-4)


def test_an_empty_text_is_its_end_alone():
    targets, lengths = torch.zeros(1, 0, dtype=torch.long), torch.tensor([0])
    (got,) = forced(TinyModel(7), encoded_of(5), targets, lengths)
    assert got.tokens == () and got.ended and got.weights.shape == (1, 1, 5)


def test_without_a_record():
    model, encoded = TinyModel(7), encoded_of(5, 0)
    targets, lengths = torch.tensor([[3, 4], [3, 4]]), torch.tensor([2, 2])
    for found in (
        greedy(model, encoded, record=False),
        forced(model, encoded, targets, lengths, record=False),
        [h for nbest in search(model, encoded, record=False) for h in nbest],
    ):
        assert all(h.weights is None and not h.terms for h in found)
        assert found[0].log_probs


def test_finished_utterances_leave():
    model, encoded = TinyModel(7), encoded_of(2, 9)
    greedy(model, encoded, SearchOptions(beam_size=1, min_tokens_per_frame=1.0))
    assert model.speller.calls[0] == 2 and model.speller.calls[-1] == 1
