"""Thresholds from outputs, confidence, and their file."""

import json
import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import CheckpointError
from glassformer.evaluation.confidence import calibration_error, fit_calibration, too_few
from glassformer.evaluation.guards import GUARDS, Guards, above, common_thresholds
from glassformer.evaluation.signals import Usual

VALUES = st.lists(st.tuples(st.integers(0, 5), st.floats(0, 1)), min_size=4, max_size=40)


def flagged(values: list[dict[str, float]], thresholds: dict[str, float]) -> float:
    return sum(bool(above(one, thresholds)) for one in values) / len(values)


@given(pairs=VALUES, share=st.floats(0, 1))
def test_all_guards_together_flag_at_most_the_share_and_a_lower_quantile_more(
    pairs: list[tuple[int, float]], share: float
) -> None:
    values = [{"a": float(one), "b": other} for one, other in pairs]
    thresholds, quantile = common_thresholds(values, share)
    assert flagged(values, thresholds) <= share
    rank = round(quantile * len(values)) - 1
    columns = {name: sorted(one[name] for one in values) for name in ("a", "b")}
    assert thresholds == {name: column[rank] for name, column in columns.items()}
    if rank:
        lower = {name: column[rank - 1] for name, column in columns.items()}
        alone = {name for name, column in columns.items() if column.count(lower[name]) == 1}
        at = sum(bool(above(one, lower)) or any(one[name] == lower[name] for name in alone) for one in values)
        assert at / len(values) > share


def test_of_new_outputs_about_the_share_is_flagged() -> None:
    """Four signals have the same distribution. The mean of 60 calibrations is tested; each varies by about 0.6 %."""
    chance = np.random.default_rng(3)
    shares = []
    for _ in range(60):
        old, new = ([dict(zip("abcd", row, strict=True)) for row in chance.normal(size=(n, 4))] for n in (300, 1000))
        shares.append(flagged(new, common_thresholds(old, 0.03)[0]))
    assert 0.02 < float(np.mean(shares)) < 0.0325


def made(chance: random.Random, count: int) -> tuple[list[list[float]], list[bool]]:
    """Return outputs that are right with the probability of all their tokens, and whether each output is right."""
    outputs = [[-chance.expovariate(8) for _ in range(chance.randint(2, 12))] for _ in range(count)]
    return outputs, [chance.random() < math.exp(sum(one)) for one in outputs]


def test_the_confidence_is_the_share_of_right_outputs() -> None:
    chance = random.Random(5)
    fitted = fit_calibration(*made(chance, 2000))
    others, right = made(chance, 4000)
    told = [fitted.confidence(one) for one in others]
    truth = [math.exp(sum(one)) for one in others]
    assert fitted.error < 0.05
    assert calibration_error(told, right) < 0.04  # by chance alone, a bin of 400 outputs is off by 0.02 on average
    assert np.abs(np.array(told) - truth).mean() < 0.04


def test_the_calibration_error_of_a_constant_is_its_distance_from_the_share() -> None:
    assert calibration_error([0.9] * 100, [True] * 100) == pytest.approx(0.1)
    assert calibration_error([1.0, 0.0] * 50, [True, False] * 50) == 0


def test_outputs_that_are_all_right_have_a_finite_confidence() -> None:
    outputs, _ = made(random.Random(1), 600)
    fitted = fit_calibration(outputs, [True] * 600)
    assert all(map(math.isfinite, fitted.weights))
    assert min(fitted.confidence(one) for one in outputs) > 0.9


@pytest.mark.parametrize(
    ("right", "wrong", "why"),
    [
        (990, 10, "of 1,000 outputs, 10 are not perfect, and 20 are needed"),
        (19, 481, "of 500 outputs, 19 are perfect, and 20 are needed"),
        (20, 480, ""),
        (250, 249, "expected at least 500 outputs with references, got 499"),
    ],
)
def test_no_percentage_is_fitted_where_nearly_all_outputs_are_right_or_wrong(right: int, wrong: int, why: str) -> None:
    assert too_few([True] * right + [False] * wrong, "perfect") == why


@pytest.mark.parametrize(("missing", "told"), [("exact", (False, True)), ("close", (True, False))])
def test_a_part_of_the_confidence_may_be_missing(missing: str, told: tuple[bool, bool]) -> None:
    found = replace(guards(), **{missing: None}).confidence((-0.1, -0.2))
    assert found is not None
    assert (found.exact is not None, found.close is not None) == told
    assert replace(guards(), exact=None, close=None).confidence((-0.1,)) is None


def guards() -> Guards:
    calibration = fit_calibration(*made(random.Random(2), 500))
    return Guards(
        usual=Usual(intercept=0.1, slope=0.9, spread=0.2, scripts=frozenset({"LATIN", "GREEK"})),
        thresholds={"loop": 1.0, "copy": 0.5},
        medians={"loop": 0.0, "copy": 0.25},
        quantile=0.99,
        flagged=0.01,
        outputs=500,
        search={"beam_size": 4},
        exact=calibration,
        close=calibration,
        unfitted={"close": "a reason"},
        close_chrf=60.0,
    )


def test_guards_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert Guards.load(tmp_path) is None
    guards().save(tmp_path)
    assert Guards.load(tmp_path) == guards()


@pytest.mark.parametrize("name", ["usual", "thresholds", "exact", "search"])
def test_a_damaged_file_is_refused_with_a_remedy(tmp_path: Path, name: str) -> None:
    guards().save(tmp_path)
    content = json.loads((tmp_path / GUARDS).read_text())
    content[name] = [7]
    (tmp_path / GUARDS).write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match=r"guards\.json is damaged.*glassformer calibrate"):
        Guards.load(tmp_path)
