"""What the word and the character tokenizer share: tokens that are cut by a rule and looked up in a vocabulary."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from glassformer.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Vocabulary, check_ids

__all__ = ["LookupTokenizer"]


class LookupTokenizer(ABC):
    """A rule that cuts texts into tokens, and the vocabulary that numbers them."""

    kind: Literal["words", "characters"]
    suffix = ".json"
    pad_id, bos_id, eos_id, unk_id = PAD_ID, BOS_ID, EOS_ID, UNK_ID

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    @staticmethod
    @abstractmethod
    def split(text: str) -> list[str]:
        """Return the text's tokens, those that the vocabulary does not have too."""

    @staticmethod
    @abstractmethod
    def join(tokens: Iterable[str]) -> str:
        """Return the text of these tokens: the inverse of `split`."""

    @classmethod
    def train(cls, lines: Iterable[str], vocab_size: int) -> "LookupTokenizer":
        """Return a tokenizer whose vocabulary is the most frequent tokens of `lines`, the special ones included."""
        return cls(Vocabulary.build(map(cls.split, lines), max_size=vocab_size))

    def __len__(self) -> int:
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        """Return the ids of the text's tokens, without `<bos>` and `<eos>`; unknown tokens are `<unk>`."""
        # A text that holds the letters "<eos>" must not end the sentence: special ids are below that of <unk>.
        return [max(self._id(token), UNK_ID) for token in self.split(text)]

    def _id(self, token: str) -> int:
        return self.vocabulary.id(token)

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return what `encode` returns for each text."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of these ids; special ids are skipped, an unknown token reads "<unk>".

        Raises:
            VocabularyError: an id is not in the vocabulary.
        """
        check_ids(ids, len(self))
        return self.join(self.vocabulary.tokens[id] for id in ids if id >= UNK_ID)

    def decode_all(self, sentences: Sequence[Sequence[int]]) -> list[str]:
        """Return what `decode` returns for the ids of each sentence."""
        return [self.decode(ids) for ids in sentences]

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the token of each id, special ones as "<eos>" and so on.

        Raises:
            VocabularyError: an id is not in the vocabulary.
        """
        check_ids(ids, len(self))
        return [self.vocabulary.tokens[id] for id in ids]

    def save(self, path: Path) -> None:
        """Write the tokenizer, which is its vocabulary, as JSON."""
        self.vocabulary.save(path)

    @classmethod
    def load(cls, path: Path) -> "LookupTokenizer":
        """Return the tokenizer that `save` wrote.

        Raises:
            CheckpointError: the file is missing or damaged, or written by a newer glassformer.
            VocabularyError: its tokens make no vocabulary.
        """
        return cls(Vocabulary.load(path))
