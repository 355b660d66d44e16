"""Studies: apply one change after another, and return the effect of each change as a row of a table:

effects = list(head_study(model, measure))
write_rows("heads.csv", [effect.row() for effect in effects])
"""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from glassformer.decoding.transformer_step import padded
from glassformer.errors import ConfigError, ShapeError
from glassformer.model.taps import Trace, intervene, record
from glassformer.model.transformer import Transformer
from glassformer.watch.inspection.edits import HeadSet, heads_of, patched, without_heads
from glassformer.watch.inspection.forced import outputs

__all__ = ["HeadEffect", "PatchEffect", "grid", "head_study", "patching_study", "write_rows"]


SETS: tuple[HeadSet, ...] = ("encoder", "decoder", "cross")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadEffect:
    """The values measured without one head, and the progress of the study."""

    which: HeadSet | None
    """The group of the removed head's attention layer; None = no head was removed."""
    layer: int | None
    head: int | None
    values: Mapping[str, float]
    """The measured values."""
    changes: Mapping[str, float]
    """The values minus the values of the whole model."""
    done: int
    total: int

    def row(self) -> dict[str, object]:
        """Return a flat row: set, layer, head, each value and its change."""
        changes = {f"{name} change": change for name, change in self.changes.items()}
        return {"set": self.which or "none", "layer": self.layer, "head": self.head, **self.values, **changes}


def head_study(
    model: Transformer, measure: Callable[[], Mapping[str, float]], sets: Sequence[HeadSet] = SETS
) -> Iterator[HeadEffect]:
    """Yield the result of `measure` for the whole model, then without each single head, one set of heads after another.

    `measure` evaluates the model in any way you choose, such as translating or scoring, and returns a mapping from
    metric names to values.
    """
    heads = [(which, name, head) for which in sets for name, head in heads_of(model, which)]
    whole, total = dict(measure()), len(heads) + 1
    same = dict.fromkeys(whole, 0.0)
    yield HeadEffect(which=None, layer=None, head=None, values=whole, changes=same, done=1, total=total)
    for done, (which, name, head) in enumerate(heads, start=2):
        with intervene(model, without_heads({name: [head]})):
            values = dict(measure())
        changes = {key: value - whole[key] for key, value in values.items()}
        layer = int(name.split(".")[2])
        yield HeadEffect(which=which, layer=layer, head=head, values=values, changes=changes, done=done, total=total)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchEffect:
    """The effect of one patched position, and the progress of the study."""

    point: str
    position: int
    effect: float
    """Share of the clean source's preference that the patch restores: 0 = nothing, 1 = everything."""
    done: int
    total: int

    def row(self) -> dict[str, object]:
        """Return a flat row: point, position, effect."""
        return {"point": self.point, "position": self.position, "effect": self.effect}


def patching_study(
    model: Transformer,
    clean: Sequence[int],
    corrupted: Sequence[int],
    right: Sequence[int],
    wrong: Sequence[int],
    *,
    points: Sequence[str],
    positions: Sequence[int] | None = None,
) -> Iterator[PatchEffect]:
    """Yield, for each point and position, how far a patch from the clean source restores the preference.

    The model reads the corrupted source. A patch replaces the value at one position by the value recorded for the clean
    source. The preference is log p(right) − log p(wrong), where `right` and `wrong` are outputs or beginnings of
    outputs, for example up to a pronoun. Both sources end with `<eos>` and have equal lengths. Positions are source
    positions for points of the encoder, and target positions for points of the decoder.

    Raises:
        ShapeError: the sources have different lengths.
        ConfigError: a name matches no point, or both sources give the same preference.
    """
    if len(clean) != len(corrupted):
        raise ShapeError(f"corrupted: expected {len(clean)} tokens as in the clean source, got {len(corrupted)}")
    traces = [_recorded(model, clean, output, points) for output in (right, wrong)]
    best, worst = (_preference(model, source, right, wrong) for source in (clean, corrupted))
    if best == worst:
        raise ConfigError("both sources give the same preference, so there is nothing to restore: choose other sources")
    rows = {point: min(trace[point].shape[-2] for trace in traces) for point in points}
    places = [
        (point, place) for point in points for place in range(rows[point]) if positions is None or place in positions
    ]
    for done, (point, place) in enumerate(places, start=1):
        log_probs = []
        for trace, output in zip(traces, (right, wrong), strict=True):
            with intervene(model, patched(trace, point, [(place, place)])):
                log_probs.append(outputs(model, [(corrupted, output)])[0].log_prob)
        effect = (log_probs[0] - log_probs[1] - worst) / (best - worst)
        yield PatchEffect(point=point, position=place, effect=effect, done=done, total=len(places))


def grid(effects: Sequence[PatchEffect]) -> NDArray[np.float64]:
    """Return effects as an array (points, positions); NaN where an effect is missing.

    Points are in the order of `effects`, and positions in ascending order.
    """
    points = list(dict.fromkeys(effect.point for effect in effects))
    positions = sorted({effect.position for effect in effects})
    table = np.full((len(points), len(positions)), np.nan)
    for effect in effects:
        table[points.index(effect.point), positions.index(effect.position)] = effect.effect
    return table


def write_rows(path: str | Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows as CSV, with the first row's column names as the header."""
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)


@torch.no_grad()
def _recorded(model: Transformer, source: Sequence[int], output: Sequence[int], points: Sequence[str]) -> Trace:
    with record(model, points) as trace:
        model(padded(model, [source]), padded(model, [[model.config.bos_id, *output[:-1]]]))
    return trace


def _preference(model: Transformer, source: Sequence[int], right: Sequence[int], wrong: Sequence[int]) -> float:
    one, other = outputs(model, [(source, right), (source, wrong)])
    return one.log_prob - other.log_prob
