"""Texts as words: rules that separate punctuation, English contractions and French elisions, and rejoin them.

Most tokens have a space on either side. Some are written without a space before or after them:

- before them: closing punctuation (`.` `,` `)` …), and the endings of English contractions: `n't`, `'s`, `'re`, …;
- after them: opening punctuation (`(` `«` …), and elided French words: `l'`, `qu'`, …

Words are cut only where the left part is of the second kind or the right part is of the first kind, so the cut can be
undone without a record. If a text has a space between such tokens ("Qui est-ce ?", "l' animal"), the second token
begins with `▁`. Hence join_words(split_words(text)) equals every text whose white space is normal.

Straight double quotes, dashes and slashes are not cut off, because a separate token would not show whether it joins to
the word before it or to the word after it. A typographic apostrophe is treated like a plain apostrophe.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from glassformer.text.lookup import LookupTokenizer
from glassformer.text.normalisation import SPACE_MARK
from glassformer.text.vocabulary import UNK_ID

__all__ = ["CLOSING", "CONTRACTIONS", "ELISIONS", "OPENING", "WordTokenizer", "join_words", "split_words"]

OPENING = frozenset("([{«“„¿¡")
CLOSING = frozenset(".,!?;:…)]}»”")
ELISIONS = frozenset(
    f"{word}'" for word in ("c", "d", "j", "l", "m", "n", "s", "t", "qu", "jusqu", "lorsqu", "puisqu", "quoiqu")
)
CONTRACTIONS = ("n't", "'s", "'re", "'ve", "'ll", "'d", "'m", "'")
_LONGEST = max(map(len, (*ELISIONS, *CONTRACTIONS)))
"""Number of characters of the longest part that is cut from a word."""
LEAN_RIGHT = OPENING | ELISIONS
LEAN_LEFT = CLOSING | frozenset(CONTRACTIONS)


def split_words(text: str) -> list[str]:
    """Return the tokens of a text; only its white space is normalised.

    >>> split_words("The animal didn't cross.")
    ['The', 'animal', 'did', "n't", 'cross', '.']
    >>> split_words("L'animal n'a pas traversé.")
    ["L'", 'animal', "n'", 'a', 'pas', 'traversé', '.']
    """
    tokens: list[str] = []
    for word in text.replace(SPACE_MARK, " ").split():
        first, *rest = _cut(word)
        leans = bool(tokens) and _lean_together(tokens[-1], first)
        tokens += [SPACE_MARK + first if leans else first, *rest]
    return tokens


def join_words(tokens: Iterable[str]) -> str:
    """Return the text of these tokens, with no space where a token joins its neighbour.

    >>> join_words(["L'", "animal", "était", "là", "."])
    "L'animal était là."
    """
    return "".join(_spaced(tokens)).lstrip(" ")


def _spaced(tokens: Iterable[str]) -> Iterator[str]:
    left = ""
    for token in tokens:
        marked = token.replace(SPACE_MARK, " ")
        yield marked if marked.startswith(" ") or _lean_together(left, token) else " " + token
        left = token


def _lean_together(left: str, right: str) -> bool:
    return _leans_right(left) or _leans_left(right)


@lru_cache(maxsize=2**16)
def _leans_right(token: str) -> bool:
    return _plain(token.removeprefix(SPACE_MARK)) in LEAN_RIGHT


@lru_cache(maxsize=2**16)
def _leans_left(token: str) -> bool:
    return _plain(token) in LEAN_LEFT


def _plain(token: str) -> str:
    return _straight(token).lower()


def _straight(token: str) -> str:
    return token.replace("’", "'")


@lru_cache(maxsize=2**16)
def _cut(word: str) -> tuple[str, ...]:
    heads: list[str] = []
    tails: list[str] = []
    begin, end = 0, len(word)
    # Only the characters that can decide are looked at, so that a word of quotation marks takes linear time.
    while head := _head(word[begin : begin + _LONGEST + 1]):
        heads.append(head)
        begin += len(head)
    while tail := _tail(word[max(begin, end - _LONGEST - 1) : end]):
        tails.append(tail)
        end -= len(tail)
    return *heads, word[begin:end], *reversed(tails)


def _head(word: str) -> str:
    """Return the opening mark or elided word with which a longer word begins; "" if there is none."""
    end = 1 if word[0] in OPENING else _straight(word).find("'") + 1
    return word[:end] if end < len(word) and _plain(word[:end]) in LEAN_RIGHT else ""


def _tail(word: str) -> str:
    """Return the closing mark or contraction with which a longer word ends; "" if there is none."""
    if len(word) > 1 and word[-1] in CLOSING:
        return word[-1]
    if _plain(word) in ELISIONS:
        return ""
    endings = (word[-len(ending) :] for ending in CONTRACTIONS if len(word) > len(ending))
    return next((ending for ending in endings if _plain(ending) in CONTRACTIONS), "")


class WordTokenizer(LookupTokenizer):
    """A tokenizer whose tokens are words, numbered by a vocabulary. Letters keep their case.

    decode(encode(text)) == normalise(text, normalisation) when the vocabulary has all tokens of the text. An unknown
    token with a typographic apostrophe is looked up again with a plain apostrophe.
    """

    kind = "words"
    cut = staticmethod(split_words)
    join = staticmethod(join_words)

    def _id(self, token: str) -> int:
        id = self.vocabulary.id(token)
        return id if id != UNK_ID else self.vocabulary.id(_straight(token))
