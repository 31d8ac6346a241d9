"""Losses against plain loops."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch

from asr.text import BLANK, EOS
from asr.training import losses

TARGETS = torch.tensor([[3, 4, 4], [5, 0, 0], [0, 0, 0]])
LENGTHS = torch.tensor([3, 1, 0])
MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]]).bool()


def test_teacher_shifts_by_one_and_ends_each_text() -> None:
    inputs, outputs, mask = losses.teacher(TARGETS, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        text = TARGETS[row, :length].tolist()
        assert inputs[row, : length + 1].tolist() == [EOS, *text]
        assert outputs[row, : length + 1].tolist() == [*text, EOS]
        assert mask[row].tolist() == [i <= length for i in range(4)]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_is_the_mean_over_real_tokens(smoothing: float) -> None:
    logits = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(0))
    _, outputs, _ = losses.teacher(TARGETS, LENGTHS)
    total, count = 0.0, 0
    for b, u in product(range(3), range(4)):
        if MASK[b, u]:
            p = torch.softmax(logits[b, u].double(), 0)
            right = -math.log(p[outputs[b, u]])
            spread = -sum(math.log(x) for x in p) / 6
            total += (1 - smoothing) * right + smoothing * spread
            count += 1
    found = losses.cross_entropy(logits, outputs, MASK, smoothing)
    assert found.item() == pytest.approx(total / count, rel=1e-5)


def path_sum(log_probs: torch.Tensor, target: list[int]) -> float:
    """Probability of a text: the sum over every path that collapses to it."""
    total = 0.0
    for path in product(range(log_probs.shape[1]), repeat=log_probs.shape[0]):
        collapsed = [p for i, p in enumerate(path) if p != BLANK and (i == 0 or path[i - 1] != p)]
        if collapsed == target:
            total += math.exp(sum(float(log_probs[s, p]) for s, p in enumerate(path)))
    return total


def test_ctc_is_the_sum_over_paths_and_counts_what_has_none() -> None:
    log_probs = torch.randn(4, 4, 4, generator=torch.Generator().manual_seed(1)).log_softmax(-1)
    targets = torch.tensor([[3, 2, 0], [3, 3, 2], [2, 2, 0], [2, 0, 0]])
    lengths, target_lengths = torch.tensor([4, 3, 3, 0]), torch.tensor([2, 3, 2, 1])
    loss, infeasible = losses.ctc(log_probs, lengths, targets, target_lengths)
    # 3 3 2 needs four frames and has three; the last utterance has no frame at all.
    each = [-math.log(path_sum(log_probs[0], [3, 2])) / 2]
    each += [-math.log(path_sum(log_probs[2, :3], [2, 2])) / 2]
    assert loss.item() == pytest.approx(sum(each) / 2, rel=1e-5)
    assert infeasible.item() == 2


def test_ctc_of_infeasible_utterances_has_finite_gradients() -> None:
    logits = torch.randn(2, 2, 4, requires_grad=True)
    targets, lengths = torch.tensor([[2, 2, 3], [2, 0, 0]]), torch.tensor([2, 0])
    loss, infeasible = losses.ctc(logits.log_softmax(-1), lengths, targets, torch.tensor([3, 1]))
    loss.backward()
    assert loss.item() == 0 and infeasible.item() == 2
    assert logits.grad is not None and not logits.grad.any()


def test_ctc_without_frames_or_tokens() -> None:
    none = losses.ctc(
        torch.zeros(1, 0, 4), torch.tensor([0]), torch.tensor([[2]]), torch.tensor([1])
    )
    assert none.loss.item() == 0 and none.infeasible.item() == 1
    log_probs = torch.zeros(1, 2, 4).log_softmax(-1)
    empty = torch.zeros(1, 0, dtype=torch.long)
    found = losses.ctc(log_probs, torch.tensor([2]), empty, torch.tensor([0]))
    assert found.loss.item() == pytest.approx(2 * math.log(4)) and found.infeasible.item() == 0


def test_guided_attention_is_the_expected_penalty() -> None:
    weights = torch.rand(3, 4, 2, 5, generator=torch.Generator().manual_seed(2))
    lengths = torch.tensor([5, 3, 4])
    for b, length in enumerate(lengths.tolist()):
        weights[b, ..., length:] = 0
    weights = weights / weights.sum(-1, keepdim=True)
    rows = []
    for b, u in product(range(3), range(4)):
        if MASK[b, u]:
            position = u / int(MASK[b].sum())
            for head in range(2):
                rows.append(
                    sum(
                        float(weights[b, u, head, s])
                        * (1 - math.exp(-((position - s / int(lengths[b])) ** 2) / (2 * 0.3**2)))
                        for s in range(int(lengths[b]))
                    )
                )
    found = losses.guided_attention(weights, lengths, MASK, 0.3)
    assert found.item() == pytest.approx(sum(rows) / len(rows), rel=1e-5)


def test_guided_attention_prefers_the_diagonal() -> None:
    mask, lengths = torch.ones(1, 6, dtype=torch.bool), torch.tensor([6])
    diagonal = torch.eye(6).view(1, 6, 1, 6)
    assert losses.guided_attention(diagonal, lengths, mask).item() == 0
    assert losses.guided_attention(diagonal.flip(1), lengths, mask).item() > 0.5


@pytest.mark.parametrize("heard", [0.0, 0.25, 1.0])
def test_not_to_listen_is_no_way_out_of_the_guide(heard: float) -> None:
    """Rows of less than one, as those of monotonic attention may be."""
    mask, lengths = torch.ones(1, 6, dtype=torch.bool), torch.tensor([6])
    weights = heard * torch.eye(6).view(1, 6, 1, 6)
    found = losses.guided_attention(weights, lengths, mask).item()
    assert found == pytest.approx(1 - heard)


NAN = math.nan


def test_tokens_share_their_words_time() -> None:
    times = torch.tensor(
        [
            # "ab c": two letters from 1 to 2 s, a pause to 2.5 s, a letter to 4 s, padding
            [[1.0, 2.0], [1.0, 2.0], [2.0, 2.5], [2.5, 4.0], [0.0, 0.0]],
            [[NAN, NAN], [NAN, NAN], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]],
            [[0.0, 0.0]] * 5,
        ]
    )
    centres = losses.token_centres(times, torch.tensor([4, 2, 0]))
    assert centres[0, :5].tolist() == [1.25, 1.75, 2.25, 3.25, 4.0]
    assert centres[1, :3].isnan().all() and centres[2].isnan().all()


def test_known_times_guide_instead_of_the_diagonal() -> None:
    """Attention at the words' true places costs nothing, on the diagonal it costs; elsewhere
    the diagonal still holds."""
    times = torch.tensor([[[2.0, 2.5], [2.5, 3.0]], [[NAN, NAN], [NAN, NAN]]])
    mask, lengths = torch.ones(2, 3, dtype=torch.bool), torch.tensor([8, 8])
    true = torch.zeros(2, 3, 1, 8)
    true[0, [0, 1, 2], 0, [4, 5, 6]] = 1.0  # centres 2.25, 2.75, 3.0 s in frames of 0.5 s
    true[1, [0, 1, 2], 0, [0, 3, 5]] = 1.0
    options = {"token_times": times, "seconds": 0.3, "frame_shift": 0.5}
    found = losses.guided_attention(true, lengths, mask, **options)
    swapped = losses.guided_attention(true.flip(0), lengths, mask, **options)
    assert found.item() < 0.11  # 0.25 s is off for <eos>, at a border
    assert swapped.item() > 0.2
    assert losses.guided_attention(true, lengths, mask).item() > 0.2
