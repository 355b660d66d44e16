"""Dropout: in training, each value is set to 0 with probability p, and the others grow by 1 / (1 − p)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["Dropout", "dropout"]

BITS = 16
"""Random bits for each value: p is met to within 2^-16."""


class Dropout(nn.Dropout):
    """`torch.nn.Dropout`, several times faster on CPUs. Paper: §5.4."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x, in training with some of its values dropped."""
        return dropout(x, self.p) if self.training else x


def dropout(x: Tensor, p: float) -> Tensor:
    """Return x with each value set to 0 with probability p, and the others times 1 / (1 − p).

    Differs from `torch.nn.functional.dropout` only on CPUs, and there in how the random numbers are drawn: that draws
    one number of 53 bits for each value; here one of 64 bits serves four of them.
    """
    if p == 0.0 or x.device.type != "cpu":
        return F.dropout(x, p)
    words = torch.empty(-(-x.numel() * BITS // 64), dtype=torch.int64).random_(-(2**63), None)
    dropped = round(p * 2**BITS)  # of the 2^16 values that a number can have
    kept: Tensor = words.view(torch.int16)[: x.numel()] >= dropped - 2 ** (BITS - 1)
    return x * kept.view(x.shape).to(x.dtype).mul_(2**BITS / (2**BITS - dropped))
