"""Variants of a test set: the sources as other people write them, with references that still hold."""

import unicodedata

import pytest

from glassformer.evaluation.items import Items
from glassformer.evaluation.variants import VARIANTS, variants_of

PAIRS = [
    ("Der schöne Hund schläft.", "The dog sleeps."),
    ("Die Donaudampfschiffe fahren.", "The ships sail."),
    ("Ein E-Mail-Programm startet.", "A program starts."),
] * 6


def variant(name, pairs=PAIRS, *, group=False):
    return {one.name: one for one in variants_of(Items.of(pairs, group=group))}.get(name)


@pytest.mark.parametrize(
    ("name", "source", "reference"),
    [
        ("capitals", "DER SCHÖNE HUND SCHLÄFT.", "The dog sleeps."),
        ("lower case", "der schöne hund schläft.", "The dog sleeps."),
        ("title case", "Der Schöne Hund Schläft.", "The dog sleeps."),
        ("accents as signs of their own", unicodedata.normalize("NFD", "Der schöne Hund schläft."), "The dog sleeps."),
        ("soft hyphens", "Der sch\u00adöne Hund sch\u00adläft.", "The dog sleeps."),
        ("non-breaking hyphens", "Ein E\u2011Mail\u2011Programm startet.", "A program starts."),
        ("two in a line", f"{PAIRS[0][0]} {PAIRS[1][0]}", "The dog sleeps. The ships sail."),
        ("dash before", "- Der schöne Hund schläft.", "- The dog sleeps."),
        ("in quotation marks", '"Der schöne Hund schläft."', '"The dog sleeps."'),
        ("emoji behind", "Der schöne Hund schläft. 🙂", "The dog sleeps. 🙂"),
    ],
)
def test_a_variant_changes_sources_and_keeps_what_they_mean(name, source, reference):
    found = variant(name)
    assert (found.items.sources[0], found.items.references[0]) == (source, (reference,))
    assert len(found.ordinary) == VARIANTS[name].joined * len(found.items.sources)
    if VARIANTS[name].joined == 1:
        assert all(found.items.sources[at] != PAIRS[place][0] for at, place in enumerate(found.ordinary))


def test_a_variant_that_changes_few_sources_is_left_out():
    english = [("the cat", "le chat")] * 20
    assert variant("accents as signs of their own", english) is None
    assert variant("non-breaking hyphens", PAIRS[:12]) is None
    assert variant("lower case", english) is None
    assert variant("capitals", english)


def test_a_joined_line_has_the_first_references_of_its_sources():
    pairs = [(f"word {number}", f"one {number}", f"two {number}") for number in range(12)]
    found = variant("two in a line", pairs)
    assert found.items.references[0] == ("one 0 one 1",)
    assert variant("capitals", pairs).items.references[1] == ("one 1", "two 1")
