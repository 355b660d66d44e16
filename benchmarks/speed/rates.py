"""Results that measurements of training and measurements of translation have in common."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.speed.profiling import Work

__all__ = ["Speed", "Trial", "advice_of_trials"]

GAIN = 1.1
"""Minimum measured speed-up for which a change is advised; a smaller speed-up may be chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The measured effect of a changed setting."""

    change: str
    """The changed setting, as in a configuration: 'training.precision = "bf16"'."""
    per_second: float
    """Number of target tokens (training) or sentences (translation) per second with the change."""
    gain: float
    """Speed-up over the unchanged settings, as a factor."""
    remark: str = ""
    """Further effects of the change, in words."""

    @classmethod
    def over(cls, before: float, change: str, per_second: float, remark: str = "") -> "Trial":
        """Return the trial of a change that raised or lowered the speed from `before` to `per_second`."""
        return cls(change=change, per_second=per_second, gain=per_second / before, remark=remark)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """The speed of training or of translation on this machine."""

    origin: str
    """A description of where the texts come from."""
    threads: int
    """Number of threads per process."""
    flops_per_second: float
    """Floating-point operations per second of the model's matrix products, without padding."""
    matrix_flops_per_second: float
    """Speed of one large matrix product in the same precision, with the same number of threads."""
    matrix_share: float
    """`flops_per_second` as a share of `matrix_flops_per_second`."""
    work: tuple[Work, ...]
    """Time per update or per sentence, by kind of work, largest share first; the shares add up to 1."""
    trials: tuple[Trial, ...]
    advice: tuple[str, ...]
    """Advice on settings to change, with the measured reason, one sentence each."""


def advice_of_trials(trials: Sequence[Trial]) -> Iterator[str]:
    """Yield advice for the changes that were faster by at least `GAIN`, fastest first."""
    for trial in sorted(trials, key=lambda one: -one.gain):
        if trial.gain >= GAIN:
            also = f"; {trial.remark}" if trial.remark else ""
            yield f"{trial.change}: {trial.gain:.2f} times as fast, measured here{also}"
