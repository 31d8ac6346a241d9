"""What the plain loops of these tests have in common."""

from __future__ import annotations

import math

import torch
from torch import Tensor

C, H = 8, 6


def additive(score, s: Tensor, h: Tensor, feature: Tensor | float = 0.0) -> float:
    inner = score.query.weight @ s + score.key.weight @ h + score.key.bias + feature
    return float(score.energy.weight[0] @ torch.tanh(inner))


def softmax(scores: list[float]) -> list[float]:
    exps = [math.exp(score - max(scores)) for score in scores]
    return [e / sum(exps) for e in exps]
