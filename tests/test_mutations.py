"""All mistakes can be planted, because the code that they change still exists, and a test notices each mistake."""

import ast
import re
from functools import cache

import pytest

from mutations import (
    MISTAKES,
    ROOT,
    Mistake,
    changed_mistakes,
    file_of_tests,
    first_failure,
    hash_of,
    noticed_by,
    planted,
)

CHANGED = changed_mistakes()
MOST = 10
"""Maximum number of changed mistakes that are planted; each takes some seconds."""
REST = pytest.mark.skip(f"{len(CHANGED) - MOST} more mistakes have changed; `make test-all` plants all")
LATER = {"long", "client", "foreign", "docs"}
"""The marks of tests that `make test` does not run."""
MARK = re.compile(r"pytest\.mark\.(\w+)")
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
        assert (ROOT / file_of_tests(one)).is_file()


@pytest.mark.long
@pytest.mark.parametrize("chosen", MISTAKES, ids=lambda one: one.name)
def test_the_named_test_notices_each_mistake(chosen):
    assert first_failure([noticed_by(chosen)], chosen)


@pytest.mark.long
@pytest.mark.parametrize(
    "chosen",
    [*CHANGED[:MOST], *(pytest.param(one, marks=REST) for one in CHANGED[MOST : MOST + 1])],
    ids=lambda one: one.name,
)
def test_changed_mistakes_are_noticed(chosen):
    """`python tests/mutations.py --changed --write` plants all changed mistakes, and writes their hashes."""
    assert first_failure([noticed_by(chosen)], chosen)


def test_make_test_runs_each_test_that_notices_a_mistake():
    for one in MISTAKES:
        file, _, name = noticed_by(one).partition("::")
        assert not LATER & marks(file)[name], one.name


@cache
def marks(file: str) -> dict[str, set[str]]:
    """Return the marks of each test of a file, without the marks of single parameters."""
    body = ast.parse((ROOT / file).read_text(encoding="utf-8")).body
    assigned = [ast.unparse(node) for node in body if isinstance(node, ast.Assign)]
    of_all = {mark for one in assigned if one.startswith("pytestmark = ") for mark in MARK.findall(one)}
    tests = [node for node in body if isinstance(node, ast.FunctionDef)]
    return {
        test.name: of_all.union(*(MARK.findall(ast.unparse(one))[:1] for one in test.decorator_list)) for test in tests
    }


def test_the_hash_changes_with_the_mistake_its_file_and_its_tests(tmp_path):
    one = Mistake("a mistake", "model/masks.py", "old", "new", "tests/model/test_masks.py -k padding")
    files = [
        tmp_path / file for file in (f"src/glassformer/{one.file}", file_of_tests(one), "tests/model/test_cache.py")
    ]
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("before", encoding="utf-8")
    hashes = [hash_of(one, tmp_path), hash_of(one._replace(new="newer"), tmp_path)]
    for path in files:
        path.write_text("after", encoding="utf-8")
        hashes.append(hash_of(one, tmp_path))
    assert len({*hashes}) == 4
    assert hashes[-1] == hashes[-2]  # another test's file


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
