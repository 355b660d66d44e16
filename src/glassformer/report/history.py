"""How a training went, as its log tells it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["History", "Series"]

Line = Mapping[str, Any]
Series = tuple[list[float], list[float]]
"""Steps, and a value for each."""

ENDINGS = {
    "steps": "all steps done",
    "minutes": "its time was over",
    "patience": "validation no longer improved",
    "stopped": "stopped",
}
SMOOTHED = 0.04
"""Share of the log over which the training loss, which jumps from batch to batch, is averaged."""
ENOUGH = 20
"""Lines of a log that is long enough for it: five lines at least are averaged."""


@dataclass(frozen=True, slots=True)
class History:
    """The lines of metrics.jsonl, by kind; a log that has none of a kind, or lacks a value, gives empty series."""

    steps: tuple[Line, ...]
    """Updates, those that were logged."""
    validations: tuple[Line, ...]
    averages: tuple[Line, ...]
    """Validations of the mean of the last checkpoints."""
    end: Line | None
    """The end; None while a training goes on, or when it was killed."""

    @classmethod
    def of(cls, lines: Sequence[Line]) -> "History":
        """Return the history that these lines tell."""
        kinds = {kind: tuple(line for line in lines if line["type"] == kind) for kind in ("step", "validation")}
        averages = tuple(line for line in lines if line["type"] == "average")
        ends = [line for line in lines if line["type"] == "end"]
        return cls(kinds["step"], kinds["validation"], averages, ends[-1] if ends else None)

    @property
    def last_step(self) -> int:
        """The last step that the log knows."""
        return max((line["step"] for line in (*self.steps, *self.validations, *self._ends)), default=0)

    @property
    def seconds(self) -> float:
        """Time spent in training."""
        return max((line["seconds"] for line in (*self.steps, *self._ends)), default=0.0)

    @property
    def epochs(self) -> int:
        """How many passes over the data were begun."""
        return max((line["epoch"] for line in self.steps), default=0)

    @property
    def status(self) -> str:
        """In words, whether it has ended, and why."""
        return ENDINGS[self.end["reason"]] if self.end else "going on, or killed: so far"

    @property
    def best(self) -> Line | None:
        """The validation of the weights that are kept."""
        kept = [line for line in (*self.validations, *self.averages) if line.get("best") or line.get("kept")]
        return kept[-1] if kept else None

    @property
    def metric(self) -> str:
        """The name of the metric; "" if there is none."""
        return next((line["metric"][0] for line in self.validations if line["metric"]), "")

    def loss(self) -> Series:
        """Return the training loss, smoothed."""
        steps, values = self.series("loss")
        reach = max(int(SMOOTHED * len(values) / 2), 2) if len(values) >= ENOUGH else 0
        windows = (values[max(place - reach, 0) : place + reach + 1] for place in range(len(values)))
        return steps, [sum(window) / len(window) for window in windows]

    def series(self, name: str) -> Series:
        """Return a value of the updates; where a line does not have it, there is no point."""
        return _series(self.steps, lambda line: line.get(name))

    def waited(self) -> Series:
        """Return the share of time, in %, that updates spent on waiting for their batches."""
        return _series(self.steps, _waited)

    def padding(self) -> Series:
        """Return the share of padding in the batches, in %."""
        return _series(self.steps, lambda line: None if line.get("padding") is None else 100 * line["padding"])

    def validation_loss(self) -> Series:
        """Return the loss of the validation set."""
        return _series(self.validations, lambda line: line["loss"])

    def validation_metric(self) -> Series:
        """Return the metric of the validation set."""
        return _series(self.validations, lambda line: line["metric"] and line["metric"][1])

    @property
    def _ends(self) -> tuple[Line, ...]:
        return (self.end,) if self.end else ()


def _series(lines: Sequence[Line], value: Callable[[Line], float | None]) -> Series:
    found = [(float(line["step"]), float(y)) for line in lines if (y := value(line)) is not None]
    return [x for x, _ in found], [y for _, y in found]


def _waited(line: Line) -> float | None:
    if line.get("waited") is None or not line["target_tokens"]:
        return None
    return float(100 * line["waited"] * line["tokens_per_second"] / line["target_tokens"])
