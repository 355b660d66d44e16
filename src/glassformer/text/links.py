"""Links between the words of two texts, computed from the attention between their tokens.

A word is a run of characters without white space. In scripts without spaces between words, a word is a letter with its
marks, or a run of katakana. Punctuation belongs to the word that it touches.

Axes: S source tokens · T target tokens · U source words · W target words.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from glassformer.text.normalisation import SPACE_MARK, normalise
from glassformer.text.reversal import ReversedTokenizer
from glassformer.text.tokenizer import Tokenizer
from glassformer.text.word_edges import UNSPACED

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
"""The characters [begin, end) of a text."""

SHARED = 0.8
"""Weight that is added to each source word's total attention, so that a word with little attention does not gain a
large share by chance."""
LEAST = 0.03
"""Share that is added to every possible link, so that even a link without any attention is possible."""
JUMP = 0.8
"""Exponent of the penalty for jumps: a jump n words away from the next source word is (1 + n)^0.8 times less
probable."""

_OPENING = re.escape("([{«“‘¿¡⟦（［｛〔【〈《「『｟")
_CLOSING = re.escape(""".,:;!?)]}»”’"'…⟧。，、．：；！？）］｝〕】〉》」』｠～·""")
_KATAKANA = "\u30a0-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_BEFORE = "\u0e40-\u0e44\u0ec0-\u0ec4"
"""Vowels that are written before their consonant."""
_AFTER = (
    "\u0e2f-\u0e3a\u0e45-\u0e4e\u0eaf-\u0ebd\u0ec6-\u0ece\u102b-\u103e\u1056-\u1059\u17b4-\u17d3\u17dd\u3005\u3041\u3043\u3045"
    "\u3047\u3049\u3063\u3083\u3085\u3087\u308e\u3099-\u309c\u30fc\ufe00-\ufe0f\U000e0100-\U000e01ef"
)
"""Vowels, marks, small kana and signs that are written after a letter."""


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
    """Return the spans that have a character in common with `other`; `spans` are in order and do not overlap.

    >>> overlapping([(0, 3), (4, 7), (8, 9)], (6, 9))
    [(4, 7), (8, 9)]
    """
    first = bisect_right(spans, other[0], key=lambda span: span[1])
    return spans[first : bisect_left(spans, other[1], key=lambda span: span[0])]


def word_spans(text: str) -> list[Span]:
    """Return the span of each word of a text.

    >>> word_spans("the  cat."), word_spans("\u732b\uff0c3.5\u5206")
    ([(0, 3), (5, 9)], [(0, 2), (2, 5), (5, 6)])
    """
    return [word.span() for word in _word().finditer(text)]


@cache  # compiled for the first alignment: a command that needs none starts 5 ms sooner
def _word() -> re.Pattern[str]:
    """Return the pattern of a word."""
    return re.compile(
        rf"[{_OPENING}]{{0,3}}+(?:[{_KATAKANA}]++|(?:[{_BEFORE}](?=[{UNSPACED}]))?+[{UNSPACED}]"
        rf"(?:[\u1039\u17d2][{UNSPACED}]|[{_AFTER}])*+)[{_CLOSING}]*+"
        rf"|(?:[^\s{SPACE_MARK}{_OPENING}{UNSPACED}]++|[{_OPENING}](?![{_OPENING}]{{0,2}}+[{UNSPACED}]))++"
    )


def source_words(tokenizer: Tokenizer, text: str) -> list[range]:
    """Return, for each source token except `<eos>`, the indices of the words of the text that contain its letters.

    The words are those of the text before its normalisation. The indices are empty for a token outside all words. They
    are empty for all tokens if an imported model's normalisation joins or splits words.
    """
    tokens = tokenizer.split(text)
    before = len(tokenizer.encode(text)) - len(tokens)  # 1 if the tokenizer puts `<bos>` first
    read, words = tokenizer.join(tokens), _words(text)
    letters = [_letters(normalise(word, tokenizer.normalisation or "spaces")) for word in words]
    if "".join(letters) != _letters(read):  # an imported model's own normalisation, or letters as bytes
        letters = list(map(_letters, _words(read)))
    found = _words_of_tokens(tokenizer.join, tokens, letters)
    return [*[range(0)] * before, *(found if len(letters) == len(words) else [range(0)] * len(tokens))]


def target_words(tokenizer: Tokenizer, ids: Sequence[int]) -> list[range]:
    """Return, for each target token, the indices of the words of the decoded text that contain its letters."""
    if isinstance(tokenizer, ReversedTokenizer):
        return target_words(tokenizer.forward, ids[::-1])[::-1]
    return _words_of_tokens(tokenizer.decode, ids, list(map(_letters, _words(tokenizer.decode(ids)))))


