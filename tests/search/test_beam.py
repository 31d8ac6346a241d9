"""Beam search against every text there is, and against itself in other company."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.nn.functional import ctc_loss

from asr.search import LengthBonus, SearchOptions, SpellerScorer, Weighted, beam, search
from asr.search.scorers import Scores
from asr.text import BLANK, EOS, UNK
from asr.types import Encoded, Hypothesis
from tests.search.tiny import TinyModel, encoded_of, one_of, spelled, texts

WORDS = range(3, 6)


def ctc_of(model: TinyModel, encoded: Encoded, text: tuple[int, ...]) -> float:
    with torch.no_grad():
        log_probs = model.ctc_log_probs(encoded).transpose(0, 1).double()
    return -ctc_loss(
        log_probs,
        torch.tensor([text], dtype=torch.long).reshape(1, -1),
        encoded.lengths,
        torch.tensor([len(text)]),
        blank=BLANK,
        reduction="sum",
    ).item()


def listed(model: TinyModel, encoded: Encoded, options: SearchOptions) -> list[tuple[float, tuple]]:
    """Score and tokens of every text within the limits, best first."""
    weight, frames = options.ctc_weight, int(encoded.lengths[0])
    fewest, most = options.limits(frames)
    found = []
    for text in texts(WORDS, most):
        if len(text) >= fewest:
            score = (1 - weight) * spelled(model, encoded, text)[0].sum().item()
            score += weight * ctc_of(model, encoded, text) if weight else 0
            score += options.length_bonus * len(text)
            found.append((score / (len(text) + 1) ** options.exponent, text))
    return sorted((pair for pair in found if pair[0] > -torch.inf), reverse=True)


def same(got: Hypothesis, wanted: Hypothesis) -> None:
    assert got.tokens == wanted.tokens and got.ended == wanted.ended
    assert got.score == pytest.approx(wanted.score, abs=1e-4)
    assert got.log_probs == pytest.approx(wanted.log_probs, abs=1e-4)
    torch.testing.assert_close(got.weights, wanted.weights, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("weight", "exponent", "bonus"),
    [
        *itertools.product([0.0, 0.4, 1.0], [None], [0.0, 0.7]),
        *itertools.product([0.4], [0.0, 0.5, 1.0], [0.0, 0.7, -0.4]),
    ],
)
def test_a_beam_wide_enough_finds_the_best_of_all_texts(weight, exponent, bonus):
    options = SearchOptions(
        beam_size=150,
        nbest=4,
        ctc_weight=weight,
        length_bonus=bonus,
        length_exponent=exponent,
        eos_threshold=None,
        min_tokens_per_frame=0.4,
        max_tokens_per_frame=1.0,
    )
    model, encoded = TinyModel(6), encoded_of(4, 2, 3)
    for u, got in enumerate(search(model, encoded, options)):
        wanted = listed(model, one_of(encoded, u), options)[:4]
        assert [h.tokens for h in got] == [text for _, text in wanted]
        assert [h.score for h in got] == pytest.approx([score for score, _ in wanted], abs=1e-4)
        assert all(h.ended for h in got)


@pytest.mark.parametrize("weight", [0.0, 0.3])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_batch_mates_and_padding_do_not_matter(size, weight):
    model, encoded = TinyModel(9, scale=4.0), encoded_of(9, 0, 3, 14, 1, size=17)
    options = SearchOptions(beam_size=size, ctc_weight=weight, nbest=size)
    together = search(model, encoded, options)
    assert len(together) == 5
    for u in (0, 2, 3, 4):
        alone = search(model, one_of(encoded, u), options)[0]
        assert len(alone) == len(together[u])
        for one, other in zip(alone, together[u], strict=True):
            same(one, other)


@pytest.mark.parametrize("seed", range(6))
def test_weights_and_log_probs_are_the_winners_own(seed):
    # the tiny speller's weights depend on all its hypothesis wrote and heard before
    model, encoded = TinyModel(8, seed=seed), encoded_of(10, 6, seed=seed)
    options = SearchOptions(beam_size=6, nbest=6, length_exponent=0.3)
    shuffled = 0
    for u, nbest in enumerate(search(model, encoded, options)):
        for h in nbest:
            log_probs, weights = spelled(model, one_of(encoded, u), h.tokens)
            rows = len(h.tokens) + h.ended
            torch.testing.assert_close(h.weights, weights[:rows], atol=1e-5, rtol=1e-4)
            assert h.log_probs == pytest.approx(log_probs[:rows].tolist(), abs=1e-4)
            written, history = 0, []
            for token in (EOS, *h.tokens)[:rows]:
                written = written * 31 + token + 1
                history.append(written)
            assert h.terms["written"].tolist() == history
        shuffled += len({h.tokens[:2] for h in nbest}) > 1
    assert shuffled, "no beam held different texts: nothing was tested"


class Scripted:
    """A scorer that knows the next token's distribution by step alone."""

    def __init__(self, *steps: dict[int, float], vocabulary: int = 5) -> None:
        self.table = torch.full((len(steps), vocabulary), -30.0)
        for row, step in zip(self.table, steps, strict=True):
            for token, log_prob in step.items():
                row[token] = log_prob

    def start(self, encoded, beam):
        return torch.zeros(len(encoded.lengths) * beam, dtype=torch.long)

    def score(self, last, state, heard):
        return Scores(self.table[state.clamp(max=len(self.table) - 1)]), state + 1

    def select(self, state, rows, tokens):
        return state[rows]

    def final(self, state):
        return torch.zeros(1)


