"""CTC prefix scores against a plain loop, all alignments, and torch's own CTC loss."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from asr.search import CTCPrefixScorer
from asr.text import BLANK, EOS
from asr.types import Encoded
from tests.search.tiny import texts


def log_probs_of(frames: int, vocabulary: int, *, seed: int = 0, scale: float = 2.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(frames, vocabulary, generator=generator)).log_softmax(-1)


def batch(*pieces: Tensor, fill: float = 3.0) -> tuple[CTCPrefixScorer, Encoded]:
    lengths = torch.tensor([len(p) for p in pieces])
    padded = torch.full((len(pieces), int(lengths.max()), pieces[0].shape[1]), fill)
    for row, piece in zip(padded, pieces, strict=True):
        row[: len(piece)] = piece
    return CTCPrefixScorer(lambda encoded: encoded.states), Encoded(padded, lengths)


def follow(scorer: CTCPrefixScorer, encoded: Encoded, rows: list[list[int]], beam: int):
    """Scores (N,V) after each row's own tokens (all rows equally long), and what led there (N,)."""
    state = scorer.start(encoded, beam)
    last = torch.full((len(rows),), EOS)
    so_far = torch.zeros(len(rows), dtype=torch.float64)
    scores, state = scorer.score(last, state, None)
    for tokens in zip(*rows, strict=True):
        last = torch.tensor(tokens)
        so_far += scores.log_probs.gather(1, last.unsqueeze(1))[:, 0]
        state = scorer.select(state, torch.arange(len(rows)), last)
        scores, state = scorer.score(last, state, None)
    return so_far.unsqueeze(1) + scores.log_probs


