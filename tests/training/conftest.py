"""Random examples of random lengths."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from glassformer.corpus.batching import Examples


@pytest.fixture(scope="session")
def make_examples() -> Callable[..., Examples]:
    """Return a function that makes examples of these target lengths (`<eos>` included); sources are 3 longer."""

    def make(lengths: Sequence[int] = (2, 3, 3, 5, 7, 7, 7, 11, 13), *, seed: int = 1, symbols: int = 15) -> Examples:
        random = np.random.default_rng(seed)

        def sentences(extra: int) -> list[np.ndarray]:
            return [np.append(random.integers(4, 4 + symbols, length - 1 + extra), 2) for length in lengths]

        return Examples(source=sentences(3), target=sentences(0))

    return make
