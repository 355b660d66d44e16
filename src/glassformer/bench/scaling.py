"""Fit the losses of training runs against the size of their models and their data, and predict larger runs.

L = A · (N_e / N̄_e)^-p_e · (N_d / N̄_d)^-p_d + B · (D / D̄)^-p_D + L_∞, where N_e and N_d are the parameters of encoder
and decoder without embeddings, and D is the number of target tokens trained on.

Paper: Ghorbani et al. 2021, "Scaling Laws for Neural Machine Translation", equation 1. Differs: with a term for the
data, and with priors on the exponents, because five runs do not determine six numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

__all__ = ["INTERVAL", "NOISE", "Exponents", "Prediction", "ScalingFit", "TrainingSize"]

INTERVAL = 0.9
"""Probability that an interval should hold the loss."""
NOISE = 0.02
"""Standard deviation of the validation loss between seeds that a fit assumes at least, in nats."""
REPLICATES = 200
"""Number of bootstrap samples of the runs."""

_PRIORS = ((0.15, 0.5), (0.25, 0.5), (0.4, 0.6))
"""Median of each exponent, and the standard deviation of its logarithm: encoder, decoder, data. The medians of encoder
and decoder are from Ghorbani et al."""
_GRID = np.linspace(-2, 2, 7)
"""Values of each exponent, in standard deviations from its median."""
_WIDE = 10.0
"""Standard deviation of the prior on A, B and L_∞, in nats."""
_TERMS = 3

_Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSize:
    """The size of a training run."""

    encoder: int
    """Parameters in the encoder's matrices, without embeddings."""
    decoder: int
    """Parameters in the decoder's matrices, without embeddings and output projection."""
    tokens: float
    """Target tokens trained on; a token counts each time it is seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponents:
    """The exponents of the fit: the higher, the more the loss falls with a larger size."""

    encoder: float
    decoder: float
    data: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A predicted loss, in nats per target token."""

    loss: float
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""


