"""Estimates of training by several processes."""

import pytest

from glassformer.bench.estimate import estimate
from glassformer.bench.ranks import EFFICIENT, Network, estimate_ranks, ring_seconds, sum_seconds
from glassformer.bench.sample import read_sample
from glassformer.errors import ConfigError
from glassformer.recipes.toml import load

COPY = ["model.d_model=32", "model.heads=4", "model.d_ff=48", "training.batch_tokens=500", "training.steps=7"]
NETWORK = Network(bandwidth=1e9, latency=1e-5)


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """Return a sample of a small training's corpus."""
    return read_sample(load("copy", [*COPY, f"run.directory={tmp_path_factory.mktemp('ranks') / 'run'}"]))


@pytest.fixture(scope="module")
def whole(sample):
    """Return the estimate of that training by one process."""
    return estimate(sample, seconds=0.2)


def test_a_ring_sends_each_number_about_twice():
    """N ranks pass on 1/n of the numbers 2(n − 1) times."""
    assert ring_seconds(4e9, 2, NETWORK) == pytest.approx(4.0 + 2e-5)
    assert ring_seconds(4e9, 5, NETWORK) == pytest.approx(8 * (0.8 + 1e-5))
    assert ring_seconds(4e9, 1, NETWORK) == 0


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_a_sum_takes_time_only_between_processes(shared):
    assert sum_seconds(1, 1000, shared=shared) == 0
    assert sum_seconds(2, 1000, shared=shared) > 0


@pytest.mark.long
def test_the_network_counts_only_between_machines(whole, sample):
    alone = estimate_ranks(whole, sample, 1, 2, NETWORK, seconds=0.2)
    assert (alone.ranks, alone.network, alone.tokens_per_rank) == (2, None, whole.tokens_per_step / 2)
    assert 0 < alone.efficiency <= 1
    validation = whole.validation_seconds / whole.configuration.training.validate_every
    assert alone.seconds == pytest.approx(alone.steps * (alone.seconds_per_step + validation))
    slow = Network(bandwidth=1e3, latency=1.0)
    apart = estimate_ranks(whole, sample, 3, 2, slow, seconds=0.2)
    assert apart.communication_seconds > ring_seconds(4 * whole.parameters, 6, slow) > 100
    assert apart.efficiency < EFFICIENT
    assert apart.efficient_tokens > apart.tokens_per_rank
    assert apart.device_hours == pytest.approx(6 * apart.seconds / 3600)
    with pytest.raises(ConfigError, match="nodes: expected a positive integer, got 0"):
        estimate_ranks(whole, sample, 0, 2, NETWORK)
