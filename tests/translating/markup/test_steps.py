"""The number of steps grows linearly with the size of hostile texts."""

import sys
from functools import partial
from pathlib import Path

import pytest
from benchmarks.hostile import ALGORITHMS, TEXTS

import glassformer

PACKAGE = str(Path(glassformer.__file__).parent)
HOSTILE = ("<b>a</b>", "<a href=x>a</a>", "<title>a</title >", "<sup> 90 times, notes", "<img alt='a'>", "%s", "aB")


def steps(function, text) -> int:
    """Return the number of lines of the package that a function executes."""
    count = 0

    def line(_, event, __):
        nonlocal count
        count += event == "line"
        return line

    def call(frame, *_):
        return line if frame.f_code.co_filename.startswith(PACKAGE) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        function(text)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("kind", HOSTILE)
def test_twice_the_text_takes_at_most_twice_the_steps(name, kind):
    function, size = partial(steps, ALGORITHMS[name]), 2_000 if "90 times" in kind else 1_000
    some, twice = function(TEXTS[kind](size)), function(TEXTS[kind](2 * size))
    assert twice <= 2.2 * some + 1_000
