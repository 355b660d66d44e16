"""Training has diverged when its loss has climbed back and stays there; spikes and slow progress do not count."""

import random

from hypothesis import given
from hypothesis import strategies as st

from glassformer.training.loss_watch import PATIENCE, LossWatch


def watched(losses):
    watch = LossWatch()
    for loss in losses:
        watch.see(loss)
    return watch


def noisy(level, steps, seed=1, noise=0.3):
    rng = random.Random(seed)
    return [level + rng.uniform(-noise, noise) for _ in range(steps)]


def test_a_loss_that_climbs_back_diverges_after_a_while():
    learned = [*noisy(9.0, 10), *noisy(2.0, 500)]
    soon, late = watched([*learned, *noisy(8.0, 150)]), watched([*learned, *noisy(8.0, 150 + PATIENCE)])
    assert (soon.suspicious, soon.diverged) == (True, False)
    assert late.diverged


def test_a_spike_is_not_a_divergence():
    watch = watched([*noisy(9.0, 10), *noisy(2.0, 500), *noisy(8.0, 120), *noisy(2.0, 300)])
    assert not watch.diverged
    assert not watch.suspicious


def test_a_model_that_never_learns_has_not_diverged():
    assert not watched(noisy(9.0, 2000, noise=0.5)).suspicious


@given(st.integers(0, 1000), st.floats(0.5, 12.0))
def test_a_loss_that_falls_and_stays_is_never_suspicious(seed, start):
    losses = [start / (1 + step / 50) + noise for step, noise in enumerate(noisy(0.0, 1000, seed, 0.2))]
    watch = LossWatch()
    for loss in losses:
        watch.see(loss)
        assert not watch.suspicious
