"""Find the first point at which a model differs from the paper, and a known mistake that gives the same numbers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from glassformer.decoding.transformer_step import padded
from glassformer.model.config import ModelConfig
from glassformer.model.points import Point, named_points
from glassformer.model.taps import record
from glassformer.model.transformer import Transformer
from glassformer.watch.inspection.reference import Array, Reference
from glassformer.watch.inspection.suspects import SUSPECTS

__all__ = ["Divergence", "divergence", "first_differing", "relative_error"]

RELATIVE_TOLERANCE = 1e-9
"""Tolerance for numbers in float64, relative to the largest number of a point."""
ALIKE = 1e-7
"""Maximum relative difference between a model and a reference with the same mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first difference between a model and the paper."""

    point: str
    """The first point that differs."""
    size: float
    """The largest difference at this point."""
    mistakes: tuple[str, ...]
    """The likely mistakes, in words."""
    exact: bool
    """Whether a single known mistake explains all numbers; if so, `mistakes` contains only this mistake."""


def divergence(model: Transformer, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Divergence | None:
    """Return the first difference between a model in float64 and the reference, or None if they are equal.

    Each pair is a source and a target input. Some mistakes only show in some pairs, so give pairs with sides of equal
    length, with and without padding, and pairs with sides of different lengths.
    """
    weights = {name: weight.detach().double().cpu().numpy() for name, weight in model.named_parameters()}
    for source, target in pairs:
        observed = _observed(model, source, target)
        right = Reference(model.config, weights)(source, target)
        first = first_differing(observed, right)
        if first is not None:
            size = np.abs(observed[first] - right[first]).max() if _fits(observed, right, first) else np.inf
            numbers = {title: _as(model.config, weights, title, source, target) for title in SUSPECTS}
            mistakes, exact = _named(named_points(model.config)[first], observed, right, numbers)
            return Divergence(point=first, size=float(np.nan_to_num(size, nan=np.inf)), mistakes=mistakes, exact=exact)
    return None


@torch.no_grad()
def _observed(model: Transformer, source: Sequence[int], target: Sequence[int]) -> dict[str, Array]:
    with record(model) as trace:
        model(padded(model, [source]), padded(model, [target]))
    positions = ("source.positions", "target.positions")  # the only points without a batch axis
    return {name: (value if name in positions else value[0]).cpu().numpy() for name, value in trace.items()}


def _as(
    config: ModelConfig, weights: Mapping[str, Array], title: str, source: Sequence[int], target: Sequence[int]
) -> dict[str, Array]:
    with np.errstate(all="ignore"):
        return SUSPECTS[title](config, weights)(source, target)


def _named(
    first: Point, observed: Mapping[str, Array], right: Mapping[str, Array], suspects: Mapping[str, Mapping[str, Array]]
) -> tuple[tuple[str, ...], bool]:
    """Return the likely mistakes, and whether a single mistake explains every number."""
    alike = {title: max(_errors(observed, points)) for title, points in suspects.items()}
    best = min(alike, key=lambda title: alike[title])
    if alike[best] <= ALIKE:
        return (best,), True
    here = [
        title for title, points in suspects.items() if relative_error(observed[first.name], points[first.name]) <= ALIKE
    ]
    same_place = [title for title, points in suspects.items() if first_differing(points, right) == first.name]
    return tuple(here or [*same_place, first.suspect]), False


def first_differing(
    observed: Mapping[str, Array], right: Mapping[str, Array], tolerance: float = RELATIVE_TOLERANCE
) -> str | None:
    """Return the first recorded point that differs from the reference, in the reference's order, or None."""
    names = [name for name in right if name in observed]
    return next((name for name in names if not relative_error(observed[name], right[name]) <= tolerance), None)


def _errors(observed: Mapping[str, Array], points: Mapping[str, Array]) -> Iterator[float]:
    return (relative_error(observed[name], points[name]) for name in points if name in observed)


def relative_error(one: Array, other: Array) -> float:
    """Return the largest difference / (1 + the largest number of `other`); infinite for different shapes or NaN."""
    if one.shape != other.shape:
        return np.inf
    with np.errstate(all="ignore"):
        different = np.where(one == other, 0.0, np.abs(one - other))  # −∞ − −∞ would be NaN
        return float(np.nan_to_num(different.max() / (1 + np.abs(other).max()), nan=np.inf))


def _fits(observed: Mapping[str, Array], right: Mapping[str, Array], name: str) -> bool:
    return observed[name].shape == right[name].shape
