"""The runs from which a loss is predicted."""

import math

import pytest
from benchmarks.fit import HELD_BACK, RECIPES, SMALL, folder_of, settings

from glassformer.model.shapes import weight_shapes
from glassformer.recipes.toml import load, model_config


def matrices(corpus, shape, tmp_path):
    """Return the number of parameters in matrices, without embeddings."""
    config = model_config(load(RECIPES[corpus], settings(corpus, shape, tmp_path)), 50, 50)
    return sum(
        math.prod(size) for name, size in weight_shapes(config) if len(size) > 1 and not name.endswith("tokens.weight")
    )


@pytest.mark.parametrize("corpus", RECIPES)
def test_no_small_run_is_larger_than_a_quarter(corpus, tmp_path):
    largest = matrices(corpus, HELD_BACK[corpus], tmp_path)
    for shape in SMALL[corpus]:
        assert 4 * matrices(corpus, shape, tmp_path) <= largest
        assert shape[-1] <= HELD_BACK[corpus][-1]
    assert len({folder_of(corpus, shape, tmp_path) for shape in SMALL[corpus]}) == len(SMALL[corpus]) >= 5
