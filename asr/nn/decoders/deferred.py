"""The gradient of a weight that every step of a loop uses, in one product for all steps."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class _Deferred(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, terms: Tensor, weight: Tensor, inputs: list[Tensor]) -> Tensor:
        ctx.inputs = inputs
        ctx.dtype = weight.dtype
        return terms.view_as(terms)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None, None]:
        found = None
        if ctx.needs_input_grad[1]:
            inputs = torch.stack(ctx.inputs, 1).flatten(0, 1).to(ctx.dtype)
            found = gradient.flatten(0, 1).to(ctx.dtype).t() @ inputs
        return gradient, found, None


def deferred(terms: Tensor, weight: Tensor, inputs: list[Tensor]) -> Tensor:
    """``terms`` (N,U,O) themselves; ``weight`` (O,I) gets its gradient where theirs arrives.

    For a loop over u of ``y_u = terms[:, u] + x_u @ weight.detach().T`` that appends each x_u
    (N,I), detached, to ``inputs``: y_u and ``terms[:, u]`` have the same gradient g_u, and that of
    the weight, the sum of g_u^T x_u, is one product instead of U small ones, each of which would
    write all of it anew.
    """
    return _Deferred.apply(terms, weight, inputs)
