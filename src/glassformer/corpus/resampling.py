"""Subword resampling: encode texts again in each epoch, so that the model sees different cuts of the same words."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.corpus.batching import IdArray
from glassformer.text.tokenizer import SubwordTokenizer, Tokenizer
from glassformer.text.vocabulary import UNK_ID

__all__ = ["Resampler"]


@dataclass(frozen=True, slots=True)
class Resampler:
    """A `Resample` function that encodes sources and targets again; only the encodings of subword tokenizers change."""

    source: Tokenizer
    target: Tokenizer
    amount: float
    """The value of `tokenizer.sampling`."""
    max_length: int
    """Maximum number of ids of a new encoding, including `<eos>`; a longer encoding is discarded."""

    def __call__(
        self, sources: Sequence[IdArray], targets: Sequence[IdArray], seed: int
    ) -> tuple[Sequence[IdArray], Sequence[IdArray]]:
        """Return new encodings of the sources and the targets."""
        return self._side(self.source, sources, seed), self._side(self.target, targets, seed + 1)

    def _side(self, tokenizer: Tokenizer, sentences: Sequence[IdArray], seed: int) -> Sequence[IdArray]:
        if not isinstance(tokenizer, SubwordTokenizer):
            return sentences
        texts = [tokenizer.decode(ids.tolist()) for ids in sentences]
        cuts = tokenizer.resampled(texts, self.amount, seed)
        return [self._chosen(ids, [*cut, tokenizer.eos_id]) for ids, cut in zip(sentences, cuts, strict=True)]

    def _chosen(self, ids: IdArray, cut: list[int]) -> IdArray:
        """Return the new encoding `cut`, or the old encoding `ids` if `cut` is too long or the text has unknown tokens.

        A text with unknown tokens cannot be encoded again: its ids do not show which characters are unknown.
        """
        usable = len(cut) <= self.max_length and not (ids == UNK_ID).any()
        return np.array(cut, dtype=np.int32) if usable else ids
