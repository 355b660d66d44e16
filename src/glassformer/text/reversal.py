"""A tokenizer for models that write from right to left: the ids of another tokenizer, last token first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glassformer.errors import VocabularyError

if TYPE_CHECKING:
    from glassformer.text.normalisation import Normalisation
    from glassformer.text.tokenizer import SubwordTokenizer, Tokenizer

__all__ = ["ReversedSubwordTokenizer", "ReversedTokenizer", "forward_of", "from_right_to_left"]


@dataclass(frozen=True, slots=True)
class ReversedTokenizer:
    """The tokens of another tokenizer, from the last to the first: texts themselves keep their order.

    A model with these target ids writes from right to left. `encode` and `decode` reverse the ids, so that the texts
    that they read and return have the normal order. Not in the paper: Liu et al. 2016, "Agreement on
    target-bidirectional neural machine translation".
    """

    forward: "Tokenizer"
    """The tokenizer of the normal order, which a run stores."""

    @property
    def kind(self) -> str:
        """How texts are cut: a key of `TOKENIZER_KINDS`."""
        return self.forward.kind

    @property
    def normalisation(self) -> "Normalisation | None":
        """How texts are normalised; None if the kind has a normalisation of its own."""
        return self.forward.normalisation

    @property
    def pad_id(self) -> int:
        """The id of `<pad>`."""
        return self.forward.pad_id

    @property
    def bos_id(self) -> int:
        """The id of `<bos>`, which comes before the last token of the text, where the model begins to write."""
        return self.forward.bos_id

    @property
    def eos_id(self) -> int:
        """The id of `<eos>`, which the model writes after the first token of the text."""
        return self.forward.eos_id

    @property
    def unk_id(self) -> int:
        """The id of `<unk>`."""
        return self.forward.unk_id

    def __len__(self) -> int:
        return len(self.forward)

    def encode(self, text: str) -> list[int]:
        """Return the ids of the text's tokens, the last token first, without `<bos>` and `<eos>`."""
        return self.forward.encode(text)[::-1]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return what `encode` returns for each text."""
        return [ids[::-1] for ids in self.forward.encode_all(texts)]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of these ids; the first id is the text's last token."""
        return self.forward.decode(ids[::-1])

    def decode_all(self, sentences: Sequence[Sequence[int]]) -> list[str]:
        """Return what `decode` returns for the ids of each sentence."""
        return self.forward.decode_all([ids[::-1] for ids in sentences])

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the token of each id in a readable form, in the order of the ids."""
        return self.forward.tokens(ids)

    def split(self, text: str) -> list[str]:
        """Return the text's tokens, the last token first."""
        return self.forward.split(text)[::-1]

    def join(self, tokens: Iterable[str]) -> str:
        """Return the text of these tokens, which begin with the text's last token."""
        return self.forward.join(list(tokens)[::-1])

    def save(self, stem: Path) -> None:
        """Write the tokenizer of the normal order; the run's setting `data.reverse_target` records the reversal."""
        self.forward.save(stem)

    def to_dict(self) -> dict[str, Any]:
        """Raise an error: the explorer's page shows outputs in the order in which they are written.

        Raises:
            VocabularyError: always.
        """
        raise VocabularyError(
            "data.reverse_target = true: the explorer's page shows only runs that write from left to right; choose a "
            "run without data.reverse_target"
        )


@dataclass(frozen=True, slots=True)
class ReversedSubwordTokenizer(ReversedTokenizer):
    """A reversed tokenizer that can cut the same text in several ways."""

    forward: "SubwordTokenizer"

    def resampled(self, texts: Sequence[str], amount: float, seed: int) -> list[list[int]]:
        """Return the ids of the texts, cut at random, the last token first."""
        return [ids[::-1] for ids in self.forward.resampled(texts, amount, seed)]


def from_right_to_left(tokenizer: "Tokenizer") -> "Tokenizer":
    """Return the reversed form of a target tokenizer, for a model with the setting `data.reverse_target`."""
    from glassformer.text.tokenizer import SubwordTokenizer

    if isinstance(tokenizer, SubwordTokenizer):
        return ReversedSubwordTokenizer(tokenizer)
    return ReversedTokenizer(tokenizer)


def forward_of(tokenizer: "Tokenizer") -> "Tokenizer":
    """Return the tokenizer of the normal order, which may be this tokenizer itself."""
    return tokenizer.forward if isinstance(tokenizer, ReversedTokenizer) else tokenizer
