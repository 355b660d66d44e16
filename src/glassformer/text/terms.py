"""What a translation must contain: the protected spans of its source, and the terms of a glossary.

A term stands in a text where it does not join with the letters or digits around it: "cat" is not in "cats", and 100 is
not in 1000. Letters of scripts without spaces between words join with nothing.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from glassformer.text.edits import Replacement, edited
from glassformer.text.glossary import Glossary, Term
from glassformer.text.links import Span
from glassformer.text.vocabulary import PLACEHOLDERS
from glassformer.text.word_edges import is_apart

__all__ = ["Terms", "Written", "missing_terms", "suffices", "without_spans", "written_forms"]

_ADDRESS = r"(?:https?|ftp)://[^\s<>\"]*[^\s<>\".,;:!?)\]}'»”’]"
"""The pattern of an address of a page."""
_PLACEHOLDER = (
    r"%\([\w.]+\)[#0 +-]*\d*(?:\.\d+)?[a-zA-Z]"  # Python
    r"|%(?:\d+\$)?[#0+-]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|L|q|j|z|t)?[diouxXeEfFgGaAcspn@](?![a-zA-Z])"  # C
    r"|%%"
    r"|\$\w+\$"  # Chrome
)
"""The pattern of placeholders that programs fill, without those in braces."""
_PROTECTED = re.compile(
    rf"(?P<address>{_ADDRESS}|www\.[\w-]+(?:\.[\w-]+)+(?:/[^\s<>\"]*[^\s<>\".,;:!?)\]}}'»”’])?)"
    r"|(?P<mail>[\w.+-]+@[\w-]+(?:\.[\w-]+)+)"
    r"|(?P<tag></?[A-Za-z][\w.:-]*(?:\s[^<>]*)?/?>)"
    r"|(?P<braces>\{\{[^{}\n]*\}\}|\{[\w.:!-]*\})"
    rf"|(?P<token>{'|'.join(PLACEHOLDERS)})"  # so that one in a text cannot be confused with those of our own
    rf"|(?P<placeholder>{_PLACEHOLDER})"
    r"|(?P<number>\d{1,3}(?: \d{3})+(?!\d)|\d(?:[\d.,:/'’\u00a0\u202f]*\d)?)",
)
_PERHAPS = re.compile(r"[\d@{%$<]|://|www\.")
FEWEST_DIGITS = 3
"""Minimum number of digits of a protected number."""


class Written(NamedTuple):
    """A form of a term that stands in an output, at the characters [begin, end)."""

    begin: int
    end: int
    form: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Which parts of a source its translation must contain."""

    protect: bool = True
    """Whether protected spans belong to them: addresses, placeholders, tags, and numbers of three digits or more."""
    glossary: Glossary | None = None

    def of(self, text: str) -> tuple[Term, ...]:
        """Return the terms of a text, in order and without overlaps."""
        spans = list(_protected(text)) if self.protect else []
        found = [Term(begin, end, (text[begin:end],), "span") for begin, end in spans]
        if self.glossary:
            found += self.glossary.terms(text, spans)
        return tuple(sorted(found))

    def leave_words(self, text: str) -> bool:
        """Return whether a text has words besides its terms."""
        rest = edited(text, (Replacement(term.begin, term.end, "") for term in self.of(text)))
        return any(map(str.isalnum, rest))


def missing_terms(terms: Sequence[Term], output: str) -> list[Term]:
    """Return the terms that an output lacks, or contains too often.

    Equal terms are all returned if one of them is missing. Each form in the output counts for one term only.

    >>> terms = Terms().of("From 1000 to 2000, see {x}.")
    >>> [term.forms for term in missing_terms(terms, "De 1000 a 2 000, voir {x}.")]
    [('2000',)]
    """
    if not terms:
        return []
    counts = Counter(one.form for one in written_forms(terms, output))
    wanted = Counter(term._replace(begin=0, end=0) for term in terms)
    fitting = {term: [form for form in counts if suffices(form, term)] for term in wanted}
    uses = Counter(form for forms in fitting.values() for form in forms)
    # Terms that have no choice take their forms first, and the others first take what no other term can use.
    ordered = sorted(wanted, key=lambda term: (term.kind != "span", len(fitting[term]), len(term.forms)))
    wrong = {term for term in ordered if not _take(counts, sorted(fitting[term], key=uses.__getitem__), wanted[term])}
    wrong |= {term for term in wanted if term.kind == "span" and any(counts[form] for form in fitting[term])}
    return [term for term in terms if term._replace(begin=0, end=0) in wrong]


def written_forms(terms: Iterable[Term], output: str) -> list[Written]:
    """Return the forms of terms that stand in an output, from left to right, at each place the longest."""
    forms = sorted({form for term in terms for form in term.forms}, key=lambda form: (-len(form), form))
    found, place = list[Written](), 0
    while place < len(output):
        there = (Written(place, place + len(form), form) for form in forms if output.startswith(form, place))
        if one := next((one for one in there if is_apart(output, one.begin, one.end)), None):
            found.append(one)
        place = one.end if one else place + 1
    return found


def suffices(form: str, term: Term) -> bool:
    """Return whether a form in an output counts for a term; longer forms of a glossary contain shorter ones."""
    if form in term.forms or term.kind == "span":
        return form in term.forms
    begins = ((form.find(own), len(own)) for own in term.forms)
    return any(begin >= 0 and is_apart(form, begin, begin + length) for begin, length in begins)


def without_spans(text: str) -> str:
    """Return a text without its protected spans.

    >>> without_spans("See https://example.org/a.")
    'See .'
    """
    spans = [(0, 0), *_protected(text), (len(text), len(text))]
    return "".join(text[end:begin] for (_, end), (begin, _) in pairwise(spans))


def _protected(text: str) -> Iterator[Span]:
    if not _PERHAPS.search(text):  # most texts have no such span, which one look at them shows
        return
    for found in _PROTECTED.finditer(text):
        digits = sum(map(str.isdigit, found[0])) if found.lastgroup == "number" else FEWEST_DIGITS
        if digits >= FEWEST_DIGITS:
            yield found.span()


def _take(counts: Counter[str], forms: Sequence[str], count: int) -> bool:
    """Take a number of occurrences of any of some forms from the counts; return whether there were enough."""
    for form in forms:
        taken = min(count, counts[form])
        counts[form] -= taken
        count -= taken
    return count == 0
