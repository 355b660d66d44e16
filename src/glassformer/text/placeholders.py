"""Placeholder tokens: each stands for a protected span while the model translates, so that the model copies one token.

Before a source is cut into tokens, its protected spans are replaced by the tokens "⟦0⟧" to "⟦9⟧". In the translation,
each of these tokens is replaced by its span. Models learn this from training pairs (corpus/placeholder_pairs.py).
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from itertools import accumulate, zip_longest
from typing import NamedTuple

from glassformer.text.edits import Replacement, edited, moved
from glassformer.text.glossary import Term
from glassformer.text.links import Link, overlap, word_spans
from glassformer.text.terms import Terms, without_spans
from glassformer.text.tokenizer import Tokenizer
from glassformer.text.vocabulary import PLACEHOLDERS

__all__ = ["Masked", "has_placeholders", "masked", "shared_spans", "spans_of"]

_SPANS = Terms()
_WRITTEN = re.compile(f" ?({'|'.join(PLACEHOLDERS)})")


class Masked(NamedTuple):
    """A text in which placeholder tokens stand for protected spans, as a model reads it."""

    text: str
    """The text, with a placeholder token in place of each of its `terms`."""
    original: str
    terms: tuple[Term, ...] = ()
    """The spans that the placeholder tokens stand for, in the order of `PLACEHOLDERS`."""

    def in_target(self, target: str) -> str:
        """Return a translation, or its beginning, with placeholder tokens in place of the source's spans.

        Each token is used at most once.
        """
        found = shared_spans(self.terms, spans_of(target)) if self.terms else {}
        return edited(target, [Replacement(one.begin, one.end, PLACEHOLDERS[place]) for place, one in found.items()])

    def restored(self, target: str, links: Sequence[Link] = ()) -> tuple[str, tuple[Link, ...]]:
        """Return a translation with spans in place of their tokens, and the links of its words to the original.

        A placeholder token that stands for no span is left out.
        """
        edits = list(self._restoring(target))
        if not self.terms and not edits:
            return target, tuple(links)
        text = edited(target, edits)
        all_links = (Link(moved(one, self._edits()), moved(other, edits)) for one, other in links)
        return text, tuple(found for link in all_links for found in _word_by_word(self.original, text, link))

    def invents(self, tokens: Sequence[str]) -> bool:
        """Return whether the tokens of a translation include a placeholder token that stands for no span."""
        return any(token in tokens and token not in self.text for token in PLACEHOLDERS)

    def _restoring(self, target: str) -> Iterator[Replacement]:
        """Yield the edits that turn a translation of the masked text into a translation of the original."""
        for one in _WRITTEN.finditer(target):
            number = PLACEHOLDERS.index(one[1])
            if number < len(self.terms):
                yield Replacement(*one.span(1), self.terms[number].forms[0])
            elif one[1] not in self.text:
                yield Replacement(*one.span(), "")

    def _edits(self) -> list[Replacement]:
        """Return the edits that turn the masked text into the original."""
        forms = [term.forms[0] for term in self.terms]
        shifts = accumulate((len(mark) - len(form) for mark, form in zip(PLACEHOLDERS, forms, strict=False)), initial=0)
        begins = [term.begin + shift for term, shift in zip(self.terms, shifts, strict=False)]
        marks = zip(begins, PLACEHOLDERS, forms, strict=False)
        return [Replacement(begin, begin + len(mark), form) for begin, mark, form in marks]


def has_placeholders(tokenizer: Tokenizer) -> bool:
    """Return whether a tokenizer has all placeholder tokens, as after training with `tokenizer.placeholders`."""
    text = " ".join(PLACEHOLDERS)
    return set(PLACEHOLDERS) <= {*tokenizer.split(text)} and tokenizer.unk_id not in tokenizer.encode(text)


def spans_of(text: str) -> tuple[Term, ...]:
    """Return the protected spans of a text."""
    return _SPANS.of(text)


def masked(text: str, tokenizer: Tokenizer) -> Masked:
    """Return a text with placeholder tokens in place of its protected spans.

    A text that consists only of spans does not change. A span also stays in the text if no placeholder token
    is left for the span, or if the tokenizer would join the placeholder token to the letters next to it.
    """
    terms = spans_of(text)[: len(PLACEHOLDERS)]
    if not terms or not any(character.isalnum() for character in without_spans(text)):
        return Masked(text, text)
    while terms:
        marks = [*zip(terms, PLACEHOLDERS, strict=False)]
        made = edited(text, [Replacement(term.begin, term.end, mark) for term, mark in marks])
        tokens = tokenizer.split(made)
        separate = tuple(term for term, mark in marks if tokens.count(mark) == 1)
        if separate == terms:
            return Masked(made, text, terms)
        terms = separate
    return Masked(text, text)


def shared_spans(terms: Sequence[Term], others: Sequence[Term]) -> dict[int, Term]:
    """Return the translation's spans that also occur in the text, by the index of the equal span in `terms`.

    `terms` are the spans of the text, and `others` are the spans of the translation.
    """
    free = defaultdict[tuple[str, ...], deque[Term]](deque)
    for other in others:
        free[other.forms].append(other)
    return {place: free[term.forms].popleft() for place, term in enumerate(terms) if free[term.forms]}


def _word_by_word(source: str, target: str, link: Link) -> Iterator[Link]:
    """Yield links between the single words of a link's two spans; no links if a span has no words."""
    words, others = (
        [word for word in word_spans(text) if overlap(word, span)]
        for text, span in zip((source, target), link, strict=True)
    )
    if words and others:
        for word, other in zip_longest(words, others):
            yield Link(word or words[-1], other or others[-1])
