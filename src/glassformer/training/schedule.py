"""The learning rate of each step.

Every schedule rises linearly to its peak in `warmup` steps. Then it falls with 1/√step ("paper"), falls along a cosine
to 0 at the end of training ("cosine"), or stays ("constant").
"""

import math

from glassformer.errors import ConfigError, quoted

__all__ = ["learning_rate", "paper_peak"]


def paper_peak(d_model: int, warmup: int) -> float:
    """Return the paper's highest learning rate, d_model^-0.5 · warmup^-0.5: 7.0e-4 for the base model.

    Paper: §5.3, equation 3 at step = warmup.
    """
    return float((d_model * warmup) ** -0.5)


def learning_rate(schedule: str, step: int, *, peak: float, warmup: int, progress: float) -> float:
    """Return the learning rate of a step, counted from 1.

    `progress` is the finished share of the training, in [0, 1]; only the cosine uses it. With the paper's peak, "paper"
    is exactly d_model^-0.5 · min(step^-0.5, step · warmup^-1.5).

    Raises:
        ConfigError: the schedule is unknown.

    Paper: §5.3, equation 3 ("paper").
    """
    rise = step / warmup
    if schedule == "paper":
        return peak * min(rise, math.sqrt(warmup / step))
    if schedule == "constant":
        return peak * min(rise, 1.0)
    if schedule == "cosine":
        return peak * min(rise, 1.0) * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
    raise ConfigError(f"training.schedule: expected 'paper', 'cosine' or 'constant', got {quoted(schedule)}")
