"""Glossaries: source terms and how they must be translated.

A file has a term per line: the source term, a tab, and the target term; "a|b" lists forms of a target term, one of
which suffices. A target term that equals its source term means that the term is not translated.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from glassformer.errors import DataError, quoted
from glassformer.text.links import Span
from glassformer.text.normalisation import normalise
from glassformer.text.word_edges import is_apart

__all__ = ["Glossary", "GlossaryEntry", "Term"]

_UNIT = re.compile(r"\w+|[^\w\s]")
FORMS = "|"
"""What separates the forms of a target term."""


class Term(NamedTuple):
    """A part of a source that its translation must contain in one of several forms."""

    begin: int
    end: int
    """The characters of the source, [begin, end)."""
    forms: tuple[str, ...]
    """The forms, of which the first is used where there is a choice."""
    kind: Literal["span", "untranslated", "translated"]
    """A protected span, which the translation must contain as often as the source and not more often; or a term of a
    glossary, which stays as it is in the source or is translated."""
    is_ordered: bool = False
    """Whether the translation must contain the spans that are so in the order of the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlossaryEntry:
    """A source term and its translation."""

    source: str
    forms: tuple[str, ...]
    """The forms of the target term, of which one suffices."""

    @property
    def has_case(self) -> bool:
        """Whether the source term is found only in its own case: if a letter after the first is a capital."""
        return any(letter.isupper() for letter in self.source[1:])

    @property
    def is_untranslated(self) -> bool:
        """Whether the term stays as it is in the text."""
        return self.forms == (self.source,)


@dataclass(frozen=True, slots=True)
class Glossary:
    """The entries of a glossary.

    Raises:
        DataError: a term is blank, or a source term has two translations.
    """

    entries: tuple[GlossaryEntry, ...]
    _by_unit: dict[str, dict[int, dict[str, list[GlossaryEntry]]]] = field(init=False, repr=False, compare=False)
    """The entries by the beginning of their source terms, by their length, the longest first, and by the whole terms,
    in lower case; one with a case comes before an equal one without. A text is looked up in time that does not grow
    with the number of entries."""

    def __post_init__(self) -> None:
        by_unit: dict[str, dict[int, dict[str, list[GlossaryEntry]]]] = {}
        for entry in sorted(self.entries, key=lambda entry: (len(entry.source), entry.has_case), reverse=True):
            by_length = by_unit.setdefault(_first_unit(entry.source), {})
            by_length.setdefault(len(entry.source), {}).setdefault(entry.source.lower(), []).append(entry)
        object.__setattr__(self, "_by_unit", by_unit)

    @classmethod
    def load(cls, path: str | Path) -> "Glossary":
        """Return the glossary in a TSV file; blank lines are skipped.

        Raises:
            DataError: the file cannot be read, or a line is not a source term, a tab and a target term.
        """
        try:
            lines = Path(path).read_bytes().decode("utf-8-sig").split("\n")
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}; correct the name of the glossary") from error
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: expected UTF-8, got another byte at {error.start}; convert the file") from error
        pairs = list[tuple[str, str, str]]()
        for number, line in enumerate(lines, start=1):
            cells = line.split("\t")
            if line.strip() and len(cells) != 2:
                raise DataError(
                    f"{path}, line {number}: expected a source term, a tab and a target term, got {len(cells)} "
                    "columns; correct the line"
                )
            if line.strip():
                pairs.append((f"{path}, line {number}", cells[0], cells[1]))
        return cls.of_pairs(pairs)

    @classmethod
    def of(cls, terms: Mapping[str, str]) -> "Glossary":
        """Return the glossary with these target terms by source term.

        Raises:
            DataError: a term is blank, or differs from another only in case that does not count.
        """
        return cls.of_pairs(("glossary", *pair) for pair in terms.items())

    @classmethod
    def of_pairs(cls, pairs: Iterable[tuple[str, str, str]]) -> "Glossary":
        """Return the glossary of some pairs: for each, its place, for messages, the source term and the target term.

        Raises:
            DataError: a term is blank, or a source term has two translations.
        """
        entries: dict[str, tuple[GlossaryEntry, str]] = {}
        for place, source, target in pairs:
            entry = _entry(place, source, target)
            key = entry.source if entry.has_case else entry.source.lower()
            known, where = entries.setdefault(key, (entry, place))
            if known.forms != entry.forms:
                raise DataError(
                    f"{place}: expected one translation of {quoted(entry.source)}, got a "
                    f"different one than in {where}; keep one of them, or join them by {FORMS!r} if both are right"
                )
        return cls(tuple(entry for entry, _ in entries.values()))

    def terms(self, text: str, taken: Sequence[Span] = ()) -> Iterator[Term]:
        """Yield the terms that occur in a text, in order.

        At each place, the longest term counts; terms do not overlap each other or the spans that are `taken`, in order.
        """
        cursor, ends = 0, [end for _, end in taken]
        for begin, end in _units(text):
            if begin < cursor:
                continue
            for entry in self._beginning(text, begin, end):
                last = begin + len(entry.source)
                first_taken = bisect_right(ends, begin)
                is_free = first_taken == len(taken) or taken[first_taken][0] >= last
                if is_free and _stands(entry, text, begin):
                    yield _term(entry, begin, text[begin:last])
                    cursor = last
                    break

    def _beginning(self, text: str, begin: int, end: int) -> Iterator[GlossaryEntry]:
        """Yield the entries whose terms are at the beginning of a unit, apart from their case, the longest first."""
        for length, entries in self._by_unit.get(text[begin:end].lower(), {}).items():
            yield from entries.get(text[begin : begin + length].lower(), ())


def _entry(place: str, source: str, target: str) -> GlossaryEntry:
    forms = tuple(dict.fromkeys(map(normalise, target.split(FORMS)))) if source.strip() != target.strip() else None
    entry = GlossaryEntry(source=normalise(source), forms=forms or (normalise(source),))
    for name, term in (("source term", entry.source), *(("target term", form) for form in entry.forms)):
        if not any(character.isalnum() for character in term):
            raise DataError(f"{place}: expected a {name} with a letter or a digit, got {quoted(term)}; correct it")
    return entry


def _units(text: str) -> Iterator[Span]:
    """Yield where a term may begin: at each word, and at each character of scripts without spaces."""
    for found in _UNIT.finditer(text):
        begin, end = found.span()
        starts = [begin, *(place for place in range(begin + 1, end) if is_apart(text, place, place)), end]
        yield from pairwise(starts)


def _first_unit(term: str) -> str:
    begin, end = next(_units(term), (0, 0))
    return term[begin:end].lower()


def _stands(entry: GlossaryEntry, text: str, begin: int) -> bool:
    end = begin + len(entry.source)
    return (not entry.has_case or text[begin:end] == entry.source) and is_apart(text, begin, end)


def _term(entry: GlossaryEntry, begin: int, found: str) -> Term:
    """Return the term of an entry as it is in a text; the first letter of its forms may become a capital."""
    end = begin + len(found)
    if entry.is_untranslated:
        return Term(begin, end, (found,), "untranslated")
    capitals = tuple(form[:1].upper() + form[1:] for form in entry.forms)
    begins_with_capital = found[:1].isupper() and not entry.source[:1].isupper()
    ordered = (*capitals, *entry.forms) if begins_with_capital else (*entry.forms, *capitals)
    return Term(begin, end, tuple(dict.fromkeys(ordered)), "translated")
