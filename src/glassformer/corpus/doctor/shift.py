"""Detect shifts: from some line on, line n of the source belongs to line n + k of the target.

Long sentences have long translations, and numbers stay numbers. The fit of source line n and target line n + k is the
sum of two log-likelihood ratios. The first ratio is for the lengths: a bivariate normal distribution of their
logarithms with the correlation ρ of the corpus, against a distribution without correlation. The second ratio is for the
digits, if at least one of the two lines has digits: the probability of equal digits in lines that belong together,
against their probability in other lines. If another k fits better than the present k for long enough (a CUSUM test),
the sides have shifted. The shift begins at the first line of the better fit.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Shift", "ShiftDetector"]

REACH = 5
"""The largest shift to look for, in lines."""

SEGMENT = 16_384
"""Number of lines that are judged together, with a common estimate of the correlation."""

_WINDOW = 512
"""Number of lines in a window; the best shift may differ between windows."""

_THRESHOLD = 40.0
"""Minimum gain in log-likelihood for a change to another shift. Real corpora without shifts reached at most 30."""

_LEAST_FIT = -0.25
"""Minimum mean fit per line for a change to another shift. If no line has its translation within reach, all shifts fit
badly, and no shift is reported."""

_LARGEST_SCORE = 3.0
_OUTLIERS = 0.4
"""Assumed share of pairs with arbitrary lengths, so that no single pair decides about a shift."""

_SHIFTS = np.arange(-REACH, REACH + 1)


@dataclass(frozen=True, slots=True)
class Shift:
    """A range of source lines whose translations are in target lines with different numbers."""

    start: int
    """Number (from 0) of the first pair that does not fit."""
    by: int
    """Line n of the source belongs to line n + `by` of the target."""
    end: int | None = None
    """Number (from 0) of the first pair after the shift; None = the shift lasts to the end."""


class ShiftDetector:
    """A detector of shifts in a stream of pairs, from the numbers of characters and the digits of both sides."""

    def __init__(self) -> None:
        self._waiting: list[NDArray[np.float64]] = []
        self._count = 0
        self._judged = 0
        self._by = 0
        self._changes: list[tuple[int, int]] = []
        self._gains = np.zeros(len(_SHIFTS))
        self._begins = np.zeros(len(_SHIFTS), np.int64)

    def add(
        self,
        lengths: "tuple[NDArray[np.int64], NDArray[np.int64]]",
        digits: "tuple[NDArray[np.float64], NDArray[np.float64]]",
    ) -> None:
        """Add the next pairs: for each side, the numbers of characters, and numbers for the digits (0 = no digits)."""
        self._waiting.append(np.stack([*np.log(np.stack(lengths) + 3.0), *digits]))
        self._count += len(lengths[0])
        if self._count >= SEGMENT + 4 * REACH:
            self._judge(last=False)

    def finish(self) -> list[Shift]:
        """Return the shifts in all pairs that were added."""
        self._judge(last=True)
        ends = [*(start for start, _ in self._changes[1:]), None]
        shifts = [Shift(start, by, end) for (start, by), end in zip(self._changes, ends, strict=False)]
        return [shift for shift in shifts if shift.by]

    def _judge(self, last: bool) -> None:
        """Judge the waiting lines, except the last few lines, which are judged together with the lines that follow."""
        if self._count <= 4 * REACH:
            return
        waiting = np.concatenate(self._waiting, axis=1)
        before = REACH if self._judged else 0
        stop = waiting.shape[1] - (0 if last else REACH)
        scores = _scores(waiting)[:, before:stop]
        position = 0
        while position < scores.shape[1]:
            position = self._follow(scores, position)
        self._judged += scores.shape[1]
        self._waiting = [waiting[:, stop - REACH :]]
        self._count = self._waiting[0].shape[1]

    def _follow(self, scores: "NDArray[np.float64]", position: int) -> int:
        """Look for the next change of the shift from `position` on; return the position after the change or the end."""
        rest = scores[:, position:]
        steps = rest - rest[self._by + REACH]
        sums = np.cumsum(steps, axis=1) + self._gains[:, None]
        lowest = np.minimum(np.minimum.accumulate(sums, axis=1), 0.0)
        gains = sums - lowest
        crossed = np.flatnonzero((gains > _THRESHOLD).any(axis=0))
        last = int(crossed[0]) if len(crossed) else rest.shape[1] - 1
        self._remember(gains[:, : last + 1], position)
        if len(crossed):
            self._change(int(gains[:, last].argmax()), rest[:, : last + 1], position)
        return position + last + 1

    def _remember(self, gains: "NDArray[np.float64]", position: int) -> None:
        """Store how much better each shift fits than the present shift, and the line where this better fit began."""
        self._begins[self._gains == 0.0] = self._judged + position
        count = gains.shape[1]
        nothing = gains <= 0.0
        for row in range(len(_SHIFTS)):
            if nothing[row].any():
                self._begins[row] = self._judged + position + count - int(nothing[row, ::-1].argmax())
        self._gains = gains[:, -1].copy()

    def _change(self, row: int, scores: "NDArray[np.float64]", position: int) -> None:
        """Record a change to another shift, unless the new shift fits badly too, as for lines without translations."""
        begin = int(self._begins[row])
        if scores[row, max(begin - self._judged - position, 0) :].mean() > _LEAST_FIT:
            self._by = int(_SHIFTS[row])
            self._changes.append((begin, self._by))
        self._gains[:] = 0.0


def _scores(waiting: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Return the log-likelihood ratio of each source line with each target line within reach: (shifts, lines)."""
    scores = _length_scores(*waiting[:2])
    if waiting[2:].any():
        scores += _digit_scores(*waiting[2:])
    # Some pairs are unlike all others, so the score of a single pair is limited.
    robust: NDArray[np.float64] = np.log(_OUTLIERS + (1.0 - _OUTLIERS) * np.exp(np.minimum(scores, _LARGEST_SCORE)))
    return robust


