import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.text.normalisation import SPACE_MARK, normalise


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" two  spaces ", "two spaces"),
        ("no-break\u00a0and\u202fnarrow", "no-break and narrow"),
        ("tab\tline\u2028separator\x85next", "tab line separator next"),
        ("▁marks▁▁are spaces", "marks are spaces"),
        ("", ""),
        (" \u00a0\t", ""),
        ("Case, e\u0301 and é stay", "Case, e\u0301 and é stay"),
    ],
)
def test_white_space_becomes_single_spaces_and_nothing_else_changes(text: str, expected: str) -> None:
    assert normalise(text) == expected


@given(st.text())
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    assert SPACE_MARK not in once
