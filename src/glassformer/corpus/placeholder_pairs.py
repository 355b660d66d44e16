"""Put placeholder tokens into training pairs, so that a model learns to copy them (text/placeholders.py)."""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from zlib import crc32

from glassformer.corpus.word_alignment import align_words
from glassformer.text.edits import Replacement, edited
from glassformer.text.glossary import Term
from glassformer.text.links import Span, overlap
from glassformer.text.placeholders import has_placeholders, shared_spans, spans_of
from glassformer.text.tokenizer import Tokenizer
from glassformer.text.vocabulary import PLACEHOLDERS

__all__ = ["PlaceholderPairs", "frequent_translations"]

FEWEST_LINKS = 5
"""Minimum number of times that a word must be aligned to the same translation."""
REPLACED = 0.25
"""Share of the drawn tokens that replace a word; the other drawn tokens are added after a word. With a larger share, a
model often reads a token after an article as the noun, and leaves the noun out."""
_WORD = re.compile(r"(?<![\w-])(?:(?<!['’])[^\W\d_]|[^\W\d_]{2,})(?![\w'’-])")
"""A word, without an elided word before it (l') and without the ending of a contraction after it ('ll)."""

_Pair = tuple[str, str]


class _Slot(NamedTuple):
    """The spans of both texts that a placeholder token replaces."""

    spans: tuple[Span, Span]
    before: str = ""
    """Text before the token: a space if the token is added after a word."""


@dataclass(frozen=True, slots=True)
class PlaceholderPairs:
    """A callable that puts placeholder tokens in place of protected spans that occur on both sides of a pair.

    Most corpora have few protected spans. Therefore, a share of the pairs also gets tokens in place of words that are
    translations of each other, or after such words. The random choices depend only on the pair, so all processes make
    the same choices.
    """

    source: Tokenizer
    target: Tokenizer
    share: float = 0.0
    """Share of the pairs, from 0 to 1, that get tokens in place of words or after words."""
    translations: Mapping[str, str] = field(default_factory=dict)
    """The usual translation of some words, in lower case."""

    @classmethod
    def of(cls, source: Tokenizer, target: Tokenizer) -> "PlaceholderPairs | None":
        """Return the callable for protected spans alone, or None if a vocabulary has no placeholder tokens."""
        return cls(source, target) if has_placeholders(source) and has_placeholders(target) else None

    def __call__(self, source: str, target: str) -> _Pair:
        """Return the pair with placeholder tokens, or the unchanged pair if no span can be replaced."""
        here, there = spans_of(source), spans_of(target)
        shared = shared_spans(here, there)
        slots = [_Slot((_span(here[place]), _span(other))) for place, other in shared.items()]
        number = crc32(f"{source}\t{target}".encode(errors="replace"))
        chance = random.Random(number)
        if number < self.share * 2**32:
            slots += self._drawn((source, target), (here, there), chance)
        if not slots:
            return source, target
        slots = slots[: len(PLACEHOLDERS)]
        marks = chance.sample(PLACEHOLDERS, len(slots))
        made = tuple(
            edited(
                text,
                [Replacement(*slot.spans[side], slot.before + mark) for slot, mark in zip(slots, marks, strict=True)],
            )
            for side, text in enumerate((source, target))
        )
        tokenizers = (self.source, self.target)
        whole = all(set(marks) <= {*tokenizer.split(text)} for tokenizer, text in zip(tokenizers, made, strict=True))
        return (made[0], made[1]) if whole else (source, target)

    def _drawn(
        self, pair: _Pair, terms: tuple[Sequence[Term], Sequence[Term]], chance: random.Random
    ) -> Iterator[_Slot]:
        """Yield one or more random slots for tokens, outside the protected terms, if the pair has suitable words."""
        places = list(self._places(pair, terms))
        count = 1
        while chance.random() < 0.5:
            count += 1
        for source, target in chance.sample(places, min(count, len(places))):
            if chance.random() < REPLACED:
                yield _Slot((source, target))
            else:
                yield _Slot(((source[1], source[1]), (target[1], target[1])), " ")

    def _places(self, pair: _Pair, terms: tuple[Sequence[Term], Sequence[Term]]) -> Iterator[tuple[Span, Span]]:
        """Yield the spans of source and target words that translate each other and occur only once in their texts."""
        source, target = (_single_words(text, some) for text, some in zip(pair, terms, strict=True))
        for word, place in source.items():
            if (other := target.get(self.translations.get(word, ""))) is not None:
                yield place, other


def frequent_translations(pairs: Sequence[_Pair]) -> dict[str, str]:
    """Return source words, in lower case, each with the target word that most of its occurrences are aligned to."""
    split = [(_WORD.findall(source), _WORD.findall(target)) for source, target in pairs]
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for (source, target), links in zip(split, align_words(split), strict=True):
        for word, link in zip(target, links, strict=True):
            if link is not None:
                found[source[link].lower()][word.lower()] += 1
    best = {word: (*forms.most_common(1)[0], forms.total()) for word, forms in found.items()}
    return {word: form for word, (form, often, total) in best.items() if often >= FEWEST_LINKS and 2 * often > total}


def _span(term: Term) -> Span:
    return term.begin, term.end


def _single_words(text: str, terms: Sequence[Term]) -> dict[str, Span]:
    """Return the spans of the words that occur once in a text, outside the terms, by the word in lower case."""
    places: dict[str, list[Span]] = defaultdict(list)
    for word in _WORD.finditer(text):
        places[word[0].lower()].append(word.span())
    free = {word: found[0] for word, found in places.items() if len(found) == 1}
    return {word: place for word, place in free.items() if not any(overlap(place, _span(term)) for term in terms)}
