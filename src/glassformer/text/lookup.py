"""The base class of the word and character tokenizers."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from glassformer.errors import CheckpointError, VocabularyError
from glassformer.system.files import read_json, write_json
from glassformer.text.normalisation import Normalisation, normalisation_of, normalise
from glassformer.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Vocabulary, check_ids

__all__ = ["LookupTokenizer"]

LOOKUP_SUFFIX = ".json"


class LookupTokenizer(ABC):
    """A tokenizer that cuts texts into tokens by a rule, and looks up their ids in a vocabulary."""

    kind: str
    pad_id, bos_id, unk_id = PAD_ID, BOS_ID, UNK_ID

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        normalisation: Normalisation | None = None,
        with_bos: bool = False,
        with_eos: bool = True,
    ) -> None:
        self.vocabulary = vocabulary
        self.normalisation = normalisation or normalisation_of(vocabulary.tokens)
        """How texts are normalised; by default, as the vocabulary shows."""
        self.with_bos = with_bos
        """Whether each text begins with `<bos>`, as the sources of many imported models do."""
        self.eos_id = EOS_ID if with_eos else PAD_ID
        """The id that ends each text; if texts have no end, the id of `<pad>`, to which no position attends."""

    @staticmethod
    @abstractmethod
    def cut(text: str) -> list[str]:
        """Return the tokens of a normalised text, including tokens outside the vocabulary."""

    @staticmethod
    @abstractmethod
    def join(tokens: Iterable[str]) -> str:
        """Return the text of these tokens: the inverse of `cut`."""

    @classmethod
    def train(cls, lines: Iterable[str], vocab_size: int) -> "LookupTokenizer":
        """Return a tokenizer with the most frequent tokens of `lines`.

        The vocabulary has at most `vocab_size` tokens, including the special tokens.
        """
        cuts = (cls.cut(normalise(line, "plain")) for line in lines)
        return cls(Vocabulary.build(cuts, max_size=vocab_size), normalisation="plain")

    def __len__(self) -> int:
        return len(self.vocabulary)

    def split(self, text: str) -> list[str]:
        """Return the text's tokens, including tokens outside the vocabulary."""
        return self.cut(normalise(text, self.normalisation))

    def encode(self, text: str) -> list[int]:
        """Return the ids of the text's tokens, without `<eos>`; unknown tokens are `<unk>`."""
        # The letters "<eos>" in a text must not become the special token, so they are encoded as <unk>.
        ids = [max(self._id(token), UNK_ID) for token in self.split(text)]
        return [BOS_ID, *ids] if self.with_bos else ids

    def _id(self, token: str) -> int:
        return self.vocabulary.id(token)

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return what `encode` returns for each text."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of these ids; special ids are skipped, except that unknown tokens appear as "<unk>".

        Raises:
            VocabularyError: an id is not in the vocabulary.
        """
        check_ids(ids, len(self))
        return self.join(self.vocabulary.tokens[id] for id in ids if id >= UNK_ID)

    def decode_all(self, sentences: Sequence[Sequence[int]]) -> list[str]:
        """Return what `decode` returns for the ids of each sentence."""
        return [self.decode(ids) for ids in sentences]

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the token of each id; special tokens appear as "<eos>" and so on.

        Raises:
            VocabularyError: an id is not in the vocabulary.
        """
        check_ids(ids, len(self))
        return [self.vocabulary.tokens[id] for id in ids]

    def save(self, stem: Path) -> None:
        """Write the tokenizer to `stem`.json."""
        write_json(stem.with_suffix(LOOKUP_SUFFIX), self._data())

    @classmethod
    def load(cls, stem: Path, normalisation: Normalisation | None = None) -> "LookupTokenizer":
        """Return the tokenizer that `save` wrote under this stem, with this normalisation.

        Raises:
            CheckpointError: the file is missing or damaged, or written by a newer glassformer.
            VocabularyError: the tokens in the file are not a valid vocabulary.
        """
        path = stem.with_suffix(LOOKUP_SUFFIX)
        content = read_json(path)
        tokens = content.get("tokens")
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise CheckpointError(f"{path}: expected a list of strings under 'tokens', as in a vocabulary file")
        ends = {"with_bos": content.get("with_bos", False) is True, "with_eos": content.get("with_eos", True) is True}
        try:
            return cls(Vocabulary(tuple(tokens)), normalisation=normalisation, **ends)
        except VocabularyError as error:
            raise VocabularyError(f"{path}: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """Return the tokenizer as plain data: "kind", the list "tokens", indexed by id, and other fields.

        "with_bos" is included only if it is True, "with_eos" only if it is False, and "normalisation" only if it is not
        "plain".
        """
        normalisation = {} if self.normalisation == "plain" else {"normalisation": self.normalisation}
        return {"kind": self.kind, **normalisation, **self._data()}

    def _data(self) -> dict[str, Any]:
        begins = {"with_bos": True} if self.with_bos else {}
        ends = {} if self.eos_id == EOS_ID else {"with_eos": False}
        return {"tokens": list(self.vocabulary.tokens), **begins, **ends}
