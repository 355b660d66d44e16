"""What a translation must contain: the protected spans of its source, and the terms of a glossary.

A term stands in a text where it does not join with the letters or digits around it: "cat" is not in "cats", and 100 is
not in 1000. Letters of scripts without spaces between words join with nothing.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from glassformer.text.glossary import Glossary, Term
from glassformer.text.links import Span
from glassformer.text.reversal import ReversedTokenizer
from glassformer.text.tokenizer import Tokenizer
from glassformer.text.vocabulary import PLACEHOLDERS
from glassformer.text.word_edges import is_apart

__all__ = [
    "Terms",
    "TextPiece",
    "as_fragment",
    "missing_terms",
    "pieces_around",
    "spellings_of",
    "without_spans",
]

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
CONTEXTS = ("", "(", "'", "’", "«", '"', "-", "/", "的")
"""Texts after which a term's tokens are looked up, because they depend on what stands before the term."""
_ENDINGS = ".!?…。！？"


class TextPiece(NamedTuple):
    """A piece of a text that is cut: a part to translate by itself, or text for the translation."""

    text: str
    begin: int
    end: int
    """The characters of the source, [begin, end), that the piece is or stands for."""
    is_translated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Which parts of a source its translation must contain."""

    protect: bool = True
    """Whether protected spans belong to them: addresses, placeholders, tags, and numbers of three digits or more."""
    glossary: Glossary | None = None

    def of(self, text: str) -> tuple[Term, ...]:
        """Return the terms of a text, in order and without overlaps."""
        spans = list(_protected(text)) if self.protect and _PERHAPS.search(text) else []
        found = [Term(begin, end, (text[begin:end],), "span") for begin, end in spans]
        if self.glossary:
            found += self.glossary.terms(text, spans)
        return tuple(sorted(found))

    def leave_words(self, text: str) -> bool:
        """Return whether a text has words besides its terms."""
        return any(piece.is_translated for piece in pieces_around(text, self.of(text)))


def missing_terms(terms: Sequence[Term], output: str) -> list[Term]:
    """Return the terms that an output lacks, or contains too often.

    >>> terms = Terms().of("From 1000 to 2000, see {x}.")
    >>> [term.forms for term in missing_terms(terms, "De 1000 a 2 000, voir {x}.")]
    [('2000',)]
    """
    if not terms:
        return []
    counts = _counted({form for term in terms for form in term.forms}, output)
    wanted = Counter((term.forms, term.kind == "span") for term in terms)
    ordered = sorted(wanted.items(), key=lambda one: (not one[0][1], len(one[0][0])))
    wrong = {kind for kind, count in ordered if not _take(counts, kind[0], count)}
    wrong |= {kind for kind in wanted if kind[1] and any(counts[form] for form in kind[0])}
    return [term for term in terms if (term.forms, term.kind == "span") in wrong]


def spellings_of(term: Term, tokenizer: Tokenizer) -> tuple[tuple[int, ...], ...]:
    """Return the sequences of tokens that write a form of a term, with and without a space before it.

    There is none if the vocabulary lacks a character, or if the tokenizer does not keep the form as it is.
    """
    if isinstance(tokenizer, ReversedTokenizer):
        return tuple(spelling[::-1] for spelling in spellings_of(term, tokenizer.forward))
    found: dict[tuple[int, ...], None] = {}
    for form in term.forms:
        for context in CONTEXTS:
            before, ids = tokenizer.encode(context), tokenizer.encode(context + form)
            spelling = tuple(ids[len(before) :])
            if ids[: len(before)] == before and tokenizer.unk_id not in spelling and tokenizer.decode(spelling) == form:
                found[spelling] = None
    return tuple(found)


def pieces_around(text: str, terms: Sequence[Term]) -> list[TextPiece]:
    """Return the pieces of a text that is cut at terms: the terms, each in its first form, and the sides.

    White space and punctuation between a side and a term belong to no side, and stay as they are.
    """
    pieces: list[TextPiece] = []
    cursor = 0
    for number, term in enumerate(terms):
        pieces += _side(text, cursor, term.begin, is_first=number == 0, is_last=False)
        pieces.append(TextPiece(term.forms[0], term.begin, term.end, False))
        cursor = term.end
    return [*pieces, *_side(text, cursor, len(text), is_first=not terms, is_last=True)]


def as_fragment(source: str, translation: str) -> str:
    """Return the translation of a part of a sentence without the full stop that a model may add to it."""
    return translation if source[-1:] in _ENDINGS else translation.rstrip(_ENDINGS + " ") or translation


def without_spans(text: str) -> str:
    """Return a text without its protected spans.

    >>> without_spans("See https://example.org/a.")
    'See .'
    """
    spans = [(0, 0), *_protected(text), (len(text), len(text))]
    return "".join(text[end:begin] for (_, end), (begin, _) in pairwise(spans))


def _protected(text: str) -> Iterator[Span]:
    for found in _PROTECTED.finditer(text):
        digits = sum(map(str.isdigit, found[0])) if found.lastgroup == "number" else FEWEST_DIGITS
        if digits >= FEWEST_DIGITS:
            yield found.span()


def _counted(forms: set[str], output: str) -> Counter[str]:
    """Return how often each form stands in an output, from left to right, the longest form first."""
    ordered = sorted(forms, key=lambda form: (-len(form), form))
    counts, place = Counter[str](), 0
    while place < len(output):
        there = (form for form in ordered if output.startswith(form, place))
        found = next((form for form in there if is_apart(output, place, place + len(form))), "")
        counts[found] += 1
        place += len(found) or 1
    return counts


def _take(counts: Counter[str], forms: Sequence[str], count: int) -> bool:
    """Take a number of occurrences of any of some forms from the counts; return whether there were enough."""
    for form in forms:
        taken = min(count, counts[form])
        counts[form] -= taken
        count -= taken
    return count == 0


def _side(text: str, begin: int, end: int, *, is_first: bool, is_last: bool) -> Iterator[TextPiece]:
    """Yield the pieces of a side: what surrounds it at a cut, and its inner part if there is a letter or a digit."""
    wanted = [place for place in range(begin, end) if text[place].isalnum()]
    first, last = (wanted[0], wanted[-1] + 1) if wanted else (end, end)
    if wanted and is_first:
        first = begin + len(text[begin:end]) - len(text[begin:end].lstrip())
    if wanted and is_last:
        last = begin + len(text[begin:end].rstrip())
    places = [(begin, first, False), (first, last, True), (last, end, False)]
    yield from (TextPiece(text[one:other], one, other, inner) for one, other, inner in places if one < other)
