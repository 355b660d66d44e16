"""Vocabularies: tokens and their ids. The first four ids are the same in every vocabulary."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from glassformer.errors import VocabularyError, quoted

__all__ = ["BOS_ID", "EOS_ID", "PAD_ID", "SPECIALS", "UNK_ID", "Vocabulary", "check_ids"]

SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")
PAD_ID, BOS_ID, EOS_ID, UNK_ID = range(4)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Tokens and their ids: the id of a token is its index in `tokens`.

    Raises:
        VocabularyError: `tokens` does not begin with `SPECIALS`, contains a token twice, or contains a token with white
            space or half a surrogate pair.
    """

    tokens: tuple[str, ...]
    """All tokens; the four special tokens come first."""
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.tokens[:4] != SPECIALS:
            raise VocabularyError(
                f"a vocabulary begins with {SPECIALS}, got {quoted(self.tokens[:4])}; put the special tokens first"
            )
        ids = {token: id for id, token in enumerate(self.tokens)}
        if len(ids) < len(self.tokens):
            twice = next(token for token, count in Counter(self.tokens).items() if count > 1)
            raise VocabularyError(
                f"a vocabulary holds each token once, got {quoted(twice)} more than once; remove the repetition"
            )
        _check_text("".join(self.tokens))
        object.__setattr__(self, "_ids", ids)

    @classmethod
    def build(
        cls, sentences: Iterable[Iterable[str]], *, max_size: int | None = None, min_count: int = 1
    ) -> "Vocabulary":
        """Return the vocabulary of the most frequent tokens; equally frequent tokens are in the order of code points.

        Args:
            sentences: the tokens of each sentence; tokens that look like special tokens are skipped.
            max_size: maximum number of tokens to keep, including the four special tokens.
            min_count: minimum number of occurrences of each token that is kept.
        """
        counts = Counter(token for sentence in sentences for token in sentence)
        frequent = (token for token, count in counts.items() if count >= min_count and token not in SPECIALS)
        ranked = sorted(frequent, key=lambda token: (-counts[token], token))
        return cls((*SPECIALS, *ranked)[:max_size])

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._ids

    def id(self, token: str) -> int:
        """Return the token's id, or the id of `<unk>` for a token outside the vocabulary."""
        return self._ids.get(token, UNK_ID)

    def token(self, id: int) -> str:
        """Return the token with this id.

        Raises:
            VocabularyError: the id is outside the vocabulary.
        """
        check_ids([id], len(self))
        return self.tokens[id]


def _check_text(tokens: str) -> None:
    """Raise VocabularyError for half a surrogate pair, which cannot be printed, or for white space in a token."""
    try:
        tokens.encode()
    except UnicodeEncodeError as error:
        raise VocabularyError("a token holds half a surrogate pair; decode its text as UTF-8") from error
    if tokens.split() != [tokens]:
        raise VocabularyError("a token holds white space; split the text into tokens first")


def check_ids(ids: Iterable[int], size: int) -> None:
    """Raise VocabularyError if an id is outside a vocabulary of `size` tokens."""
    wrong = next((id for id in ids if not 0 <= id < size), None)
    if wrong is not None:
        raise VocabularyError(
            f"token id {wrong} is not in a vocabulary of {size} tokens, ids 0 to {size - 1}: "
            "use the ids of this vocabulary's own tokenizer"
        )
