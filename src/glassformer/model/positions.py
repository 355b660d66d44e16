"""Positions: attention alone ignores order, so a pattern that depends on the position is added to each embedding.

Axes: T positions · D d_model.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.errors import ConfigError, ShapeError, quoted
from glassformer.model.config import PositionKind

__all__ = ["Positions", "sinusoids"]


def sinusoids(
    length: int,
    d_model: int,
    layout: Literal["interleaved", "halves"] = "interleaved",
    *,
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "T D"]:
    """Return the sinusoids of the first `length` positions, in [−1, 1].

    The i-th sine and cosine share an angle, which grows by 10000^(−2i/d_model) per position. "interleaved" is the
    paper's formula: PE[pos, 2i] = sin, PE[pos, 2i+1] = cos. "halves" has all sines, then all cosines: the same values
    in a different order of dimensions. The result is computed in float64 and returned in `dtype` (default: PyTorch's
    default dtype). With an odd d_model, the last cosine is left out.

    Raises:
        ConfigError: the layout is unknown.

    Paper: §3.5.

    >>> sinusoids(2, 4)[1]
    tensor([0.8415, 0.5403, 0.0100, 0.9999])
    """
    if layout not in ("interleaved", "halves"):
        raise ConfigError(f"layout: expected 'interleaved' or 'halves', got {quoted(layout)}")
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model  # 2i/d_model
    angles = torch.arange(length, dtype=torch.float64)[:, None] * torch.pow(10000.0, -exponent)  # (T, D/2)
    match layout:
        case "interleaved":
            table = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d_model]  # (T, D/2, 2) -> (T, D)
        case "halves":
            table = torch.cat([angles.sin(), angles.cos()[:, : d_model // 2]], dim=-1)
    return table.to(dtype or torch.get_default_dtype())


class Positions(nn.Module):
    """The pattern of each position: sinusoids (§3.5), a learned table (Table 3, row E), or none."""

    def __init__(self, kind: PositionKind, d_model: int, max_length: int) -> None:
        super().__init__()
        self.kind, self.d_model, self.max_length = kind, d_model, max_length
        if kind == "learned":
            self.table = nn.Parameter(torch.randn(max_length, d_model) * d_model**-0.5)

    def forward(self, start: int | Int[Tensor, "B 1"], length: int, like: Tensor) -> Float[Tensor, "*B T D"]:
        """Return the patterns of `length` positions from `start` on, with the device and dtype of `like`.

        If `start` is a tensor, each row has its own start.

        Raises:
            ShapeError: a learned table is too short for the last position.
        """
        if self.kind == "none":
            return like.new_zeros(length, self.d_model)
        if isinstance(start, int):
            patterns = self.patterns(start + length, like)[start : start + length]
            return patterns.clone()  # a copy, so that changing the result cannot change the cached table
        return self.patterns(int(start.max()) + length, like)[start + torch.arange(length, device=like.device)]

    def patterns(self, end: int, like: Tensor) -> Float[Tensor, "P D"]:
        """Return the patterns of at least the first `end` positions.

        Raises:
            ShapeError: a learned table has fewer positions.
        """
        match self.kind:
            case "none":
                return like.new_zeros(end, self.d_model)
            case "interleaved" | "halves" as layout:
                # rounded up to a power of two, so that few tables are computed and cached
                length = max(256, 1 << (end - 1).bit_length())
                return _sinusoid_table(length, self.d_model, layout, like.dtype, like.device)
            case "learned":
                self._check_length(end)
                return self.table

    def _check_length(self, end: int) -> None:
        if end > self.max_length:
            raise ShapeError(
                f"the sequence has {end} positions, but the learned table ends at {self.max_length}: shorten the "
                "sequence, or train with a larger model.max_length or with sinusoids"
            )

    if TYPE_CHECKING:
        __call__ = forward


@lru_cache(maxsize=16)
def _sinusoid_table(
    length: int,
    d_model: int,
    layout: Literal["interleaved", "halves"],
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    # The table is cached beyond this call, so it must not become an inference tensor or be created on the caller's
    # default device.
    with torch.inference_mode(False), torch.device("cpu"):
        return sinusoids(length, d_model, layout, dtype=torch.float64).to(dtype).to(device)
