"""Glossaries: source terms and how they must be translated.

Each line of a glossary file has a source term, a tab, and a target term. "a|b" lists alternative forms of a target
term; a translation needs one of them. If the target term equals the source term, the term is not translated.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from glassformer.errors import DataError, counted, quoted, remedy
from glassformer.system.files import check_width
from glassformer.text.casing import CASINGS, LowerCase, capitalised, casing_of, folded, lower_case
from glassformer.text.links import Span
from glassformer.text.normalisation import normalise, plain
from glassformer.text.word_edges import is_apart

__all__ = ["Glossary", "GlossaryEntry", "Term"]

_UNIT = re.compile(r"\w+|[^\w\s]")
FORMS = "|"
"""The separator of a target term's forms."""


class Term(NamedTuple):
    """A part of a source text that the translation must contain, in one of its forms."""

    begin: int
    end: int
    """The term is the characters [begin, end) of the source."""
    forms: tuple[str, ...]
    """The forms of the term in the translation; the first one is written if the term must be put in."""
    kind: Literal["span", "untranslated", "translated"]
    """"span": a protected span, which the translation must contain exactly as often as the source. "untranslated" and
    "translated": a term of a glossary."""
    is_ordered: bool = False
    """Whether the term is a span that must keep its order among such spans, because programs fill it by its order."""
    more: int = 0
    """How many more occurrences of a span's characters the source has than such spans; negative if it has fewer that
    are apart from the letters around them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlossaryEntry:
    """A source term and its translation."""

    source: str
    forms: tuple[str, ...]
    """The forms of the target term; a translation needs one of them."""

    @property
    def has_case(self) -> bool:
        """Whether the source term is found only in its own case, because it has a capital after its first letter."""
        return any(letter.isupper() for letter in self.source[1:])

    @property
    def is_untranslated(self) -> bool:
        """Whether the term is not translated."""
        return self.forms == (self.source,)


class _Spelling(NamedTuple):
    """An entry, and how its source term may be written."""

    entry: GlossaryEntry
    composed: str
    """The source term with composed letters and without invisible characters."""
    lower: Mapping[str, LowerCase]
    """The source term in lower case, by casing."""

    @classmethod
    def of(cls, entry: GlossaryEntry) -> "_Spelling":
        lower = {casing: lower_case(entry.source, casing) for casing in CASINGS}
        return cls(entry, plain(entry.source), lower)


@dataclass(frozen=True, slots=True)
class Glossary:
    """The entries of a glossary.

    Raises:
        DataError: a term is blank, or a source term has two translations.
    """

    entries: tuple[GlossaryEntry, ...]
    _by_unit: dict[str, dict[int, dict[str, list[_Spelling]]]] = field(init=False, repr=False, compare=False)
    """The entries by three keys: the first unit (word or character) of the folded source term, the folded term's
    length, and the whole folded term. The longest terms come first. The time of a look-up does not grow with the number
    of entries."""

    def __post_init__(self) -> None:
        by_unit: dict[str, dict[int, dict[str, list[_Spelling]]]] = {}
        terms = [(folded(entry.source).text, entry) for entry in self.entries]
        for term, entry in sorted(terms, key=lambda one: len(one[0]), reverse=True):
            by_length = by_unit.setdefault(_first_unit(term), {})
            by_length.setdefault(len(term), {}).setdefault(term, []).append(_Spelling.of(entry))
        object.__setattr__(self, "_by_unit", by_unit)

    @classmethod
    def load(cls, path: str | Path) -> "Glossary":
        """Return the glossary in a TSV file; blank lines are skipped.

        Raises:
            DataError: the file cannot be read, or a line is not a source term, a tab and a target term.
        """
        try:
            content = Path(path).read_bytes()
            check_width(str(path), content)
            lines = content.decode("utf-8-sig").split("\n")
        except OSError as error:
            advice = remedy(error, "correct the name of the glossary")
            raise DataError(f"cannot read {path}: {error.strerror}; {advice}") from error
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}: expected UTF-8, got an invalid byte at {error.start}; convert the file"
            ) from error
        pairs = list[tuple[str, str, str]]()
        for number, line in enumerate(lines, start=1):
            cells = line.split("\t")
            if line.strip() and len(cells) != 2:
                raise DataError(
                    f"{path}, line {number}: expected a source term, a tab and a target term, got "
                    f"{counted(len(cells), 'column')}; correct the line"
                )
            if line.strip():
                pairs.append((f"{path}, line {number}", cells[0], cells[1]))
        return cls.of_pairs(pairs)

    @classmethod
    def of(cls, terms: Mapping[str, str]) -> "Glossary":
        """Return the glossary of a mapping from source terms to target terms.

        Raises:
            DataError: a term is blank, or two source terms differ only in case and are looked up without case.
        """
        return cls.of_pairs(("glossary", *pair) for pair in terms.items())

    @classmethod
    def of_pairs(cls, pairs: Iterable[tuple[str, str, str]]) -> "Glossary":
        """Return the glossary of these triples: the place to name in error messages, a source term and a target term.

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

    def terms(
        self, text: str, taken: Sequence[Span] = (), *, source_language: str = "", target_language: str = ""
    ) -> Iterator[Term]:
        """Yield the terms that occur in a text, in order.

        Where several terms begin, the longest counts. Terms do not overlap each other or the spans in `taken`, which
        must be in order. The languages, as BCP 47 tags, decide which letters are capitals of which; "" = unknown.
        """
        (key, places), cursor, ends = folded(text), 0, [end for _, end in taken]
        for start, stop in _units(key):
            begin = places[start]
            if begin < cursor:
                continue
            for length, entries in self._by_unit.get(key[start:stop], {}).items():
                if not (found := entries.get(key[start : start + length])):
                    continue
                last = places[start + length]
                first_taken = bisect_right(ends, begin)
                is_free = first_taken == len(taken) or taken[first_taken][0] >= last
                entry = _entry_of(found, text[begin:last], source_language)
                if entry and is_free and is_apart(key, start, start + length):
                    yield _term(entry, begin, text[begin:last], target_language)
                    cursor = last
                    break


