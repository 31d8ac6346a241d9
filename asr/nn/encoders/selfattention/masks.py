"""Which glimpses may see which."""

from __future__ import annotations

import torch
from torch import Tensor

from asr.nn.encoders.selfattention.base import Mask


class Full(Mask):
    """Every glimpse sees every other: global attention (Luong et al. 2015, sect. 3.1)."""

    name = "full"

    def forward(self, size: int, device: torch.device) -> Tensor | None:
        return None
