from unicodedata import category, is_normalized
from unicodedata import normalize as to_form

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.text.normalisation import SPACE_MARK, is_normal, normalisation_of, normalise, plain
from glassformer.text.vocabulary import SPECIALS
from glassformer.text.word_edges import UNSPACED_MARKS, is_unspaced

REMOVED = [0xAD, 0x2060, 0xFEFF, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
CHARACTERS = [chr(code) for code in (*range(0xD800), *range(0xE000, 0x10000), *range(0x2F800, 0x2FA20))]
"""The basic plane, and ideographs that the composition replaces."""
texts = st.text() | st.text(
    "ae ▁-e\u0301\u0338\u0323=\u00ad\u200b\u200b\u200d\u2011กุ\u0e48ข\u1025\u102eか\u3099\u1100\u1161\u11a8\ufa00"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" two  spaces ", "two spaces"),
        ("no-break\u00a0and\u202fnarrow", "no-break and narrow"),
        ("tab\tline\u2028separator\x85next", "tab line separator next"),
        ("▁marks▁▁are spaces", "marks are spaces"),
        ("", ""),
        (" \u00a0\t", ""),
    ],
)
def test_white_space_becomes_single_spaces(text: str, expected: str) -> None:
    assert normalise(text) == normalise(text, "plain") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Case, e\u0301 and é", "Case, é and é"),
        ("Ka\u00adter", "Kater"),
        ("fu\u00ad\u0308r", "für"),  # a soft hyphen between a letter and its mark
        ("\ufeffe\u2011mail\u2060", "e-mail"),
        ("\u202bשלום\u202c \u200fعلى\u200e", "שלום على"),
        ("a \u00ad b", "a b"),
        ("\u1112\u1161\u11ab", "한"),
        ("zero\u200bwidth", "zerowidth"),
        ("แมว\u200b\u200bนอน", "แมว\u200bนอน"),
        ("ឆ្មា\u200b\u2060គេង\u200b", "ឆ្មា\u200bគេង"),
        ("แมว\u200bcat\u200bแมว \u200bแมว", "แมวcatแมว แมว"),
        ("\u200d\u200c\ufe0f ①ﬁＡ½", "\u200d\u200c\ufe0f ①ﬁＡ½"),
    ],
)
def test_plain_composes_letters_and_removes_invisible_characters(text: str, expected: str) -> None:
    assert normalise(text, "plain") == expected
    assert normalise(text) == " ".join(text.split())


@pytest.mark.parametrize("normalisation", ["plain", "spaces"])
@given(text=texts)
def test_normalising_twice_changes_nothing_more(normalisation, text: str) -> None:
    once = normalise(text, normalisation)
    assert normalise(once, normalisation) == once
    assert SPACE_MARK not in once


@given(texts)
def test_a_plain_text_is_composed_and_has_no_removed_character(text: str) -> None:
    once = normalise(text, "plain")
    assert is_normalized("NFC", once)
    assert not {*map(ord, once)} & {*REMOVED, 0x2011}
    gaps = [once[place - 1] + once[place + 1 : place + 2] for place, one in enumerate(once) if one == "\u200b"]
    assert all(len(gap) == 2 and all(map(is_unspaced, gap)) for gap in gaps)


@given(texts.filter(lambda text: "\u200b" not in text))
def test_plain_is_the_composed_text_without_the_removed_characters(text: str) -> None:
    kept = "".join(one for one in text if ord(one) not in REMOVED).replace("\u2011", "-")
    assert plain(text) == to_form("NFC", kept)
    assert normalise(text, "plain") == normalise(to_form("NFD", text), "plain") == normalise(plain(text))


def test_only_the_listed_characters_and_compositions_change_a_single_character() -> None:
    changed = {one for one in CHARACTERS if plain(one) != to_form("NFC", one)}
    assert {*map(ord, changed)} == {*REMOVED, 0x2011, 0x200B}


def test_the_marks_of_scripts_without_spaces_are_all_known() -> None:
    """A younger Unicode than Python's may know more of them."""
    marks = [one for one in CHARACTERS if is_unspaced(one) and category(one).startswith("M")]
    unassigned = [one for one in CHARACTERS if is_unspaced(one) and category(one) == "Cn"]
    listed = {one for one in CHARACTERS if is_unspaced(one) and plain(f"ก\u200b{one}") == plain(f"ก{one}")}
    assert {*marks} <= listed <= {*marks, *unassigned}
    assert all(UNSPACED_MARKS.count(one) for one in "\u0e31\u309a")


@given(st.text("ab é\u00a0▁\t\u200b\u2011\u0301", max_size=9))
def test_a_normal_text_is_unchanged(text: str) -> None:
    assert not is_normal(text) or normalise(text) == normalise(text, "plain") == text


@given(st.lists(st.text("ab \u00a0▁é\u0301", max_size=4), max_size=5))
def test_the_parts_of_a_normal_text_are_normal(texts: list[str]) -> None:
    if is_normal(" ".join(texts)):
        assert all(map(is_normal, texts))


def test_every_white_space_except_the_plain_space_is_found() -> None:
    """If such a character were printable, `is_normal` would miss it."""
    spaces = [chr(code) for code in range(0x110000) if chr(code).isspace()]
    assert len(spaces) > 20
    assert [space for space in spaces if space.isprintable()] == [" "]
    assert not is_normal("half \ud83d pair")


def test_every_character_that_plain_changes_is_found() -> None:
    assert [one for one in CHARACTERS if is_normal(one) and plain(one) != one] == []
    assert is_normal("für")


@pytest.mark.parametrize(
    "token", ["a\u00ad", "e\u0301", "\u0301", "ก\u0e38", "\u1161", "\u212b", "x\u2011", "\u200b", "\u200f"]
)
def test_a_vocabulary_with_a_character_that_plain_changes_or_composes_was_trained_on_other_texts(token: str) -> None:
    assert normalisation_of([*SPECIALS, "▁für", "한", "猫", "e\u200d", token]) == "spaces"
    assert normalisation_of([*SPECIALS, "▁für", "한", "猫", "e\u200d"]) == "plain"
