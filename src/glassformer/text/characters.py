"""Texts as characters: each token is a code point; a space becomes the token "▁"."""

from collections.abc import Iterable

from glassformer.text.lookup import LookupTokenizer
from glassformer.text.normalisation import SPACE_MARK

__all__ = ["CharacterTokenizer"]


class CharacterTokenizer(LookupTokenizer):
    """Code points, numbered by a vocabulary.

    join(split(text)) == normalise(text, normalisation) for every text.
    """

    kind = "characters"

    @staticmethod
    def cut(text: str) -> list[str]:
        """Return the code points of a normalised text, with "▁" for a space."""
        return list(text.replace(" ", SPACE_MARK))

    @staticmethod
    def join(tokens: Iterable[str]) -> str:
        """Return the text of these characters."""
        return "".join(tokens).replace(SPACE_MARK, " ")
