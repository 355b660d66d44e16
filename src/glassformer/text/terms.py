"""What a translation must contain: the protected spans of its source, and the terms of a glossary.

A term occurs in a text where it does not join with the letters or digits around it: "cat" is not in "cats", and 100 is
not in 1000. A letter of a script without spaces between words joins with no other character.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from glassformer.text.edits import Replacement, edited
from glassformer.text.glossary import Glossary, Term
from glassformer.text.links import Span, overlapping
from glassformer.text.signs import Signs
from glassformer.text.spans import protected_spans
from glassformer.text.word_edges import is_apart

__all__ = ["Terms", "Written", "missing_terms", "suffices", "without_spans", "written_forms"]


_START = 3
"""Number of characters by which forms are looked up, so that most places of a text are compared with none."""


class Written(NamedTuple):
    """A form of a term that occurs in an output, at the characters [begin, end)."""

    begin: int
    end: int
    form: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Which parts of a source its translation must contain."""

    protect: bool = True
    """Whether to keep the protected spans of the source: addresses, placeholders, tags, numbers of three digits or
    more, …"""
    patterns: tuple[str, ...] = ()
    """Further texts to protect. A * stands for any characters; every other character stands for itself."""
    glossary: Glossary | None = None
    source_language: str = ""
    """The language of the sources, as a BCP 47 tag; it decides which letters are capitals of which. "" = unknown."""
    target_language: str = ""
    """The language of the translations, likewise."""
    signs: Signs | None = None
    """What the source vocabulary has signs for. If it is given, the rest is kept like protected spans."""

    def of(self, text: str) -> tuple[Term, ...]:
        """Return the terms of a text, in order and without overlaps."""
        spans = protected_spans(text, self.patterns) if self.protect else []
        found = [Term(one.begin, one.end, (text[one.begin : one.end],), "span", one.is_ordered) for one in spans]
        others = list[Term]()
        if self.glossary:
            languages = {"source_language": self.source_language, "target_language": self.target_language}
            others = [*self.glossary.terms(text, [(one.begin, one.end) for one in spans], **languages)]
        taken = sorted((one.begin, one.end) for one in (*found, *others))
        found += (Term(*span, (text[slice(*span)],), "span") for span in self._without_sign(text, taken))
        return tuple(sorted([*_counted(text, found), *others]))

    def spans(self, text: str) -> list[Span]:
        """Return the spans of a text that are kept as they are, in order; glossary terms do not count."""
        known = protected_spans(text, self.patterns) if self.protect else []
        spans = [(one.begin, one.end) for one in known]
        return sorted([*spans, *self._without_sign(text, spans)])

    def _without_sign(self, text: str, taken: Sequence[Span]) -> list[Span]:
        """Return the parts of a text that the vocabulary has no sign for, outside the spans in `taken`."""
        lacking = self.signs.lacking(text) if self.protect and self.signs else []
        return [span for span in lacking if not overlapping(taken, span)]

    def leave_words(self, text: str) -> bool:
        """Return whether a text has words besides its terms."""
        rest = edited(text, (Replacement(term.begin, term.end, "") for term in self.of(text)))
        return any(map(str.isalnum, rest))


def _counted(text: str, spans: list[Term]) -> list[Term]:
    """Return the spans of a text, with their field `more` set."""
    if not spans:  # most texts have none, and looking at each of their characters takes time
        return spans
    times, found = Counter(one.forms[0] for one in spans), Counter(one.form for one in written_forms(spans, text))
    return [one._replace(more=found[one.forms[0]] - times[one.forms[0]]) for one in spans]


def missing_terms(terms: Sequence[Term], output: str) -> list[Term]:
    """Return the terms that an output does not contain, or contains too often.

    If one of several equal terms is missing, all of them are returned. Each form in the output counts for one term
    only.

    >>> terms = Terms().of("From 1000 to 2000, see {x}.")
    >>> [term.forms for term in missing_terms(terms, "De 1000 a 2 000, voir {x}.")]
    [('2000',)]
    """
    if not terms:
        return []
    counts = Counter(one.form for one in written_forms(terms, output))
    wanted = Counter(map(_anywhere, terms))
    # Spans are looked up in `counts` instead of compared with all forms, because a text may contain thousands of spans.
    fitting = {
        term: [
            form for form in (term.forms if term.kind == "span" else counts) if form in counts and suffices(form, term)
        ]
        for term in wanted
    }
    uses = Counter(form for forms in fitting.values() for form in forms)
    # Terms with only one possible form take it first; other terms prefer forms that no other term can use.
    ordered = sorted(wanted, key=lambda term: (term.kind != "span", len(fitting[term]), len(term.forms)))
    wrong = set[Term]()
    for term in ordered:
        least, most = wanted[term] + min(0, term.more), wanted[term] + max(0, term.more)
        forms = sorted(fitting[term], key=uses.__getitem__)
        taken = _take(counts, forms, most)
        if taken < least or (term.kind == "span" and any(counts[form] for form in forms)):
            wrong.add(term)
    return [term for term in terms if _anywhere(term) in wrong]


def _anywhere(term: Term) -> Term:
    """Return a term without what its place in the text decides: there, %02f may be a conversion or an escape."""
    return term._replace(begin=0, end=0, is_ordered=False)


def written_forms(terms: Iterable[Term], output: str) -> list[Written]:
    """Return the forms of terms that occur in an output, from left to right; of overlapping forms, only one.

    Where several forms begin at one position, the longest is returned.
    """
    forms = {form for term in terms for form in term.forms}
    starts: dict[str, set[int]] = {}
    for form in forms:
        starts.setdefault(form[:_START], set()).add(len(form))
    lengths = {start: sorted(some, reverse=True) for start, some in starts.items()}
    found, place = list[Written](), 0
    while place < len(output):
        known = (lengths.get(output[place : place + size], ()) for size in range(_START, 0, -1))
        there = (output[place : place + length] for some in known for length in some if length <= len(output) - place)
        written = (Written(place, place + len(form), form) for form in there if form in forms)
        if one := next((one for one in written if _stands(output, one)), None):
            found.append(one)
        place = one.end if one else place + 1
    return found


def _stands(output: str, one: Written) -> bool:
    """Return whether a form does not join with the characters around it; a letter may follow %d, as in %dx%d."""
    return is_apart(output, one.begin, one.end) or (one.form[0] == "%" and one.form[-1].isalpha())


def suffices(form: str, term: Term) -> bool:
    """Return whether a form in an output counts for a term: it is one of the term's forms, or has one as whole words.

    A protected span has one form only, and no other form counts for it.
    """
    if form in term.forms or term.kind == "span":
        return form in term.forms
    begins = ((form.find(own), len(own)) for own in term.forms)
    return any(begin >= 0 and is_apart(form, begin, begin + length) for begin, length in begins)


def without_spans(text: str, patterns: Sequence[str] = ()) -> str:
    """Return a text without its protected spans; `patterns` are as in `Terms`.

    >>> without_spans("See https://example.org/a.")
    'See .'
    """
    return edited(text, (Replacement(one.begin, one.end, "") for one in protected_spans(text, patterns)))


def _take(counts: Counter[str], forms: Sequence[str], count: int) -> int:
    """Take up to `count` occurrences of any of the forms from `counts`; return how many were taken."""
    left = count
    for form in forms:
        taken = min(left, counts[form])
        counts[form] -= taken
        left -= taken
    return count - left
