"""Links between words: from the attention of tokens to spans of characters in two texts.

A word is a run of characters without white space. Axes: S source tokens · T target tokens · U source words · W target
words.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from glassformer.text.normalisation import SPACE_MARK
from glassformer.text.reversal import ReversedTokenizer
from glassformer.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Link",
    "Span",
    "link_words",
    "membership",
    "overlap",
    "overlapping",
    "source_words",
    "target_words",
    "word_path",
    "word_spans",
]

T = TypeVar("T")

Span = tuple[int, int]
"""Begin and end, in characters: [begin, end)."""

SHARED = 0.8
"""Weight that is added to the total of each source word, so that a word with little attention does not win by that."""
LEAST = 0.03
"""Share that each link has without any attention."""
JUMP = 0.8
"""Exponent of jumps: a path that leaves the order of the source by n words is (1 + n)^0.8 times less probable."""

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


def overlap(one: Span, other: Span) -> bool:
    """Return whether two spans have a character in common.

    >>> overlap((0, 3), (2, 5)), overlap((0, 3), (3, 5))
    (True, False)
    """
    return one[0] < other[1] and other[0] < one[1]


def overlapping(spans: Sequence[Span], other: Span) -> Sequence[Span]:
    """Return which of some spans, in order and apart from each other, have a character in common with another.

    >>> overlapping([(0, 3), (4, 7), (8, 9)], (6, 9))
    [(4, 7), (8, 9)]
    """
    first = bisect_right(spans, other[0], key=lambda span: span[1])
    return spans[first : bisect_left(spans, other[1], key=lambda span: span[0])]


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
    if isinstance(tokenizer, ReversedTokenizer):
        return target_words(tokenizer.forward, ids[::-1])[::-1]
    return list(_words_of_tokens(tokenizer.decode, ids))


def link_words(
    source: str,
    target: str,
    source_words: Sequence[int | None],
    target_words: Sequence[int | None],
    weights: Sequence[Sequence[float]],
) -> tuple[Link, ...]:
    """Return links between the words of two texts, in the target's order.

    Each word of the target that attends to a source word has one link, by `word_path` over the sums of weights of all
    tokens of both words. Each source word that has no link then gets one in the same way, by the path of the source
    through the target. Tokens outside all words, such as `<eos>`, do not count.

    Args:
        source: the source text.
        target: the translation.
        source_words: index of each source token's word, (S).
        target_words: index of each target token's word, (T).
        weights: attention of each target token to each source token, (T, S) or with more columns, which do not count.
    """
    import numpy as np

    source_spans, target_spans = word_spans(source), word_spans(target)
    of_source = membership(source_words, len(source_spans))
    of_target = membership(target_words, len(target_spans))
    rows = np.array([row[: len(source_words)] for row in weights], np.float32).reshape(len(target_words), -1)
    sums = of_target.T @ rows @ of_source[: rows.shape[1]]
    if not sums.any():
        return ()
    links = {(place, word) for place, word in enumerate(word_path(sums)) if sums[place].any()}
    linked = {word for _, word in links}
    links |= {
        (place, word) for word, place in enumerate(word_path(sums.T)) if word not in linked and sums[:, word].any()
    }
    return tuple(Link(source_spans[word], target_spans[place]) for place, word in sorted(links))


def membership(words: Sequence[int | None], width: int) -> "NDArray[np.float32]":
    """Return for each token (row) and each of `width` words (column) 1 if the token belongs to the word, and else 0."""
    import numpy as np

    matrix = np.zeros((len(words), width), np.float32)
    for token, word in enumerate(words):
        if word is not None:
            matrix[token, word] = 1.0
    return matrix


def word_path(sums: "NDArray[np.float32]") -> list[int]:
    """Return the source word of each target word, given the weights of all links, (W, U), which are not empty.

    The words are the most probable path of a hidden Markov model (Vogel, Ney and Tillmann 1996). A source word emits a
    target word by the share of its attention that this word has, and the next word is probably the next source word. So
    a word is linked rightly even if it attends to another word, as long as its neighbours attend to theirs.
    """
    import numpy as np

    scores = np.log(sums / (sums.sum(0) + SHARED) + LEAST)
    places = np.arange(sums.shape[1])
    jumps = -JUMP * np.log1p(np.abs(places - places[:, None] - 1))  # from the row's word to the column's
    best, previous = scores[0], list[Any]()
    for row in scores[1:]:
        reached = best[:, None] + jumps
        previous.append(reached.argmax(0))
        best = reached.max(0) + row
    path = [int(best.argmax())]
    for words in reversed(previous):
        path.append(int(words[path[-1]]))
    return path[::-1]


def _words_of_tokens(join: Callable[[Sequence[T]], str], tokens: Sequence[T]) -> Iterator[int | None]:
    """Yield the index of each token's word: the last word of the text up to this token, if the token adds to a word."""
    letters = 0
    for end in range(1, len(tokens) + 1):
        words = _WORD.findall(join(tokens[:end]))
        before, letters = letters, sum(map(len, words))
        yield len(words) - 1 if letters > before else None
