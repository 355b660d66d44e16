"""Learning rates, compared with the paper's formula."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import ConfigError
from glassformer.training.schedule import learning_rate, paper_peak

STEPS = st.integers(1, 300_000)


@given(step=STEPS, d_model=st.integers(1, 4096), warmup=st.integers(1, 20_000))
def test_the_schedule_with_the_papers_peak_is_the_papers_formula(step, d_model, warmup):
    rate = learning_rate("paper", step, peak=paper_peak(d_model, warmup), warmup=warmup, progress=0.0)
    assert rate == pytest.approx(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5), rel=1e-12)


def test_the_base_model_peaks_at_step_4000():
    rates = [
        learning_rate("paper", step, peak=paper_peak(512, 4000), warmup=4000, progress=0.0) for step in range(1, 9001)
    ]
    assert rates.index(max(rates)) == 4000 - 1
    assert f"{max(rates):.1e}" == "7.0e-04"


@pytest.mark.parametrize("schedule", ["paper", "cosine", "constant"])
@given(warmup=st.integers(1, 4000), share=st.floats(0, 1))
def test_every_schedule_rises_linearly_to_its_peak(schedule, warmup, share):
    step = max(1, int(share * warmup))
    rate = learning_rate(schedule, step, peak=0.3, warmup=warmup, progress=0.0)
    assert rate == pytest.approx(0.3 * step / warmup)


@pytest.mark.parametrize("schedule", ["paper", "cosine", "constant"])
def test_a_limit_of_time_ends_the_warm_up_after_a_quarter(schedule):
    def rate(step, time):
        return learning_rate(schedule, step, peak=0.3, warmup=400, progress=0.0, time=time)

    assert rate(5, 0.125) == pytest.approx(0.15)
    assert rate(13, 0.25) == rate(51, 0.9) == pytest.approx(0.3)
    assert rate(200, 0.01) == pytest.approx(0.15), "many steps in little time: the warm-up is as long as asked for"


@given(progress=st.floats(0, 1), step=st.integers(100, 10**6))
def test_the_cosine_falls_to_zero(progress, step):
    rate = learning_rate("cosine", step, peak=0.3, warmup=100, progress=progress)
    assert rate == pytest.approx(0.3 * math.cos(progress * math.pi / 2) ** 2, abs=1e-12)


def test_the_cosine_ends_at_zero_and_stays_there():
    for progress in (1.0, 1.5):
        assert learning_rate("cosine", 1000, peak=0.3, warmup=100, progress=progress) == pytest.approx(0, abs=1e-15)


@given(step=st.integers(100, 10**6), progress=st.floats(0, 1))
def test_the_constant_schedule_stays_at_its_peak(step, progress):
    assert learning_rate("constant", step, peak=0.3, warmup=100, progress=progress) == 0.3


@pytest.mark.usefixtures("unchecked")
def test_an_unknown_schedule_is_named():
    with pytest.raises(ConfigError, match="schedule: expected 'paper', 'cosine' or 'constant', got 'linear'"):
        learning_rate("linear", 1, peak=1.0, warmup=1, progress=0.0)
