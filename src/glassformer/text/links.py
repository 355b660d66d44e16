"""Links between words: from the attention of tokens to spans of characters in two texts.

A word is a run of characters without white space. Axes: S source tokens · T target tokens.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from glassformer.text.normalisation import SPACE_MARK
from glassformer.text.tokenizer import Tokenizer

__all__ = ["Link", "Span", "link_words", "source_words", "target_words", "word_spans"]

T = TypeVar("T")

Span = tuple[int, int]
"""Begin and end, in characters: [begin, end)."""

_WORD = re.compile(rf"[^\s{SPACE_MARK}]+")


class Link(NamedTuple):
    """A word of a translation and the source word that it is aligned to, as spans of characters [begin, end)."""

    source: Span
    """The source word in the source text."""
    target: Span
    """The target word in the translation."""

    def moved(self, source: int, target: int) -> "Link":
        """Return the link with both spans moved by these numbers of characters."""
        spans = zip(self, (source, target), strict=True)
        return Link(*((begin + distance, end + distance) for (begin, end), distance in spans))


def word_spans(text: str) -> list[Span]:
    """Return the span of each word of a text.

    >>> word_spans("the  cat.")
    [(0, 3), (5, 9)]
    """
    return [word.span() for word in _WORD.finditer(text)]


def source_words(tokenizer: Tokenizer, text: str) -> list[int | None]:
    """Return the index of each source token's word in the text, without `<eos>`; None for tokens outside all words.

    If the tokenizer's normalisation joins or splits words of the text, no token belongs to a word.
    """
    tokens = tokenizer.split(text)
    before = len(tokenizer.encode(text)) - len(tokens)  # `<bos>`, with which some tokenizers begin
    found = list(_words_of_tokens(tokenizer.join, tokens))
    same = len({word for word in found if word is not None}) == len(word_spans(text))
    return [*[None] * before, *(found if same else [None] * len(tokens))]


def target_words(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int | None]:
    """Return the index of each target token's word in the decoded text; None for tokens outside all words."""
    return list(_words_of_tokens(tokenizer.decode, ids))


def link_words(
    source: str,
    target: str,
    source_words: Sequence[int | None],
    target_words: Sequence[int | None],
    weights: Sequence[Sequence[float]],
) -> tuple[Link, ...]:
    """Return a link for each word of the target that attends to a source word, in the target's order.

    A target word is linked to the source word with the largest sum of weights, over all tokens of both words; between
    equal sums, to the first. Tokens outside all words, such as `<eos>`, do not count.

    Args:
        source: the source text.
        target: the translation.
        source_words: index of each source token's word, (S).
        target_words: index of each target token's word, (T).
        weights: attention of each target token to each source token, (T, S) or with more columns, which do not count.
    """
    sums: dict[int, dict[int, float]] = {}
    for target_word, row in zip(target_words, weights, strict=True):
        if target_word is not None:
            of_word = sums.setdefault(target_word, {})
            for source_word, weight in zip(source_words, row, strict=False):
                if source_word is not None:
                    of_word[source_word] = of_word.get(source_word, 0.0) + weight
    source_spans, target_spans = word_spans(source), word_spans(target)
    return tuple(
        Link(source_spans[max(of_word, key=of_word.__getitem__)], target_spans[word])
        for word, of_word in sorted(sums.items())
        if any(of_word.values())
    )


def _words_of_tokens(join: Callable[[Sequence[T]], str], tokens: Sequence[T]) -> Iterator[int | None]:
    """Yield the index of each token's word: the last word of the text up to this token, if the token adds to a word."""
    letters = 0
    for end in range(1, len(tokens) + 1):
        words = _WORD.findall(join(tokens[:end]))
        before, letters = letters, sum(map(len, words))
        yield len(words) - 1 if letters > before else None
