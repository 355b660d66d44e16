"""The history of a training run, read from its log."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["History", "Series"]

Line = Mapping[str, Any]
Series = tuple[list[float], list[float]]
"""Steps, and one value per step."""

ENDINGS = {
    "steps": "all steps done",
    "minutes": "out of time",
    "patience": "validation no longer improved",
    "stopped": "stopped",
}
SMOOTHED = 0.04
"""Share of the log over which the training loss is averaged, because the loss varies between batches."""
ENOUGH = 20
"""Minimum number of entries for smoothing; the average then spans at least five entries."""


@dataclass(frozen=True, slots=True)
class History:
    """The entries of metrics.jsonl by kind; if the log lacks a kind or a value, the series is empty."""

    steps: tuple[Line, ...]
    """The logged updates."""
    validations: tuple[Line, ...]
    averages: tuple[Line, ...]
    """Validations of the average of the last checkpoints."""
    end: Line | None
    """The entry of the training's end; None while training continues, or if it was killed."""

    @classmethod
    def of(cls, lines: Sequence[Line]) -> "History":
        """Return the history of these entries; a validation without its loss is left out."""
        kinds = ("step", "validation", "average", "end")
        steps, validations, averages, ends = (tuple(line for line in lines if line["type"] == kind) for kind in kinds)
        validations, averages = (tuple(line for line in some if "loss" in line) for some in (validations, averages))
        return cls(steps, validations, averages, ends[-1] if ends else None)

    @property
    def last_step(self) -> int:
        """The last step in the log."""
        return max((line["step"] for line in (*self.steps, *self.validations, *self._ends)), default=0)

    @property
    def seconds(self) -> float:
        """Training time so far, in seconds."""
        return max((line.get("seconds", 0.0) for line in (*self.steps, *self._ends)), default=0.0)

    @property
    def epochs(self) -> int:
        """Number of passes over the data that have begun so far."""
        return max((line.get("epoch", 0) for line in self.steps), default=0)

    @property
    def status(self) -> str:
        """The status in words: the reason why training ended, or "in progress, or killed"."""
        return ENDINGS[self.end["reason"]] if self.end and "reason" in self.end else "in progress, or killed"

    @property
    def best(self) -> Line | None:
        """The validation of the weights that the run has kept."""
        kept = [line for line in (*self.validations, *self.averages) if line.get("best") or line.get("kept")]
        return kept[-1] if kept else None

    @property
    def metric(self) -> str:
        """The name of the metric, such as "greedy BLEU"; "" if there is none."""
        return next((f"greedy {line['metric'][0]}" for line in self.validations if line.get("metric")), "")

    def loss(self) -> Series:
        """Return the smoothed training loss; both ends are averaged over fewer entries, so the start stays visible."""
        steps, values = self.series("loss")
        reach = max(int(SMOOTHED * len(values) / 2), 2) if len(values) >= ENOUGH else 0
        reaches = [min(reach, place, len(values) - 1 - place) for place in range(len(values))]
        windows = (values[place - near : place + near + 1] for place, near in enumerate(reaches))
        return steps, [sum(window) / len(window) for window in windows]

    def series(self, name: str) -> Series:
        """Return a value of the updates as a series; entries without this value are left out."""
        return _series(self.steps, lambda line: line.get(name))

    def waited(self) -> Series:
        """Return the share of time that updates waited for their batches, in %."""
        return _series(self.steps, _waited)

    def padding(self) -> Series:
        """Return the share of padding in the batches, in %."""
        return _series(self.steps, lambda line: None if line.get("padding") is None else 100 * line["padding"])

    def validation_loss(self) -> Series:
        """Return the loss of the validation set."""
        return _series(self.validations, lambda line: line.get("loss"))

    def validation_metric(self) -> Series:
        """Return the metric of the validation set."""
        return _series(self.validations, lambda line: line["metric"][1] if line.get("metric") else None)

    @property
    def _ends(self) -> tuple[Line, ...]:
        return (self.end,) if self.end else ()


def _series(lines: Sequence[Line], value: Callable[[Line], float | None]) -> Series:
    found = [(float(line["step"]), float(y)) for line in lines if (y := value(line)) is not None]
    return [x for x, _ in found], [y for _, y in found]


def _waited(line: Line) -> float | None:
    waited, speed, tokens = (line.get(name) for name in ("waited", "tokens_per_second", "target_tokens"))
    return None if waited is None or speed is None or not tokens else float(100 * waited * speed / tokens)
