"""The checks of types and shapes in tests: jaxtyping and beartype check the first calls of a function in each test.

`--jaxtyping-packages=glassformer,typechecker.checked` decorates each function of the package. A checked call takes many
times as long as the call itself, and a wrong annotation shows in the first calls.
"""

from collections import Counter
from collections.abc import Callable
from functools import cache, partial, wraps
from inspect import isclass
from types import CodeType
from typing import Any

import jaxtyping

__all__ = ["CALLS", "calls", "checked", "first_calls", "install"]

CALLS = 10
"""The calls of a function that are checked in a test."""
calls: Counter[CodeType] = Counter()
"""The calls of each function since the test began."""
every_call = jaxtyping.jaxtyped


@cache
def _beartype() -> Callable[[Any], Any]:
    from beartype import BeartypeConf, FrozenDict, beartype
    from pydantic import ValidationInfo

    # Like PEP 484 and mypy, accept an int where a float is expected. No object can be checked against ValidationInfo,
    # which is a protocol without `runtime_checkable`.
    return beartype(conf=BeartypeConf(is_pep484_tower=True, hint_overrides=FrozenDict({ValidationInfo: object})))


def checked(made: Any) -> Any:
    """Return a function that checks the types of its arguments and of its result."""
    return _beartype()(made)


def first_calls(made: Any, *, typechecker: Any) -> Any:
    """Return a function whose first calls in each test are checked, or a dataclass that checks its fields."""
    if isclass(made):
        return every_call(made, typechecker=typechecker)
    strict = cache(partial(every_call, made, typechecker=typechecker))  # made for the first call
    code = made.__code__  # that of all functions that a line defines

    @wraps(made)
    def either(*arguments: Any, **named: Any) -> Any:
        calls[code] += 1
        return (strict() if calls[code] <= CALLS else made)(*arguments, **named)

    return either


def install() -> None:
    """Let the decorator that `--jaxtyping-packages` inserts be `first_calls`; before anything imports the package."""
    jaxtyping.jaxtyped = lambda typechecker: partial(first_calls, typechecker=typechecker)