def scripted(*steps, **options) -> list[Hypothesis]:
    options = {"beam_size": 4, "eos_threshold": None, "max_tokens_per_frame": 1.0, **options}
    scorers = [Weighted(Scripted(*steps))]
    return beam(scorers, encoded_of(6), SearchOptions(**options))[0]


def test_an_early_end_does_not_beat_the_whole_text():
    steps = [{3: -0.5, EOS: -1.0}] + [{3: -0.4, EOS: -3.0}] * 3 + [{EOS: -0.1}]
    assert scripted(*steps, length_exponent=0.0)[0].tokens == ()
    assert scripted(*steps)[0].tokens == (3,) * 4


def test_it_goes_on_while_the_average_can_still_improve():
    steps = [{3: -1.8, EOS: -0.8}] + [{3: 0.0}] * 4 + [{EOS: 0.0}]
    assert scripted(*steps)[0].tokens == (3,) * 5


def test_it_goes_on_while_the_bonus_can_still_win():
    scorers = [Weighted(Scripted({3: -5.0, EOS: -0.5}, *[{3: 0.0}] * 5, {EOS: 0.0}))]
    scorers += [Weighted(LengthBonus(5), 1.0)]
    options = SearchOptions(length_bonus=1.0, eos_threshold=None, max_tokens_per_frame=1.0)
    (one,) = beam(scorers, encoded_of(6), options)[0]
    assert one.tokens == (3,) * 6 and one.score == pytest.approx(1.0)


def test_what_stops_unfinished_is_ranked_by_the_ctc_score_of_its_text():
    model, encoded = TinyModel(6), encoded_of(5)
    with torch.no_grad():
        model.speller.out.bias[EOS] -= 90.0
    options = SearchOptions(
        beam_size=100, nbest=5, ctc_weight=0.5, max_tokens_per_frame=0.5, eos_threshold=1.5
    )
    nbest = search(model, encoded, options)[0]
    ranked = []
    for text in itertools.product(WORDS, repeat=3):
        log_prob = spelled(model, encoded, text)[0][:-1].sum().item()
        ranked.append(((log_prob + ctc_of(model, encoded, text)) / 2 / 3, text))
    ranked.sort(reverse=True)
    assert [h.tokens for h in nbest] == [text for _, text in ranked[:5]]
    assert [h.score for h in nbest] == pytest.approx([s for s, _ in ranked[:5]], abs=1e-4)
    assert not any(h.ended for h in nbest)


def test_nothing_ended_at_the_limit():
    (one,) = scripted({3: -0.1, 4: -2.5}, beam_size=2)
    assert one.tokens == (3,) * 6 and not one.ended
    assert one.log_probs == pytest.approx([-0.1] * 6)
    assert one.score == pytest.approx(-0.1)


