"""Which parameters of a test `make test` takes, where several parameters repeat a fact."""

from collections.abc import Container, Iterable
from typing import Any

import pytest

__all__ = ["in_tiers"]


def in_tiers(every: Iterable[Any], tested: Container[Any]) -> list[Any]:
    """Return all parameters; `make test` takes those in `tested`, `make test-all` the others as well."""
    return [one if one in tested else pytest.param(one, marks=pytest.mark.long) for one in every]
