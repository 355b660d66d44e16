import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.text.normalisation import SPACE_MARK, is_normal, normalise


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
def test_only_white_space_changes_and_becomes_single_spaces(text: str, expected: str) -> None:
    assert normalise(text) == expected


@given(st.text())
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    assert SPACE_MARK not in once


@given(st.text("ab \u00a0▁\t\u200b", max_size=9))
def test_a_normal_text_is_unchanged(text: str) -> None:
    assert not is_normal(text) or normalise(text) == " ".join(text.replace("▁", " ").split()) == text


@given(st.lists(st.text("ab \u00a0▁", max_size=4), max_size=5))
def test_the_parts_of_a_normal_text_are_normal(texts: list[str]) -> None:
    if is_normal(" ".join(texts)):
        assert all(map(is_normal, texts))


def test_every_white_space_except_the_plain_space_is_found() -> None:
    """If such a character were printable, `is_normal` would miss it."""
    spaces = [chr(code) for code in range(0x110000) if chr(code).isspace()]
    assert len(spaces) > 20
    assert [space for space in spaces if space.isprintable()] == [" "]
    assert not is_normal("half \ud83d pair")
