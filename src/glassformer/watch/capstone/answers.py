"""The answers of the book's exercises that are checked: a number, a few numbers, or a small function."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from glassformer.errors import ConfigError, nearest, quoted

__all__ = ["ANSWERS", "verdict"]

_TOLERANCE = 1e-3


def _splits_heads(function: Callable[..., Any]) -> bool:
    import torch

    x = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(0))
    return torch.equal(function(x, 3), x.view(2, 5, 3, 4).transpose(1, 2))


def _is_rms_norm(function: Callable[..., Any]) -> bool:
    import torch

    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(0)) + 2
    return torch.allclose(function(x), x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt(), atol=1e-5)


ANSWERS: Mapping[str, Sequence[float] | Callable[[Callable[..., Any]], bool]] = {
    "why_attention.1": (511,),
    "why_attention.2": (20,),
    "embeddings.1": (37_000 * 512,),
    "positions.1": (math.sin(5 / 10), math.cos(5 / 10)),
    "attention.2": (1 / 3, 1 / 3, 1 / 3),
    "heads.1": (1024 / 16,),
    "heads.2": _splits_heads,
    "masks.1": (1 + 2 + 3 + 4 + 4,),
    "residual.1": (-1 / math.sqrt(3), -1 / math.sqrt(3), -1 / math.sqrt(3), math.sqrt(3)),
    "residual.3": _is_rms_norm,
    "feed_forward.1": (2 * 1024 * 4096 + 4096 + 1024,),
    "encoder.1": (4 * (512 * 512 + 512) + 2 * 512 * 2048 + 2048 + 512 + 4 * 512,),
    "geometry.1": (0.0,),
    "geometry.2": (67.5, 67.5),
    "decoder.1": (6 * 2 * 8 * 64 * (20 + 15),),
    "output.2": (math.exp(3 / 20),),
    "training.1": (16_000,),
    "training.3": ((100 * 2.0 + 300 * 1.0) / 400,),
    "grow_it.1": (math.log(32),),
    "decoding.5": (-3.0 / (8 / 6) ** 0.6, -3.5 / (11 / 6) ** 0.6),
    "by_hand.1": (0.4473,),
    "by_hand_backward.1": (-0.3735,),
    "byte_pairs.1": (21,),
    "what_came_after.1": (3, 3, 3, 4, 5, 6),
}
"""By chapter and number of the exercise: numbers, or a function that tests the reader's function."""


def verdict(exercise: str, answer: Any) -> str:
    """Return whether the answer of an exercise is right, as a short text; numbers may be rounded to 1 in 1,000.

    Args:
        exercise: the chapter and the number, such as "masks.1".
        answer: a number, a list or tensor of numbers, or a function, as the exercise asks; None if there is no
            answer yet.

    Raises:
        ConfigError: the exercise is unknown.

    >>> verdict("training.3", 1.5)
    'not yet: 1.5 is not the answer'
    """
    if exercise not in ANSWERS:
        raise ConfigError(
            f"exercise: expected one of {', '.join(ANSWERS)}, got {quoted(exercise)}{nearest(exercise, ANSWERS)}"
        )
    expected = ANSWERS[exercise]
    if answer is None:
        return "no answer yet: write it in place of None, and run the cell again"
    try:
        right = expected(answer) if callable(expected) else _equal(answer, expected)
    except Exception as error:  # the reader's function may raise anything
        return f"not yet: {type(error).__name__}: {error}"
    return "right" if right else f"not yet: {quoted(answer)} is not the answer"


def _equal(answer: Any, expected: Sequence[float]) -> bool:
    listed = answer.tolist() if hasattr(answer, "tolist") else answer
    numbers = list(listed) if isinstance(listed, list | tuple) else [listed]
    return len(numbers) == len(expected) and all(
        math.isclose(one, other, rel_tol=_TOLERANCE) for one, other in zip(numbers, expected, strict=True)
    )