def _entry(place: str, source: str, target: str) -> GlossaryEntry:
    # as tokenizers read and write texts
    term, *others = (normalise(text, "plain") for text in (source, *target.split(FORMS)))
    forms = tuple(dict.fromkeys(others)) if source.strip() != target.strip() else (term,)
    entry = GlossaryEntry(source=term, forms=forms)
    for name, term in (("source term", entry.source), *(("target term", form) for form in entry.forms)):
        if not any(character.isalnum() for character in term):
            raise DataError(f"{place}: expected a {name} with a letter or a digit, got {quoted(term)}; correct it")
    return entry


def _units(text: str) -> Iterator[Span]:
    """Yield the units of a folded text at which a term may begin: words, and characters of scripts without spaces."""
    for found in _UNIT.finditer(text):
        begin, end = found.span()
        starts = [begin, *(place for place in range(begin + 1, end) if is_apart(text, place, place)), end]
        yield from pairwise(starts)


def _first_unit(term: str) -> str:
    begin, end = next(_units(term), (0, 0))
    return term[begin:end]


def _entry_of(spellings: Sequence[_Spelling], found: str, language: str) -> GlossaryEntry | None:
    """Return the entry whose source term is a word that was found in a text; the most similar spelling counts first."""
    composed, casing, word = plain(found), casing_of(language), lower_case(found, language)
    # In capitals, a single letter keeps its accent: Ή is the capital of ή (or), because Η is an article.
    is_bare = len(found) > 1 and found.isupper()

    def fits(one: _Spelling) -> bool:
        if one.entry.has_case:
            return one.composed == composed
        own = one.lower[casing]
        return own.bare == word.bare if is_bare else own.accented == word.accented

    def likeness(one: _Spelling) -> tuple[bool, bool]:
        return one.entry.has_case, one.composed.lower() == composed.lower()

    best = max(filter(fits, spellings), key=likeness, default=None)
    return best and best.entry


def _term(entry: GlossaryEntry, begin: int, found: str, language: str) -> Term:
    """Return the term of an entry that was found in a text; its forms also count with a capital as their first letter.

    If the source term begins with a capital in the text but not in the entry, the forms with a capital come first.
    """
    end = begin + len(found)
    if entry.is_untranslated:
        return Term(begin, end, (found,), "untranslated")
    capitals = tuple(capitalised(form, language) for form in entry.forms)
    begins_with_capital = found[:1].isupper() and not entry.source[:1].isupper()
    ordered = (*capitals, *entry.forms) if begins_with_capital else (*entry.forms, *capitals)
    return Term(begin, end, tuple(dict.fromkeys(ordered)), "translated")
