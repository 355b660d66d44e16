"""The learning rate of each step.

Every schedule rises linearly to its peak in `warmup` steps. After the peak, the learning rate falls with 1/√step
("paper"), falls along a cosine to 0 at the end of training ("cosine"), or stays constant ("constant"). If training has
a time limit, the peak is reached after a quarter of this time at the latest. Otherwise, training on a slow machine
would end during the warm-up.
"""

import math

from glassformer.errors import ConfigError, quoted
from glassformer.recipes.configuration import Schedule

__all__ = ["learning_rate", "paper_peak"]

LONGEST_WARMUP = 0.25
"""Share of a time limit after which the warm-up has ended, even if few steps were made."""


def paper_peak(d_model: int, warmup: int) -> float:
    """Return the paper's highest learning rate, d_model^-0.5 · warmup^-0.5: 7.0e-4 for the base model.

    Paper: §5.3, equation 3 at step = warmup.
    """
    return float((d_model * warmup) ** -0.5)


def learning_rate(
    schedule: Schedule, step: int, *, peak: float, warmup: int, progress: float, time: float = 0.0
) -> float:
    """Return the learning rate of a step, counted from 1.

    `progress` is the finished share of the training, in [0, 1]; only "cosine" uses it. `time` is the share of a time
    limit that has passed, 0 without a limit; it shortens the warm-up if few steps fit into the limit. With the paper's
    peak and without a time limit, "paper" is exactly d_model^-0.5 · min(step^-0.5, step · warmup^-1.5).

    Raises:
        ConfigError: the schedule is unknown.

    Paper: §5.3, equation 3 ("paper").
    """
    rise = min(max(step / warmup, time / LONGEST_WARMUP), 1.0)
    match schedule:
        case "paper":
            return peak * min(rise, math.sqrt(warmup / step))
        case "constant":
            return peak * rise
        case "cosine":
            return peak * rise * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
    raise ConfigError(f"training.schedule: expected 'paper', 'cosine' or 'constant', got {quoted(schedule)}")