def link_words(
    source: str,
    target: str,
    source_words: Sequence[range],
    target_words: Sequence[range],
    weights: Sequence[Sequence[float]],
) -> tuple[Link, ...]:
    """Return links between the words of two texts, in the order of the target.

    Each target word that attends to a source word gets one link: `word_path` chooses it from the attention weights,
    summed over all tokens of both words. Each source word without a link then gets one from the path in the opposite
    direction, which assigns a target word to each source word. Tokens outside all words, such as `<eos>`, do not count.
    In scripts without spaces, several words may consist of the same tokens; such words are linked in order, the first
    to the first.

    Args:
        source: the source text.
        target: the translation.
        source_words: the indices of each source token's words, (S).
        target_words: the indices of each target token's words, (T).
        weights: the attention of each target token to each source token, (T, S); further columns are ignored.
    """
    import numpy as np

    source_spans, target_spans = word_spans(source), word_spans(target)
    of_source, sources = _distinct(membership(source_words, len(source_spans)))
    of_target, targets = _distinct(membership(target_words, len(target_spans)))
    rows = np.array([row[: len(source_words)] for row in weights], np.float32).reshape(len(target_words), -1)
    # all numbers are finite, but BLAS may compute with garbage in unused vector lanes
    with np.errstate(invalid="ignore"):
        sums = of_target.T @ rows @ of_source[: rows.shape[1]]
    if not sums.any():
        return ()
    links = {(place, word) for place, word in enumerate(word_path(sums)) if sums[place].any()}
    linked = {word for _, word in links}
    links |= {
        (place, word) for word, place in enumerate(word_path(sums.T)) if word not in linked and sums[:, word].any()
    }
    pairs = sorted(one for place, word in links for one in _in_pairs(targets[place], sources[word]))
    return tuple(Link(source_spans[word], target_spans[place]) for place, word in pairs)


def membership(words: Sequence[range], width: int) -> "NDArray[np.float32]":
    """Return a matrix with 1 where the token (row) has letters of the word (column), and 0 elsewhere.

    `words` gives the indices of each token's words, and `width` is the number of words.
    """
    import numpy as np

    matrix = np.zeros((len(words), width), np.float32)
    for token, some in enumerate(words):
        matrix[token, some.start : some.stop] = 1.0
    return matrix


def _distinct(words: "NDArray[np.float32]") -> tuple["NDArray[np.float32]", list[range]]:
    """Return the first column of each run of equal columns, and the indices of the columns in each run."""
    import numpy as np

    width = words.shape[1]
    differ = [True, *(words[:, 1:] != words[:, :-1]).any(0).tolist()][:width]
    first = [place for place, begins in enumerate(differ) if begins]
    return words[:, np.array(first, int)], [range(*ends) for ends in pairwise([*first, width])]


def _in_pairs(some: Sequence[int], others: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield pairs of the two sequences' items, in order; the last item of the shorter sequence is repeated."""
    for one, other in zip_longest(some, others):
        yield some[-1] if one is None else one, others[-1] if other is None else other


def word_path(sums: "NDArray[np.float32]") -> list[int]:
    """Return the index of a source word for each target word, given the weights of all links, (W, U), W > 0.

    The indices are the most probable path of a hidden Markov model (Vogel, Ney and Tillmann 1996). A source word emits
    a target word with a probability that grows with this target word's share of the attention to the source word. The
    path most probably continues with the next source word. A target word that attends to a wrong word is thus still
    linked correctly if its neighbours attend to the right words.
    """
    import numpy as np

    scores = np.log(sums / (sums.sum(0) + SHARED) + LEAST)
    places = np.arange(sums.shape[1])
    # The log-probability of each jump from the source word of the row to the source word of the column.
    jumps = -JUMP * np.log1p(np.abs(places - places[:, None] - 1))
    best, previous = scores[0], list[Any]()
    for row in scores[1:]:
        reached = best[:, None] + jumps
        previous.append(reached.argmax(0))
        best = reached.max(0) + row
    path = [int(best.argmax())]
    for words in reversed(previous):
        path.append(int(words[path[-1]]))
    return path[::-1]


def _words_of_tokens(join: Callable[[Sequence[T]], str], tokens: Sequence[T], words: Sequence[str]) -> list[range]:
    """Return, for each token, the indices of the words that contain its letters; a word is given by its letters."""
    ends = list(accumulate(map(len, words)))
    # The bytes of an incomplete letter may be counted as several letters.
    counts = (len(_letters(join(tokens[:end]))) for end in range(len(tokens), 0, -1))
    letters = [*accumulate(counts, min), 0][::-1]
    return [
        range(bisect_right(ends, first), bisect_left(ends, last) + 1) if first < last else range(0)
        for first, last in pairwise(letters)
    ]


def _words(text: str) -> list[str]:
    return [text[begin:end] for begin, end in word_spans(text)]


def _letters(text: str) -> str:
    """Return the characters of a text, without white space and zero-width spaces."""
    return "".join(text.replace(SPACE_MARK, " ").replace("\u200b", " ").split())
