"""Compare a reader's tensors with the reference's tensors, and find the mistakes that give the reader's numbers."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from glassformer.errors import quoted
from glassformer.model.config import ModelConfig
from glassformer.watch.capstone.reading import Mine, RejectedError
from glassformer.watch.inspection.divergence import first_differing, relative_error
from glassformer.watch.inspection.mistakes import MISTAKES
from glassformer.watch.inspection.reference import Array, Mask, Reference
from glassformer.watch.inspection.suspects import SUSPECTS

__all__ = ["ReadersCase", "array", "compare_with_reference", "tensor", "watched"]

_TOLERANCE = 1e-4
"""Maximum difference, relative to the largest number of a tensor. This allows for a table of positions in float32."""
_ROUNDING = 1e-9
"""Maximum relative difference between equal computations in float64."""

_WRONG = {mistake.title: mistake.wrong for mistake in MISTAKES.values()}
_INPUTS = (".query", ".key", ".value")


class _MaskInverted(Reference):
    def attention(self, scores: Array, mask: Mask) -> Array:
        return super().attention(scores, np.logical_not(mask))

    def padding(self, ids: Sequence[int]) -> Mask:
        return np.asarray(np.logical_not(super().padding(ids)))

    def target_mask(self, target: Sequence[int]) -> Mask:
        return np.asarray(np.logical_not(super().padding(target) & np.tri(len(target), dtype=bool)))


class _NoMask(Reference):
    def attention(self, scores: Array, mask: Mask) -> Array:
        return super().attention(scores, np.ones_like(mask))


class _MaskByZero(Reference):
    def attention(self, scores: Array, mask: Mask) -> Array:
        return super().attention(scores, mask & (scores != 0))


class _MaskFinite(Reference):
    def attention(self, scores: Array, mask: Mask) -> Array:
        return super().attention(np.where(mask, scores, -1e9), np.ones_like(mask))


class _MaskInfinite(Reference):
    def attention(self, scores: Array, mask: Mask) -> Array:
        return np.where(np.any(mask, axis=-1, keepdims=True), super().attention(scores, mask), np.nan)


class _PairsDoubled(Reference):
    def exponents(self) -> tuple[Array, Array]:
        sine, cosine = super().exponents()
        return 2 * sine, 2 * cosine


_SUSPECTS: Mapping[str, type[Reference]] = {
    **SUSPECTS,
    "the mask inverted: True means may attend": _MaskInverted,
    "the mask not used": _NoMask,
    "scores of 0 hidden, also where the mask is True: hide the keys by the mask, not by their scores": _MaskByZero,
    "a row that is False everywhere: a finite number such as −1e9 spreads its weight over all keys": _MaskFinite,
    "a row that is False everywhere: the softmax of −∞ only is NaN. After the softmax, set the weights of such a row "
    "to 0, for example with masked_fill": _MaskInfinite,
    "an i that already steps by two, doubled once more in the exponent": _PairsDoubled,
}


@dataclass(frozen=True, slots=True)
class ReadersCase:
    """A reader's tensors for one input, by point, and a function that runs the reference on the same input."""

    observed: Mapping[str, Array]
    run: Callable[[Reference], object]


def compare_with_reference(
    config: ModelConfig,
    weights: Mapping[str, Array],
    cases: Sequence[ReadersCase],
    line: int | None,
    shown: Callable[[str], str] = str,
    suspects: Mapping[str, type[Reference]] = _SUSPECTS,
) -> None:
    """Compare the cases of one step; `shown` turns a point's name into the reader's name for the point.

    Raises:
        RejectedError: a tensor differs from the reference.
    """
    rights = [_points(Reference, config, weights, case) for case in cases]
    for case, right in zip(cases, rights, strict=True):
        point = first_differing(case.observed, right, _TOLERANCE)
        if point is not None:
            likely = tuple(_likely(config, weights, cases, suspects))
            message = (
                f"the first tensor that differs is `{shown(point)}`: {_difference(case.observed[point], right[point])}"
            )
            raise RejectedError(message, line, shown(point), likely)


def _likely(
    config: ModelConfig,
    weights: Mapping[str, Array],
    cases: Sequence[ReadersCase],
    suspects: Mapping[str, type[Reference]],
) -> Iterator[str]:
    """Yield each mistake that gives the reader's numbers in all cases, if no other mistake gives them more exactly.

    Queries, keys and values are not compared, because a reader may scale them instead of the scores.
    """
    errors = {}
    for title, suspect in suspects.items():
        errors[title] = 0.0
        for case in cases:
            points = _points(suspect, config, weights, case)
            names = [name for name in points if name in case.observed and not name.endswith(_INPUTS)]
            errors[title] = max(errors[title], *(_error(case.observed[name], points[name]) for name in names))
    nearest = min(errors.values())
    for title, error in errors.items():
        if error <= min(_TOLERANCE, max(10 * nearest, _ROUNDING)):
            yield f"{title}. {_WRONG[title]}" if title in _WRONG else title


