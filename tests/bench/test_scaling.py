"""Fits of losses against the sizes of models and data."""

import numpy as np
import pytest

from glassformer.bench.scaling import NOISE, ScalingFit, TrainingSize

SMALL = [
    (encoder, decoder, tokens)
    for encoder, decoder in ((100_000, 100_000), (400_000, 400_000), (400_000, 100_000), (100_000, 400_000))
    for tokens in (1e6, 4e6)
]
LARGE = TrainingSize(encoder=1_600_000, decoder=1_600_000, tokens=8e6)


def sized(numbers):
    encoder, decoder, tokens = numbers
    return TrainingSize(encoder=encoder, decoder=decoder, tokens=tokens)


def law(size, encoder=0.15, decoder=0.3, data=0.35, floor=1.2):
    """Return the loss of a size by known parameters, which are 1 nat each for a model of 300 000 and 2M tokens."""
    model = (size.encoder / 3e5) ** -encoder * (size.decoder / 3e5) ** -decoder
    return floor + model + (size.tokens / 2e6) ** -data


def noisy(sizes, seed, **parameters):
    chance = np.random.default_rng(seed)
    return [law(size, **parameters) + chance.normal(0, NOISE) for size in sizes]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("encoder", "decoder", "data", "floor"), [(0.15, 0.25, 0.4, 1.2), (0.1, 0.35, 0.3, 2.0), (0.2, 0.2, 0.6, 0.5)]
)
def test_small_runs_predict_a_larger_one(encoder, decoder, data, floor):
    known = {"encoder": encoder, "decoder": decoder, "data": data, "floor": floor}
    sizes = [sized(numbers) for numbers in SMALL]
    fitted = ScalingFit(sizes, [law(size, **known) for size in sizes])
    found = fitted.predict(LARGE)
    assert found.loss == pytest.approx(law(LARGE, **known), abs=0.05)
    assert found.low < law(LARGE, **known) < found.high
    assert fitted.residual < NOISE / 2
    assert fitted.exponents.decoder - fitted.exponents.encoder == pytest.approx(decoder - encoder, abs=0.07)


@pytest.mark.slow
def test_the_interval_holds_the_loss_as_often_as_it_says():
    """Of 10 intervals of at least 90 %, fewer than 6 hold the loss with a probability below 0.2 % (binomial)."""
    sizes = [sized(numbers) for numbers in SMALL]
    held = 0
    for seed in range(10):
        found = ScalingFit(sizes, noisy(sizes, seed)).predict(LARGE)
        held += found.low <= law(LARGE) <= found.high
    assert held >= 6


@pytest.mark.slow
def test_five_equal_runs_leave_the_exponents_to_the_priors():
    sizes = [sized((200_000, 200_000, 2e6))] * 5
    fitted = ScalingFit(sizes, [3.0] * 5)
    far, near = fitted.predict(LARGE), fitted.predict(sizes[0])
    assert near.loss == pytest.approx(3.0, abs=NOISE)
    assert far.high - far.low > 3 * (near.high - near.low)


@pytest.mark.slow
def test_the_split_with_the_lower_loss_is_the_more_confident_one():
    sizes = [sized(numbers) for numbers in SMALL]
    fitted = ScalingFit(sizes, noisy(sizes, 3))
    deep = TrainingSize(encoder=1_000_000, decoder=2_200_000, tokens=8e6)
    shallow = TrainingSize(encoder=2_200_000, decoder=1_000_000, tokens=8e6)
    assert fitted.confidence(deep, shallow) > 0.9
    assert fitted.confidence(shallow, deep) < 0.1