class ScalingFit:
    """The losses of some runs, fitted: `predict` returns the loss of a size, `exponents` what the fit has learned.

    All exponents on a grid are weighted by their posterior probability; for each, A, B and L_∞ follow by non-negative
    least squares. A prediction is the mean over the grid, so no single best fit is trusted.
    """

    def __init__(self, sizes: Sequence[TrainingSize], losses: Sequence[float], *, seed: int = 1) -> None:
        """Fit the losses, their bootstrap samples, and the losses without each run."""
        self._values = np.array(list(product(*(median * np.exp(_GRID * spread) for median, spread in _PRIORS))))
        self._prior = np.array([-0.5 * sum(at**2 for at in place) for place in product(_GRID, repeat=len(_PRIORS))])
        self._middle = np.log([_numbers(size) for size in sizes]).mean(axis=0)
        self._terms, self._losses = self._design(sizes), np.array(losses, dtype=float)
        self._random = np.random.default_rng(seed)
        count = len(sizes)
        drawn = self._random.multinomial(count, np.full(count, 1 / count), size=REPLICATES)
        without = 1 - np.eye(count)
        coefficients, misfits = self._solved(np.vstack([np.ones((1, count)), without, drawn]))
        used = max(count - _TERMS, 1)
        self._variance = NOISE**2 + float(misfits[0].min()) / used
        self._coefficients, self._weights = coefficients, self._posterior(misfits)
        self._replicates = slice(1 + count, None)

    @property
    def residual(self) -> float:
        """Root mean square of the differences between the losses and their fit, in nats."""
        fitted = np.einsum("grt,gt->gr", self._terms, self._coefficients[0])
        return float(np.sqrt(np.mean((self._weights[0] @ fitted - self._losses) ** 2)))

    @property
    def exponents(self) -> Exponents:
        """The mean of each exponent over the posterior."""
        encoder, decoder, data = (float(value) for value in self._weights[0] @ self._values)
        return Exponents(encoder=encoder, decoder=decoder, data=data)

    def predict(self, size: TrainingSize) -> Prediction:
        """Return the loss of a size with its interval.

        The interval holds the share INTERVAL of bootstrap predictions with noise, and each prediction without one run.
        """
        of_fits = self._means(size)
        drawn, without = self._drawn(size), of_fits[1 : self._replicates.start]
        low, high = np.quantile(drawn, [(1 - INTERVAL) / 2, (1 + INTERVAL) / 2])
        mean = float(of_fits[0])
        return Prediction(loss=mean, low=float(min(low, *without, mean)), high=float(max(high, *without, mean)))

    def confidence(self, better: TrainingSize, than: TrainingSize) -> float:
        """Return the share of bootstrap samples that predict a lower loss for one size than for the other."""
        return float(np.mean(self._means(better)[self._replicates] < self._means(than)[self._replicates]))

    def _means(self, size: TrainingSize) -> _Array:
        """Return the mean prediction of each fit: of all runs, without each run, of each bootstrap sample."""
        each = np.einsum("gt,fgt->fg", self._design([size])[:, 0], self._coefficients)
        means: _Array = np.einsum("fg,fg->f", self._weights, each)
        return means

    def _drawn(self, size: TrainingSize) -> _Array:
        """Return one prediction per bootstrap sample, with exponents from its posterior, and with noise."""
        each = np.einsum("gt,fgt->fg", self._design([size])[:, 0], self._coefficients[self._replicates])
        chance = np.random.default_rng(0)  # the same size always has the same interval
        cumulated = self._weights[self._replicates].cumsum(axis=1)
        places = (cumulated < chance.random((len(cumulated), 1))).sum(axis=1).clip(max=each.shape[1] - 1)
        noise: _Array = chance.normal(0, self._variance**0.5, len(places))
        found: _Array = each[np.arange(len(places)), places] + noise
        return found

    def _design(self, sizes: Sequence[TrainingSize]) -> _Array:
        """Return the factors of A, B and L_∞ for each exponent of the grid and each size: (grid, size, 3)."""
        logs = np.log([_numbers(size) for size in sizes]) - self._middle
        model = np.exp(-self._values[:, :2] @ logs[:, :2].T)
        data = np.exp(-self._values[:, 2:] @ logs[:, 2:].T)
        return np.stack([model, data, np.ones_like(data)], axis=2)

    def _solved(self, counts: _Array) -> tuple[_Array, _Array]:
        """Return the best A, B, L_∞ ≥ 0 of each fit and exponent, and their sum of squares; `counts` weighs the runs.

        With three numbers, trying each set of numbers that may differ from 0 finds the optimum.
        """
        products = np.einsum("grs,grt->grst", self._terms, self._terms)
        matrices = np.einsum("fr,grst->fgst", counts, products) + (NOISE / _WIDE) ** 2 * np.eye(_TERMS)
        sides = np.einsum("fr,grt,r->fgt", counts, self._terms, self._losses)
        best = np.zeros_like(sides)
        gain = np.zeros(sides.shape[:2])
        for size in range(1, _TERMS + 1):
            for kept in map(list, combinations(range(_TERMS), size)):
                found = np.linalg.solve(matrices[..., kept, :][..., kept], sides[..., kept, None])[..., 0]
                gained = np.einsum("fgt,fgt->fg", found, sides[..., kept])
                better = (found >= 0).all(axis=2) & (gained > gain)
                padded = np.zeros_like(best)
                padded[..., kept] = found
                best = np.where(better[..., None], padded, best)
                gain = np.where(better, gained, gain)
        return best, (counts @ self._losses**2)[:, None] - gain

    def _posterior(self, misfits: _Array) -> _Array:
        """Return the probability of each exponent of the grid, one row per fit."""
        logs = self._prior - misfits / (2 * self._variance)
        weights: _Array = np.exp(logs - logs.max(axis=1, keepdims=True))
        shares: _Array = weights / weights.sum(axis=1, keepdims=True)
        return shares


def _numbers(size: TrainingSize) -> tuple[float, float, float]:
    return float(size.encoder), float(size.decoder), size.tokens