def test_an_end_just_at_the_limit_counts_once():
    (one,) = scripted(*[{3: -0.1}] * 6, {EOS: -0.1})
    assert one.tokens == (3,) * 6 and one.ended and len(one.log_probs) == 7


def test_a_beam_wider_than_the_vocabulary():
    model, encoded = TinyModel(4), encoded_of(3, 1)
    for nbest in search(model, encoded, SearchOptions(beam_size=40, nbest=40)):
        assert len({h.tokens for h in nbest}) == len(nbest) >= 1
        assert all(torch.tensor(h.score).isfinite() for h in nbest)


@pytest.mark.parametrize("size", [1, 4])
def test_special_tokens_are_never_written(size):
    for seed in range(10):
        model = TinyModel(6, seed=seed)
        with torch.no_grad():
            model.speller.out.bias[[BLANK, UNK]] += 20.0
        for nbest in search(model, encoded_of(7, 4), SearchOptions(beam_size=size, nbest=size)):
            assert not any({BLANK, EOS, UNK} & set(h.tokens) for h in nbest)


@pytest.mark.parametrize("weight", [0.0, 0.3])
@pytest.mark.parametrize("size", [1, 4])
def test_a_broken_model_gives_no_nan_and_harms_no_other_utterance(size, weight):
    model, encoded = TinyModel(6), encoded_of(5, 5)
    options = SearchOptions(beam_size=size, ctc_weight=weight)
    good = search(model, encoded, options)[1][0]
    encoded.states[0] = torch.nan
    bad, unharmed = search(model, encoded, options)
    assert bad[0].tokens == () and not bad[0].ended and bad[0].score == bad[0].score
    same(unharmed[0], good)


@pytest.mark.parametrize("size", [1, 4])
def test_no_frames_no_tokens(size):
    for encoded in (encoded_of(0), encoded_of(0, 0, size=3), encoded_of(0, 4)):
        nbest = search(TinyModel(6), encoded, SearchOptions(beam_size=size))[0]
        assert len(nbest) == 1
        assert nbest[0].tokens == () and nbest[0].ended and nbest[0].score == 0.0
        assert nbest[0].weights.shape == (0, 1, 0)


def test_finished_utterances_leave():
    model, encoded = TinyModel(6), encoded_of(1, 12)
    search(model, encoded, SearchOptions(beam_size=3, min_tokens_per_frame=1.0))
    assert model.speller.calls[0] == 6 and model.speller.calls[-1] == 3
    assert len(model.speller.calls) <= 12 * 1.5 + 1


def test_it_stops_when_nothing_can_win_any_more():
    model = TinyModel(6)
    with torch.no_grad():
        model.speller.out.bias[EOS] += 15.0
    search(model, encoded_of(100), SearchOptions(beam_size=4, ctc_weight=0.0))
    assert len(model.speller.calls) < 10


def test_a_scorer_of_ones_own_joins_in():
    class Likes:
        """Adds 50 to one token, and sees the weights of this very step."""

        heard = None

        def start(self, encoded, beam):
            return torch.zeros(len(encoded.lengths) * beam, 1)

        def score(self, last, state, heard):
            self.heard = heard
            return Scores(50.0 * torch.nn.functional.one_hot(torch.tensor([4]), 6)), state

        def select(self, state, rows, tokens):
            return state[rows]

        def final(self, state):
            return state[:, 0]

    model, likes = TinyModel(6), Likes()
    options = SearchOptions(beam_size=1, ctc_weight=0.0)
    (one,) = search(model, encoded_of(4), options, fusion=[Weighted(likes, 2.0)])[0]
    assert one.tokens == (4,) * 6 and likes.heard.shape == (1, 1, 4)


def test_a_speller_that_has_no_say_still_forbids():
    speller = SpellerScorer(TinyModel(6).speller)
    favours = Scripted({BLANK: -0.1, UNK: -0.2, 3: -1.0}, {EOS: -0.1}, vocabulary=6)
    scorers = [Weighted(speller, 0.0), Weighted(favours)]
    options = SearchOptions(beam_size=3, eos_threshold=None)
    assert beam(scorers, encoded_of(6), options)[0][0].tokens == (3,)