def collapse(path: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(c for c, _ in itertools.groupby(path) if c != BLANK)


def plain_scores(log_probs: Tensor, prefix: tuple[int, ...]) -> dict[int, float]:
    """Algorithm 2, one token at a time, with Python's floats."""
    p = log_probs.double().exp().tolist()
    frames, vocabulary = len(p), len(p[0])
    n, b = [0.0] * (frames + 1), [1.0]
    for t in range(frames):
        b.append(b[-1] * p[t][BLANK])
    last = None

    def extend(c: int):
        grown_n, grown_b, psi = [0.0], [0.0], 0.0
        for t in range(frames):
            phi = b[t] + (n[t] if c != last else 0.0)
            psi += phi * p[t][c]
            grown_n.append((grown_n[t] + phi) * p[t][c])
            grown_b.append((grown_b[t] + grown_n[t]) * p[t][BLANK])
        return grown_n, grown_b, psi

    for c in prefix:
        n, b, _ = extend(c)
        last = c
    found = {c: extend(c)[2] for c in range(2, vocabulary)} | {EOS: n[-1] + b[-1]}
    return {c: math.log(value) if value > 0 else -math.inf for c, value in found.items()}


@pytest.mark.parametrize("prefix", [(), (2,), (3, 3), (2, 3, 2), (4, 4, 4), (3, 2, 2, 4)])
def test_equals_the_algorithm_written_plainly(prefix):
    log_probs = log_probs_of(11, 5)
    got = follow(*batch(log_probs), [list(prefix)], 1)[0]
    for c, value in plain_scores(log_probs, prefix).items():
        assert got[c].item() == pytest.approx(value, abs=2e-5)
    assert got[BLANK] == -torch.inf


@pytest.mark.parametrize("frames", [1, 2, 4, 5])
def test_equals_the_sum_over_all_alignments(frames):
    log_probs = log_probs_of(frames, 4, seed=frames)
    log_probs[:, EOS] = -torch.inf  # never part of a CTC text
    log_probs = log_probs.log_softmax(-1)
    paths = {}
    for path in itertools.product(range(4), repeat=frames):
        total = sum(log_probs[t, c].item() for t, c in enumerate(path))
        paths.setdefault(collapse(path), []).append(total)
    exact = {text: math.exp(torch.tensor(v).double().logsumexp(0)) for text, v in paths.items()}
    for text in texts(range(2, 4), min(frames, 3)):
        got = follow(*batch(log_probs), [list(text)], 1)[0].exp()
        assert got[EOS].item() == pytest.approx(exact.get(text, 0.0), rel=1e-4, abs=1e-12)
        for c in (2, 3):
            begins = sum(p for t, p in exact.items() if t[: len(text) + 1] == (*text, c))
            assert got[c].item() == pytest.approx(begins, rel=1e-4, abs=1e-12)


def test_a_text_and_its_end_add_up_to_the_ctc_loss():
    pieces = [log_probs_of(n, 7, seed=n) for n in (30, 21, 9)]
    rows = [[2, 3, 3, 5, 6], [4, 4, 4, 2, 2], [6, 5, 4, 3, 2]]
    scorer, encoded = batch(*pieces)
    ours = follow(scorer, encoded, rows, 1)[:, EOS]
    loss = torch.nn.functional.ctc_loss(
        encoded.states.transpose(0, 1).double(),
        torch.tensor(rows),
        encoded.lengths,
        torch.tensor([5, 5, 5]),
        blank=BLANK,
        reduction="none",
    )
    torch.testing.assert_close(ours, -loss, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("scale", [1.0, 15.0])
def test_hundreds_of_frames_do_not_underflow(scale):
    log_probs = log_probs_of(1500, 6, scale=scale)
    text = torch.randint(2, 6, (200,), generator=torch.Generator().manual_seed(0)).tolist()
    ours = follow(*batch(log_probs), [text], 1)[0]
    loss = torch.nn.functional.ctc_loss(
        log_probs.double().unsqueeze(1),
        torch.tensor([text]),
        torch.tensor([1500]),
        torch.tensor([200]),
        blank=BLANK,
        reduction="sum",
    )
    assert ours[EOS].item() == pytest.approx(-loss.item(), rel=1e-5)
    assert ours[2:].isfinite().all() and not ours.isnan().any()


def test_rows_and_batch_mates_do_not_matter():
    pieces = [log_probs_of(n, 6, seed=n) for n in (12, 3, 7)]
    rows = [[2, 3], [3, 3], [4, 5], [2, 2], [5, 4], [3, 2]]
    together = follow(*batch(*pieces), rows, 2)
    for u, piece in enumerate(pieces):
        for k in (2 * u, 2 * u + 1):
            alone = follow(*batch(piece), [rows[k]], 1)[0]
            torch.testing.assert_close(together[k], alone, atol=1e-5, rtol=1e-5)


def test_what_does_not_fit_is_impossible_and_never_nan():
    scorer, encoded = batch(log_probs_of(2, 5), log_probs_of(9, 5))
    scores = follow(scorer, encoded, [[2, 2], [2, 2]], 1)  # a repeat needs three frames
    assert (scores[0] == -torch.inf).all()
    scores = follow(scorer, encoded, [[2, 3, 2, 4], [2, 2, 2, 2]], 1)
    assert (scores[0] == -torch.inf).all() and scores[1, EOS] > -torch.inf
    assert not scores.isnan().any()


def test_survivors_carry_their_own_variables():
    pieces = [log_probs_of(8, 5, seed=1), log_probs_of(6, 5, seed=2)]
    scorer, encoded = batch(*pieces)
    state = scorer.start(encoded, 2)
    last = torch.full((4,), EOS)
    _, state = scorer.score(last, state, None)
    tokens = torch.tensor([2, 3, 4, 2])
    state = scorer.select(state, torch.tensor([0, 0, 2, 2]), tokens)
    _, state = scorer.score(tokens, state, None)
    # the first utterance leaves, the rows of the second change places
    state = scorer.select(state, torch.tensor([3, 2]), torch.tensor([2, 3]))
    assert state.probs.shape[0] == 1
    got, _ = scorer.score(torch.tensor([2, 3]), state, None)
    for row, text in enumerate([(2, 2), (4, 3)]):
        wanted = plain_scores(pieces[1], text)
        before = plain_scores(pieces[1], text[:1])[text[1]]
        for c in (2, 3, 4, EOS):
            value = got.log_probs[row, c].item() + before
            assert value == pytest.approx(wanted[c], abs=2e-5)


def test_stopping_unfinished_gains_what_eos_would():
    scorer, encoded = batch(log_probs_of(8, 5))
    state = scorer.start(encoded, 1)
    _, state = scorer.score(torch.tensor([EOS]), state, None)
    state = scorer.select(state, torch.tensor([0]), torch.tensor([3]))
    scores, state = scorer.score(torch.tensor([3]), state, None)
    torch.testing.assert_close(scorer.final(state), scores.log_probs[:, EOS])
