"""The Transformer as a `Step` over candidates: each sentence has its own candidate tokens, numbered from 0.

To the searches, these numbers are a small vocabulary, so the searches need not know which tokens are candidates. A
sentence's log probabilities do not depend on the other sentences of the batch.

Axes: B sentences · R rows (hypotheses) · C candidates of a sentence, padded · U candidates of all sentences ·
V vocabulary.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.decoding.engine import Ids, Job
from glassformer.decoding.hypothesis import Hypothesis
from glassformer.model.cache import Cache
from glassformer.model.config import ModelConfig
from glassformer.model.transformer import Transformer

__all__ = ["Numbering", "ShortlistState", "ShortlistStep"]


class Numbering:
    """A sentence's candidates, numbered. `<pad>`, `<bos>` and `<eos>` come first, as numbers 0, 1 and 2."""

    def __init__(self, config: ModelConfig, job: Job) -> None:
        specials = (config.pad_id, config.bos_id, config.eos_id)
        others = job.candidates
        for special in specials:
            place = bisect_left(others, special)
            if others[place : place + 1] == (special,):
                others = others[:place] + others[place + 1 :]
        self.ids: Ids = (*specials, *others)
        """The token id that each number stands for."""

    def hypothesis(self, found: Hypothesis) -> Hypothesis:
        """Return the hypothesis with token ids in place of numbers."""
        return replace(found, tokens=tuple(self.ids[number] for number in found.tokens))


@dataclass(frozen=True, slots=True)
class ShortlistState:
    """The model's cache, and each sentence's candidates."""

    cache: Cache
    ids: Int[Tensor, "B C"]
    """The token id that each number stands for; unused entries hold `<pad>`."""
    used: Bool[Tensor, "B C"]
    """Which entries of `ids` are candidates; all other entries are padding."""
    columns: Int[Tensor, "B C"]
    """The column of `product`'s result that holds the logit of each candidate."""
    product: Callable[[Float[Tensor, "R D"]], Float[Tensor, "R U"]]
    """The output layer, limited to the candidates of all sentences. Candidates of sentences that have left the batch
    may still be included."""


class ShortlistStep:
    """A batch of sources to be decoded step by step; its tokens are numbers of candidates, not token ids."""

    def __init__(self, model: Transformer, source: Int[Tensor, "B S"], candidates: Sequence[Ids]) -> None:
        config = model.config
        self._model, self._source, self._candidates = model, source, candidates
        self.vocab_size, self.device = config.target_vocab_size, source.device
        first = candidates[0]  # special tokens have the same numbers in every sentence
        self.pad_id, self.bos_id, self.eos_id = map(first.index, (config.pad_id, config.bos_id, config.eos_id))

    def start(self) -> ShortlistState:
        """Return the state after encoding the sources."""
        most, pad_id = max(map(len, self._candidates)), self._model.config.pad_id
        ids = [[*each, *[pad_id] * (most - len(each))] for each in self._candidates]
        sizes = torch.tensor([len(each) for each in self._candidates], device=self.device)
        used = torch.arange(most, device=self.device) < sizes[:, None]
        return self._state(self._model.start(self._source), torch.tensor(ids, device=self.device), used)

    def advance(self, tokens: Int[Tensor, "R"], state: ShortlistState) -> tuple[Float[Tensor, "R C"], ShortlistState]:
        """Return the log probabilities of the candidates for each row's next token, and the state after `tokens`."""
        B, C = state.ids.shape
        ids = state.ids.gather(1, tokens.view(B, -1)).flatten()
        output, cache = self._model.advance_output(ids, state.cache)
        logits = state.product(output)  # (R, D) -> (R, U)
        logits = logits.view(B, -1, logits.shape[-1])
        logits = logits.gather(2, state.columns[:, None].expand(-1, logits.shape[1], -1))  # (B, N, U) -> (B, N, C)
        log_probs = logits.masked_fill_(~state.used[:, None], -torch.inf).log_softmax(-1)
        return log_probs.view(-1, C), replace(state, cache=cache)

    def select(self, state: ShortlistState, rows: Int[Tensor, "R2"], sentences: Int[Tensor, "B2"]) -> ShortlistState:
        """Return the state of these rows and sentences."""
        cache = state.cache.select(rows, sentences)
        if len(sentences) == len(state.ids):  # `select` never reorders sentences, so all of them stay as they are
            return replace(state, cache=cache)
        ids, used, columns = (field[sentences] for field in (state.ids, state.used, state.columns))
        return ShortlistState(cache, ids, used, columns, state.product)

    def join(self, state: ShortlistState, newcomers: ShortlistState) -> ShortlistState:
        """Return the state with new sentences appended to the sentences of `state`."""
        most = max(state.ids.shape[1], newcomers.ids.shape[1])
        both = (state, newcomers)
        ids = [F.pad(one.ids, (0, most - one.ids.shape[1]), value=self._model.config.pad_id) for one in both]
        used = [F.pad(one.used, (0, most - one.used.shape[1])) for one in both]
        return self._state(state.cache.join(newcomers.cache), torch.cat(ids), torch.cat(used))

    def _state(self, cache: Cache, ids: Int[Tensor, "B C"], used: Bool[Tensor, "B C"]) -> ShortlistState:
        """Return the state of sentences with these candidates; logits are computed for all sentences' candidates."""
        chosen = torch.zeros(self.vocab_size, dtype=torch.bool, device=self.device)
        chosen[ids] = True
        union = chosen.nonzero().squeeze(1)
        columns = (chosen.cumsum(0) - 1)[ids]
        return ShortlistState(cache, ids, used, columns, self._product(union))

    def _product(self, union: Int[Tensor, "U"]) -> Callable[[Tensor], Tensor]:
        model, product = self._model, self._model.output.of_columns(union)
        # whoever records or replaces the logits gets the logits of the whole vocabulary, as without a shortlist
        return lambda x: model.logits(x)[..., union] if model.tap.heard() else product(x)
