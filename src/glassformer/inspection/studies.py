"""Studies: one change after the other, what each does to a measure, as plain rows.

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
from glassformer.inspection.edits import HeadSet, heads_of, patched, without_heads
from glassformer.inspection.forced import outputs
from glassformer.model.taps import Trace, intervene, record
from glassformer.model.transformer import Transformer

__all__ = ["HeadEffect", "PatchEffect", "grid", "head_study", "patching_study", "write_rows"]

Ids = Sequence[int]
SETS: tuple[HeadSet, ...] = ("encoder", "decoder", "cross")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadEffect:
    """What was measured without one head, and how far the study has come."""

    which: HeadSet | None
    """Whose head it is; None: no head was taken away."""
    layer: int | None
    head: int | None
    values: Mapping[str, float]
    """What was measured."""
    changes: Mapping[str, float]
    """The same, less what was measured of the whole model."""
    done: int
    total: int

    def row(self) -> dict[str, object]:
        """Return a flat row: set, layer, head, each value and its change."""
        changes = {f"{name} change": change for name, change in self.changes.items()}
        return {"set": self.which or "none", "layer": self.layer, "head": self.head, **self.values, **changes}


def head_study(
    model: Transformer, measure: Callable[[], Mapping[str, float]], sets: Sequence[HeadSet] = SETS
) -> Iterator[HeadEffect]:
    """Yield what `measure` finds of the whole model, then without each head in turn, set after set.

    `measure` uses the model in whatever way (to translate, to score) and returns numbers by name.
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
    """What one patched position does, and how far the study has come."""

    point: str
    position: int
    effect: float
    """How much of the preference comes back: 0 = nothing, 1 = all of it."""
    done: int
    total: int

    def row(self) -> dict[str, object]:
        """Return a flat row: point, position, effect."""
        return {"point": self.point, "position": self.position, "effect": self.effect}


def patching_study(
    model: Transformer,
    clean: Ids,
    corrupted: Ids,
    right: Ids,
    wrong: Ids,
    *,
    points: Sequence[str],
    positions: Sequence[int] | None = None,
) -> Iterator[PatchEffect]:
    """Yield how far each position of each point, taken from the clean source, restores a preference in the corrupted.

    The preference is log p(right) − log p(wrong), of two outputs or of their beginnings, such as those that end with
    a pronoun. The sources, with `<eos>`, are equally long. Positions are those of the point: of the source or, behind
    the decoder's input, of the target.

    Raises:
        ShapeError: the sources are not equally long.
        ConfigError: a name fits no point, or both sources give the same preference.
    """
    if len(clean) != len(corrupted):
        raise ShapeError(f"the sources have {len(clean)} and {len(corrupted)} tokens: patch between equally long ones")
    traces = [_recorded(model, clean, output, points) for output in (right, wrong)]
    best, worst = (_preference(model, source, right, wrong) for source in (clean, corrupted))
    if best == worst:
        raise ConfigError("both sources give the same preference between the two outputs: there is nothing to restore")
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
    """Return effects as an array (points, positions), in the order in which they came; NaN where there is none."""
    points = list(dict.fromkeys(effect.point for effect in effects))
    positions = sorted({effect.position for effect in effects})
    table = np.full((len(points), len(positions)), np.nan)
    for effect in effects:
        table[points.index(effect.point), positions.index(effect.position)] = effect.effect
    return table


def write_rows(path: str | Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows as CSV, with the names of the first one's columns above."""
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)


@torch.no_grad()
def _recorded(model: Transformer, source: Ids, output: Ids, points: Sequence[str]) -> Trace:
    with record(model, points) as trace:
        model(padded(model, [source]), padded(model, [[model.config.bos_id, *output[:-1]]]))
    return trace


def _preference(model: Transformer, source: Ids, right: Ids, wrong: Ids) -> float:
    one, other = outputs(model, [(source, right), (source, wrong)])
    return one.log_prob - other.log_prob
