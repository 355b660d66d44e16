"""The learning rate of each step.

Every schedule rises linearly to its peak in `warmup` steps. Then it falls with 1/√step ("paper"), falls along a cosine
to 0 at the end of training ("cosine"), or stays ("constant"). A training with a limit of time reaches its peak after a
quarter of this time at the latest: on a slow machine, it would otherwise end while it still warms up.
"""

import math

from glassformer.errors import ConfigError, quoted

__all__ = ["learning_rate", "paper_peak"]

LONGEST_WARMUP = 0.25
"""Share of a limit of time after which the warm-up has ended, however few the steps."""


def paper_peak(d_model: int, warmup: int) -> float:
    """Return the paper's highest learning rate, d_model^-0.5 · warmup^-0.5: 7.0e-4 for the base model.

    Paper: §5.3, equation 3 at step = warmup.
    """
    return float((d_model * warmup) ** -0.5)


def learning_rate(schedule: str, step: int, *, peak: float, warmup: int, progress: float, time: float = 0.0) -> float:
    """Return the learning rate of a step, counted from 1.

    `progress` is the finished share of the training, in [0, 1]; only the cosine uses it. `time` is the spent share of
    a limit of time, and shortens the warm-up where few steps fit. With the paper's peak and without such a limit,
    "paper" is exactly d_model^-0.5 · min(step^-0.5, step · warmup^-1.5).

    Raises:
        ConfigError: the schedule is unknown.

    Paper: §5.3, equation 3 ("paper").
    """
    rise = min(max(step / warmup, time / LONGEST_WARMUP), 1.0)
    if schedule == "paper":
        return peak * min(rise, math.sqrt(warmup / step))
    if schedule == "constant":
        return peak * rise
    if schedule == "cosine":
        return peak * rise * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
    raise ConfigError(f"training.schedule: expected 'paper', 'cosine' or 'constant', got {quoted(schedule)}")
