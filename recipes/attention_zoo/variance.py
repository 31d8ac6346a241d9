"""How noisy the gradient of hard attention is, with its baseline and without."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from asr.inference.bundle import Bundle
from asr.nn.attention import Hard
from asr.nn.las import LAS
from asr.training import losses
from asr.types import Batch


def gradient_variance(found: Bundle, given: Batch, *, draws: int = 32) -> dict[str, Any]:
    """The variance of the score's gradient over draws of the glimpses, the batch kept as it is.

    Sum over parameters of the variance of each (E |g - E g|^2), of the mechanism's own loss with
    what it subtracts from the reward, moving average and learned baseline, and with the reward as
    it is (Xu et al. 2015, sect. 4.1); ``ratio`` is the second over the first. The same draws serve
    both. ValueError for a model whose attention is not hard.
    """
    model = found.model
    if not isinstance(model.speller.attention, Hard):
        raise ValueError(f"{found.name}: its attention is {model.speller.attention.name}, not hard")
    training, expected = model.training, model.speller.attention.expected
    model.speller.attention.expected = 0.0  # every utterance hears a draw
    for module in model.train().modules():  # glimpses are drawn, and nothing else is
        if isinstance(module, nn.Dropout):
            module.eval()
    try:
        pairs = [_gradients(model, model.speller.attention, given) for _ in range(draws)]
    finally:
        model.train(training)
        model.speller.attention.expected = expected
    with_it, without = (torch.stack(each) for each in zip(*pairs, strict=True))
    one, other = (float(each.var(0).sum()) for each in (with_it, without))
    return {
        "with_baseline": one,
        "without_baseline": other,
        "ratio": other / one if one else None,
        "draws": draws,
    }


def _gradients(model: LAS, attention: Hard, given: Batch) -> tuple[Tensor, Tensor]:
    """Of the parameters that score glimpses, flat: with baseline, and without."""
    with torch.no_grad():
        encoded = model.encode(given.waves, given.wave_lengths)
    inputs, outputs, mask = losses.teacher(given.targets, given.target_lengths)
    spelled = model.speller(encoded, inputs, given.target_lengths + 1)
    log_probs = losses.token_log_probs(spelled.logits, outputs)
    parameters = list(attention.score.parameters())
    kept = attention.average.clone()
    found = []
    for baseline in (True, False):
        terms = dict(spelled.terms)
        if not baseline:
            attention.average.zero_()
            terms["baseline"] = torch.zeros_like(terms["baseline"])
        loss = attention.loss(terms, mask, log_probs)
        assert loss is not None
        gradients = torch.autograd.grad(loss, parameters, retain_graph=True)
        attention.average.copy_(kept)  # what the loss has moved
        found.append(torch.cat([gradient.flatten() for gradient in gradients]))
    return found[0], found[1]