def _error(got: Array, expected: Array) -> float:
    """Return the relative error, where NaN equals NaN: a mistake may give NaN in some rows only."""
    if not np.array_equal(np.isnan(got), np.isnan(expected)):
        return np.inf
    return relative_error(np.where(np.isnan(got), 0.0, got), np.where(np.isnan(expected), 0.0, expected))


def _points(
    suspect: type[Reference], config: ModelConfig, weights: Mapping[str, Array], case: ReadersCase
) -> dict[str, Array]:
    reference = suspect(config, weights)
    with np.errstate(all="ignore"):
        case.run(reference)
    return reference.points


def _difference(got: Array, expected: Array) -> str:
    if got.shape != expected.shape:
        return f"expected shape {expected.shape}, got {got.shape} (without the batch axis)"
    if np.isnan(got).any():
        place = tuple(int(i) for i in np.argwhere(np.isnan(got))[0])
        return f"expected {expected[place]:.4f} at {list(place)}, got NaN"
    place = tuple(int(i) for i in np.unravel_index(np.abs(got - expected).argmax(), got.shape))
    return f"expected {expected[place]:.4f} at {list(place)}, got {got[place]:.4f}"


def tensor(value: Any, what: str, line: int | None, shape: tuple[int, ...] | None = None) -> Tensor:
    """Return `value`, the result of the reader's code, as a tensor.

    Raises:
        RejectedError: `value` is not a tensor, or has a different shape.
    """
    if not isinstance(value, Tensor):
        raise RejectedError(f"{what}: expected a tensor, got {quoted(type(value).__name__)}", line)
    if shape is not None and value.shape != shape:
        raise RejectedError(f"{what}: expected shape {shape}, got {tuple(value.shape)}", line, what)
    return value


def array(value: Tensor) -> Array:
    """Return a tensor as an array in float64."""
    return value.detach().double().cpu().numpy()


@contextmanager
def watched(mine: Mine, module: nn.Module, prefix: str = "") -> Iterator[dict[str, Tensor]]:
    """Yield a dictionary to which each call of a reader's module adds its tensors, by the reference's names of points.

    Args:
        mine: the file; calls of its function `attention` add tensors, too.
        module: the reader's layer, or whole model.
        prefix: the reference's name of the module, such as "encoder.layers.0".
    """
    seen: dict[str, Tensor] = {}
    inside: list[str] = []

    def keep(name: str, value: Any) -> None:
        if isinstance(value, Tensor):
            seen[name] = value

    def attention(*arguments: Any, **named: Any) -> Any:
        result = original(*arguments, **named)
        if inside:
            given = dict(zip(("query", "key", "value"), arguments, strict=False)) | named
            for part in ("query", "key", "value"):
                keep(f"{inside[-1]}.{part}", given.get(part))
            keep(f"{inside[-1]}.heads", result[0])
            keep(f"{inside[-1]}.weights", result[1])
        return result

    original = mine.module.attention
    hooks = []
    for path, part in module.named_modules():
        name = _point(path, prefix)
        if name.endswith("attention"):
            hooks.append(part.register_forward_pre_hook(lambda _part, _given, name=name: inside.append(name)))
            hooks.append(part.register_forward_hook(lambda *_: inside.pop() and None))
        if name.endswith(("attention", ".feed_forward")):
            hooks.append(part.register_forward_hook(lambda _p, _g, out, name=name: keep(f"{name}.output", out)))
        elif name.endswith("_norm"):
            normed = f"{name.removesuffix('_norm')}.normed"
            hooks.append(part.register_forward_hook(lambda _p, _g, out, name=normed: keep(name, out)))
        elif path in ("encoder.0", "decoder.0"):
            side = "source" if path == "encoder.0" else "target"
            hooks.append(part.register_forward_pre_hook(lambda _p, given, name=f"{side}.input": keep(name, given[0])))
    vars(mine.module)["attention"] = attention
    try:
        with torch.no_grad():
            yield seen
    finally:
        vars(mine.module)["attention"] = original
        for hook in hooks:
            hook.remove()


def _point(path: str, prefix: str) -> str:
    """Return the reference's name of the module that is at this path in a reader's model."""
    path = f"{prefix}.{path}".strip(".")
    return re.sub(r"^(encoder|decoder)\.(\d+)", r"\1.layers.\2", path)
