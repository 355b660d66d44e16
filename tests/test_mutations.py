"""All mistakes can be planted, because the code that they change still exists, and a test notices each mistake."""

import ast
import re

import pytest

from mutations import MISTAKES, ROOT, Mistake, first_failure, noticed_by, planted

SOURCE = """
def weigh(scores, length):
    shown = 2 * (scores
                 + length)  # laid out otherwise
    shown.clear()
    return shown / length
"""


def mistake(old, new):
    return Mistake("a mistake", "a.py", old, new, "")


@pytest.mark.slow
def test_every_mistake_can_be_planted():
    for one in MISTAKES:
        text = (ROOT / "src/glassformer" / one.file).read_text(encoding="utf-8")
        assert planted(one, text) != ast.unparse(ast.parse(text)), one.name
        assert (ROOT / re.split(" |::", one.tests)[0]).is_file()


@pytest.mark.long
@pytest.mark.parametrize("chosen", MISTAKES, ids=lambda one: one.name)
def test_the_named_test_notices_each_mistake(chosen):
    assert first_failure([noticed_by(chosen)], chosen)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("scores + length", "scores - length", "shown = 2 * (scores - length)"),
        ("X + length", "length + X", "shown = 2 * (length + scores)"),
        ("X / Y", "Y / X", "return length / shown"),
        ("shown.clear()\nreturn X", "return X", "shown = 2 * (scores + length)\n    return shown / length"),
        ("shown.clear()", "None", "None\n    return"),
        ("shown = X", "print(X)", "    print(2 * (scores + length))\n    shown.clear()"),
    ],
)
def test_a_mistake_is_planted_by_syntax(old, new, expected):
    assert expected in planted(mistake(old, new), SOURCE)


@pytest.mark.parametrize("old", ["scores - length", "length", "X / X"])
def test_a_line_that_does_not_occur_exactly_once_is_an_error(old):
    with pytest.raises(LookupError, match=r"'.*' is in \d places of a\.py"):
        planted(mistake(old, "None"), SOURCE)
