"""Exponential moving average of the weights, which validation and the bundle use."""

from __future__ import annotations

from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import WeightAveraging


class Average(WeightAveraging):
    """Averages weights after every step (Polyak & Juditsky 1992; Tarvainen & Valpola 2017, eq. 1).

    Args:
        decay: in [0, 1); 0 keeps the newest weights alone. Early on the average forgets faster,
            ``min(decay, (1 + n) / (10 + n))`` after n steps, so that it never shows the random
            weights a run begins with.
    """

    def __init__(self, *, decay: float = 0.998) -> None:
        if not 0 <= decay < 1:
            raise ValueError(f"decay={decay}: needs 0 <= decay < 1")
        super().__init__(use_buffers=False)
        self.decay = decay

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: Any) -> None:
        """Move the average towards the new weights; AveragedModel's own way asks the GPU first."""
        step = trainer.global_step
        if step <= self._latest_update_step or self._average_model is None:
            return
        weight = 1 - min(self.decay, (1 + step) / (10 + step))
        average = self._average_model.module
        with torch.no_grad():
            torch._foreach_lerp_(list(average.parameters()), list(pl_module.parameters()), weight)
            for kept, current in zip(average.buffers(), pl_module.buffers(), strict=True):
                kept.copy_(current)
        self._latest_update_step = step
