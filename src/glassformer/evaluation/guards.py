"""The guards of a run: they decide which outputs are suspicious and why, and estimate how reliable an output is.

guards.json          the thresholds, the usual values of the run's outputs, the search settings, and the confidence
"""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from glassformer.errors import CheckpointError
from glassformer.evaluation.confidence import Calibration
from glassformer.evaluation.signals import ModelOutput, Usual, signals
from glassformer.recipes.configuration import DecodingConfig, settings_of_outputs
from glassformer.settings import with_defaults
from glassformer.system.files import read_json, write_json, write_safely

__all__ = [
    "GUARDS",
    "UNCALIBRATED",
    "Confidence",
    "Guards",
    "above",
    "common_thresholds",
    "medians_of",
    "suspicion",
]

GUARDS = "guards.json"
UNCALIBRATED: Mapping[str, float] = {"copy": math.nextafter(1.0, 0.0), "numbers": 0.0}
"""The guards that need no calibration: the output has the same words as the source, or different numbers."""
AROUND_A_SEARCH = ("retry", "protect", "protect_also", "split", "recase")
"""Settings that do not change the output of a single search. The guards are calibrated on such outputs."""


@dataclass(frozen=True, slots=True)
class Confidence:
    """How reliable an output is. A probability is None if it was not fitted; `Guards.unfitted` gives the reason."""

    exact: float | None
    """Probability, from 0 to 1, that the output is exactly the reference."""
    close: float | None
    """Probability, from 0 to 1, that the output's chrF against the reference is at least `Guards.close_chrf`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """Thresholds and confidence, calibrated on outputs of one search."""

    usual: Usual
    thresholds: Mapping[str, float]
    """For each signal, the largest value that is not suspicious."""
    medians: Mapping[str, float]
    """For each signal, its median over the outputs."""
    quantile: float
    """The quantile, from 0 to 1, that serves as the threshold; the same for all signals."""
    flagged: float
    """Share of outputs that are suspicious; each half of the outputs is judged by thresholds from the other half."""
    outputs: int
    """Number of outputs from which the thresholds were computed."""
    search: Mapping[str, Any]
    """The decoding settings with which these outputs were made."""
    exact: Calibration | None = None
    close: Calibration | None = None
    """The two parts of the confidence, `exact` and `close`; a part that could not be fitted is None."""
    unfitted: Mapping[str, str] = field(default_factory=dict)
    """For each part of the confidence that is None, the reason."""
    close_chrf: float = 0.0
    """The chrF, from 0 to 100, of an output that is close to its reference."""

    @classmethod
    def load(cls, folder: Path) -> "Guards | None":
        """Return the guards in a run's folder, or None if the folder has none.

        Raises:
            CheckpointError: the file is damaged.
        """
        if not (folder / GUARDS).exists():
            return None
        content = read_json(folder / GUARDS)
        try:
            usual = content["usual"]
            return cls(
                usual=Usual(**{**usual, "scripts": frozenset(usual["scripts"])}),
                thresholds={str(name): float(value) for name, value in content["thresholds"].items()},
                exact=_calibration(content["exact"]),
                close=_calibration(content["close"]),
                medians={str(name): float(value) for name, value in content["medians"].items()},
                search=dict(content["search"]),
                unfitted=dict(content["unfitted"]),
                **{name: content[name] for name in ("quantile", "flagged", "outputs", "close_chrf")},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            command = f"glassformer calibrate {shlex.quote(str(folder))}"
            raise CheckpointError(f"{folder / GUARDS} is damaged: {error!r}; write it again by `{command}`") from error

    def save(self, folder: Path) -> None:
        """Write the guards into a run's folder.

        Raises:
            CheckpointError: the file cannot be written.
        """
        content = asdict(self)
        content["usual"]["scripts"] = sorted(self.usual.scripts)
        write_safely(folder / GUARDS, lambda path: write_json(path, content))

    def fit(self, decoding: DecodingConfig) -> bool:
        """Return whether the guards were calibrated on outputs of this search."""
        then = with_defaults(self.search, DecodingConfig)
        now = settings_of_outputs(decoding)
        return all(then[name] == value for name, value in now.items() if name not in AROUND_A_SEARCH)

    def reasons(self, output: ModelOutput) -> tuple[str, ...]:
        """Return the names of the guards that find an output suspicious."""
        return above(signals(output, self.usual), self.thresholds)

    def suspicion(self, output: ModelOutput) -> float:
        """Return how suspicious an output is by all signals together (see the function `suspicion`)."""
        return suspicion(signals(output, self.usual), self.thresholds, self.medians)

    def confidence(self, token_log_probs: Sequence[float]) -> Confidence | None:
        """Return the confidence in an output with these log probabilities; None if no calibration was fitted."""
        if not token_log_probs or (self.exact is None and self.close is None):
            return None
        exact, close = (one.confidence(token_log_probs) if one else None for one in (self.exact, self.close))
        return Confidence(exact, close)


def common_thresholds(values: Sequence[Mapping[str, float]], share: float) -> tuple[dict[str, float], float]:
    """Return a threshold for each signal, and the quantile; each threshold is this quantile of its signal's values.

    The quantile is the lowest at which all guards together are expected to flag at most `share` of new outputs. An
    output whose value equals a threshold counts as flagged, unless other outputs have the same value. This corrects for
    new outputs: a guard that flags 2 of the 500 given outputs is expected to flag 3 of 501 new outputs, because, among
    n + 1 outputs from the same distribution, a new output is as likely as any other output to be above a threshold.
    """
    import numpy as np

    names = list(values[0])
    table = np.array([[one[name] for name in names] for one in values])
    ordered = np.sort(table, axis=0)
    low, high = 0, len(values) - 1  # ranks of the thresholds; with the highest rank, no output is flagged
    while low < high:
        middle = (low + high) // 2
        at = table == ordered[middle]
        if ((table > ordered[middle]) | (at & (at.sum(0) == 1))).any(1).mean() <= share:
            high = middle
        else:
            low = middle + 1
    return dict(zip(names, ordered[high].tolist(), strict=True)), (high + 1) / len(values)


def medians_of(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each signal over these outputs."""
    return {name: median(one[name] for one in values) for name in values[0]}


def suspicion(values: Mapping[str, float], thresholds: Mapping[str, float], medians: Mapping[str, float]) -> float:
    """Return how suspicious an output with these signals is (≥ 0), for comparing several outputs of one source.

    The result is a sum over the signals. A signal adds its distance above its median, divided by the distance between
    median and threshold: at or below the median it adds 0, and at the threshold it adds 1. If median and threshold are
    equal, the distance is divided by 1. As in STARE (arXiv 2402.13331), detectors are normalised and summed.
    """
    return math.fsum(
        max(0.0, value - middle) / ((thresholds[name] - middle) or 1.0)
        for name, value in values.items()
        if name in thresholds
        for middle in (medians.get(name, 0.0),)
    )


def above(values: Mapping[str, float], thresholds: Mapping[str, float]) -> tuple[str, ...]:
    """Return the names of the signals above their thresholds."""
    return tuple(name for name, value in values.items() if name in thresholds and value > thresholds[name])


def _calibration(content: Mapping[str, Any] | None) -> Calibration | None:
    if content is None:
        return None
    vectors = {name: tuple(map(float, content[name])) for name in ("weights", "means", "spreads")}
    return Calibration(**vectors, error=float(content["error"]))
