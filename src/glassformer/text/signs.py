"""The parts of a text that a vocabulary has no sign for, such as emoji in a model of texts without emoji."""

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from unicodedata import category, combining, normalize

from glassformer.text.casing import folded
from glassformer.text.links import Span
from glassformer.text.normalisation import SPACE_MARK, plain
from glassformer.text.tokenizer import Tokenizer
from glassformer.text.vocabulary import SPECIALS
from glassformer.text.word_edges import is_apart

__all__ = ["Signs"]

_JOINER = "\u200d"
_EXTENDING = re.compile("[\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
"""Skin tones, and the letters of a flag's region."""
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zs", "Zl", "Zp", "Mn", "Mc", "Me"})
"""Unicode's categories of characters that cannot be seen alone."""
_MOST_MARKS = 30
"""Maximum length of a letter with its marks that is replaced by its base letter; see `normalisation`."""


class Signs:
    """Finds what a vocabulary has no sign for."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._lacks = lru_cache(maxsize=1 << 12)(self._is_lacking)

    @cached_property
    def known(self) -> frozenset[str]:
        """The characters in the entries of the vocabulary, and the space."""
        tokens = self._tokenizer.tokens(range(len(SPECIALS), len(self._tokenizer)))
        return frozenset(" ".join(tokens))

    def lacking(self, text: str) -> list[Span]:
        """Return the parts of a text of which no entry of the vocabulary knows a character, in order.

        A letter is known if the vocabulary has it as a capital or as a small letter.
        A part is one or more user-perceived characters, such as a flag or a letter with its marks. If it touches
        letters or digits of the same word, the whole word is returned.
        """
        if self.known.issuperset(text):
            return []
        found = list[Span]()
        for begin, end in _clusters(text):
            last = found[-1][1] if found else -1
            if end <= last or not self._lacks(text[begin:end]):
                continue
            begin, end = _begin_of_word(text, begin), _end_of_word(text, end)
            if begin <= last:
                begin, _ = found.pop()
            found.append((begin, end))
        return found

    def based(self, word: str) -> str:
        """Return a word in which letters without a sign are replaced by their base letters, if these have signs.

        >>> from glassformer.text.characters import CharacterTokenizer
        >>> Signs(CharacterTokenizer.train(["cafe"], 100)).based("caf\u00e9")
        'cafe'
        """
        if self.known.issuperset(word):
            return word
        parts = (word[begin:end] for begin, end in _clusters(word))
        return "".join(self._base(part) if self._lacks(part) else part for part in parts)

    def _base(self, letter: str) -> str:
        """Return the base of a letter, such as e for é and ss for ß; the letter itself if the base has no sign."""
        if len(letter) > _MOST_MARKS:
            return letter
        decomposed = normalize("NFKD", letter)
        bare = "".join(character for character in decomposed if not combining(character))
        forms = (bare, folded(bare).text, bare.upper())
        return next((form for form in forms if form and self.known.issuperset(form)), letter)

    def _is_lacking(self, cluster: str) -> bool:
        """Return whether a cluster can be seen, and the vocabulary knows no character of it, in either case."""
        visible = "".join(character for character in plain(cluster) if category(character) not in _INVISIBLE)
        forms = visible + visible.lower() + visible.upper()
        return bool(visible) and self.known.isdisjoint(forms) and self._is_unknown(cluster)

    def _is_unknown(self, cluster: str) -> bool:
        """Return whether a tokenizer, which may normalise a cluster or spell it in bytes, reads nothing else of it."""
        ids = self._tokenizer.encode(cluster)
        rest = self._tokenizer.tokens([id for id in ids if id != self._tokenizer.unk_id])
        return len(rest) < len(ids) and all(token == SPACE_MARK for token in rest)


def _clusters(text: str) -> Iterator[Span]:
    """Yield the span of each character with the marks and the joined characters after it."""
    begin = 0
    while begin < len(text):
        end = begin + 1
        while end < len(text) and (
            category(text[end]).startswith("M") or _EXTENDING.match(text, end) or _JOINER in text[end - 1 : end + 1]
        ):
            end += 1
        yield begin, end
        begin = end


def _begin_of_word(text: str, place: int) -> int:
    while not is_apart(text, place, place):
        place -= 1
    return place


def _end_of_word(text: str, place: int) -> int:
    while not is_apart(text, place, place):
        place += 1
    return place