def _within_reach(target: "NDArray[np.float64]") -> "list[NDArray[np.float64]]":
    """Return one array per shift: the target's values moved by this shift, with 0 beyond the ends."""
    around = np.pad(target, REACH)
    return [around[REACH + by : REACH + by + len(target)] for by in _SHIFTS]


def _length_scores(source: "NDArray[np.float64]", target: "NDArray[np.float64]") -> "NDArray[np.float64]":
    source, target = _standardised(source), _standardised(target)
    products = np.stack([source * other for other in _within_reach(target)])
    correlation = _correlation(products, source, target)
    square = correlation**2 / (2.0 * (1.0 - correlation**2))
    constant = -0.5 * np.log(1.0 - correlation**2)
    scores: NDArray[np.float64] = constant + products * correlation / (1.0 - correlation**2)
    for row, other in zip(scores, _within_reach(target * target), strict=True):
        row -= square * (source * source + other)
    return scores


def _digit_scores(source: "NDArray[np.float64]", target: "NDArray[np.float64]") -> "NDArray[np.float64]":
    others = np.stack(_within_reach(target))
    some = (source != 0.0) | (others != 0.0)
    same = some & (source == others)
    starts = _window_starts(len(source))
    same_in, some_in = (np.add.reduceat(which, starts, axis=1, dtype=np.int64) for which in (same, some))
    best = same_in.argmax(axis=0)[None]
    right, pairs = (np.take_along_axis(counts, best, 0).sum() for counts in (same_in, some_in))
    chance = (same_in.sum() - right + 1.0) / (some_in.sum() - pairs + 2.0)
    share = (right + 1.0) / (pairs + 2.0)
    scores: NDArray[np.float64] = np.where(same, np.log(share / chance), np.log((1.0 - share) / (1.0 - chance)))
    return np.where(some, scores, 0.0)


def _window_starts(count: int) -> "NDArray[np.int64]":
    """Return the start index of each window; the last window may be up to 1.5 times as long as the other windows."""
    return np.arange(0, max(count - _WINDOW // 2, 1), _WINDOW)


def _standardised(values: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Return values of mean 0 and deviation 1, clipped at three deviations."""
    for _ in range(2):
        values = np.clip((values - values.mean()) / max(float(values.std()), 1e-3), -3.0, 3.0)
    return values


def _correlation(
    products: "NDArray[np.float64]", source: "NDArray[np.float64]", target: "NDArray[np.float64]"
) -> float:
    """Return the correlation of source and target lengths: the median over all windows, each with its best shift."""
    starts = _window_starts(len(source))
    size = np.sqrt(np.add.reduceat(source**2, starts) * np.add.reduceat(target**2, starts))
    best = np.add.reduceat(products, starts, axis=1).max(axis=0) / np.maximum(size, 1e-9)
    return float(np.clip(np.median(best), 0.0, 0.95))
