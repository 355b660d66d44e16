"""Confidence: the probability that an output is right, given its log probabilities; fitted on a run's own outputs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

__all__ = ["FEWEST_OF_EACH", "FEWEST_OUTPUTS", "Calibration", "calibration_error", "fit_calibration", "too_few"]

FEWEST_OUTPUTS = 500
"""Minimum number of outputs with references for fitting a confidence. With fewer outputs, a tenth of the outputs (a bin
of the calibration error) is too small."""
FEWEST_OF_EACH = 20
"""Minimum number of right outputs, and of wrong outputs: five for each feature of the regression. With fewer, the
weights would be unreliable (Vittinghoff & McCulloch 2007)."""

_RIDGE = 1e-2
"""Strength of the ridge penalty on the weights, so that they stay finite even if all outputs are right."""
_SMALL = 1e-4
"""Number added to a negative log probability before its logarithm is taken."""
_LARGEST = 500.0
"""Magnitude at which the argument of the logistic function is clipped, so that the exponential does not overflow."""
_ROUNDS = 50
"""Maximum number of Newton steps; a fit needs about ten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A logistic regression from the log probabilities of an output to the probability that it is right."""

    weights: tuple[float, ...]
    """The constant, and one weight for each feature."""
    means: tuple[float, ...]
    spreads: tuple[float, ...]
    """Mean and standard deviation of each feature, used to scale the feature."""
    error: float
    """Expected calibration error with 10 bins of equal count; each half of the outputs is judged by a fit on the other
    half."""

    def confidence(self, token_log_probs: Sequence[float]) -> float:
        """Return the probability, from 0 to 1, that an output with these log probabilities is right."""
        constant, *weights = self.weights
        columns = zip(weights, _features(token_log_probs), self.means, self.spreads, strict=True)
        total = constant + math.fsum(weight * (value - mean) / spread for weight, value, mean, spread in columns)
        return 1 / (1 + math.exp(-max(total, -_LARGEST)))


def fit_calibration(outputs: Sequence[Sequence[float]], right: Sequence[bool]) -> Calibration:
    """Return a calibration fitted on the token log probabilities of `outputs`; `right` says which outputs are right."""
    import numpy as np

    features, labels = np.array([_features(one) for one in outputs]), np.array(right, np.float64)
    means, spreads = features.mean(0), features.std(0) + 1e-9
    scaled = (features - means) / spreads
    halves = np.arange(len(labels)) % 2
    crossed = np.empty(len(labels))
    for half in (0, 1):
        weights = _fit(scaled[halves != half], labels[halves != half])
        crossed[halves == half] = _sigmoid(weights[0] + scaled[halves == half] @ weights[1:])
    return Calibration(
        weights=tuple(_fit(scaled, labels).tolist()),
        means=tuple(means.tolist()),
        spreads=tuple(spreads.tolist()),
        error=calibration_error(crossed.tolist(), right),
    )


def too_few(right: Sequence[bool], what: str) -> str:
    """Return the reason why a calibration cannot be fitted on these outputs, or "" if a calibration is possible.

    `right` says which outputs are right; `what` describes a right output, such as "exactly right". If nearly all
    outputs are right, or nearly none, a regression would give every output about the same probability, whatever the log
    probabilities of the output are.
    """
    if len(right) < FEWEST_OUTPUTS:
        return f"expected at least {FEWEST_OUTPUTS} outputs with references, got {len(right):,}"
    for number, which in ((sum(right), "are"), (len(right) - sum(right), "are not")):
        if number < FEWEST_OF_EACH:
            return f"of {len(right):,} outputs, {number} {which} {what}, and {FEWEST_OF_EACH} are needed"
    return ""


def calibration_error(confidences: Sequence[float], right: Sequence[bool], bins: int = 10) -> float:
    """Return the expected calibration error: the mean, over bins of equal count, of |mean confidence − share right|."""
    import numpy as np

    order = np.argsort(confidences, kind="stable")
    told, true = np.array(confidences)[order], np.array(right, np.float64)[order]
    parts = [part for part in np.array_split(np.arange(len(order)), bins) if len(part)]
    return float(sum(abs(told[part].sum() - true[part].sum()) for part in parts) / len(order))


def _features(token_log_probs: Sequence[float]) -> tuple[float, ...]:
    """Return the features: sum, mean and maximum of the tokens' negative log probabilities, and the output's length."""
    total, count = -math.fsum(token_log_probs), len(token_log_probs)
    lowest = -min(token_log_probs)
    return (math.exp(-total), math.log(total / count + _SMALL), math.log(lowest + _SMALL), math.log(count))


def _fit(features: "Vector", labels: "Vector") -> "Vector":
    """Return the weights of the logistic regression, the constant term first, found by Newton's method."""
    import numpy as np

    inputs = np.column_stack([np.ones(len(labels)), features])
    weights = np.zeros(inputs.shape[1])
    for _ in range(_ROUNDS):
        told = _sigmoid(inputs @ weights)
        gradient = inputs.T @ (told - labels) + _RIDGE * weights
        curvature = (inputs * (told * (1 - told))[:, None]).T @ inputs + _RIDGE * np.eye(len(weights))
        step = np.linalg.solve(curvature, gradient)
        weights -= step
        if np.abs(step).max() < 1e-9:
            break
    return weights


def _sigmoid(values: "Vector") -> "Vector":
    import numpy as np

    return np.asarray(1 / (1 + np.exp(-np.clip(values, -_LARGEST, _LARGEST))))
