"""Texts cut into subwords anew each time they are trained on, so that a model meets words in several spellings."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.text.batching import Ids
from glassformer.text.subwords import SentencePieceTokenizer
from glassformer.text.tokenizer import Tokenizer
from glassformer.text.vocabulary import EOS_ID, UNK_ID

__all__ = ["Resampler"]


@dataclass(frozen=True, slots=True)
class Resampler:
    """Cuts the sources and targets of a batch anew; sides without subwords stay as they are. See `Resample`."""

    source: Tokenizer
    target: Tokenizer
    amount: float
    """As `tokenizer.sampling`."""
    max_length: int
    """A cut that is longer, in ids, `<eos>` included, is not taken."""

    def __call__(
        self, sources: Sequence[Ids], targets: Sequence[Ids], seed: int
    ) -> tuple[Sequence[Ids], Sequence[Ids]]:
        """Return both sides with their texts cut anew."""
        return self._side(self.source, sources, seed), self._side(self.target, targets, seed + 1)

    def _side(self, tokenizer: Tokenizer, sentences: Sequence[Ids], seed: int) -> Sequence[Ids]:
        if not isinstance(tokenizer, SentencePieceTokenizer):
            return sentences
        texts = [tokenizer.decode(ids.tolist()) for ids in sentences]
        cuts = tokenizer.resampled(texts, self.amount, seed)
        return [self._chosen(ids, cut) for ids, cut in zip(sentences, cuts, strict=True)]

    def _chosen(self, ids: Ids, cut: list[int]) -> Ids:
        """Return the new cut, but not where the text has an unknown character, which its ids cannot spell."""
        usable = len(cut) < self.max_length and not (ids == UNK_ID).any()
        return np.array([*cut, EOS_ID], dtype=np.int32) if usable else ids
