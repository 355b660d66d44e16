"""The Transformer as a `Step`, and the log probabilities of given targets.

Axes: B sentences · R rows (hypotheses) · T target positions · V vocabulary.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.model.transformer import Transformer

__all__ = ["TransformerStep", "padded", "target_log_probs"]


def padded(model: Transformer, rows: Sequence[Sequence[int]], extra: int = 0) -> Int[Tensor, "B T"]:
    """Return the rows of ids as a tensor on the model's device, padded to the longest row plus `extra` positions."""
    longest = max(map(len, rows)) + extra
    ids = [[*row, *[model.config.pad_id] * (longest - len(row))] for row in rows]
    return torch.tensor(ids, device=model.source.tokens.weight.device)


class TransformerStep:
    """A batch of sources to be decoded step by step; the state is the model's cache.

    Within the context of `inspection.changed`, the state may contain whole prefixes instead of a cache.
    """

    def __init__(self, model: Transformer, source: Int[Tensor, "B S"]) -> None:
        self._model, self._source = model, source
        self.vocab_size = model.config.target_vocab_size
        self.bos_id, self.eos_id, self.pad_id = model.config.bos_id, model.config.eos_id, model.config.pad_id
        self.device = source.device

    def start(self) -> Any:
        """Return the cache after encoding the sources."""
        return self._model.start(self._source)

    def advance(self, tokens: Int[Tensor, "R"], state: Any) -> tuple[Float[Tensor, "R V"], Any]:
        """Return the log probabilities of each row's next token, and the cache after `tokens`."""
        logits, state = self._model.advance(tokens, state)
        return logits.log_softmax(-1), state

    def select(self, state: Any, rows: Int[Tensor, "R2"], sentences: Int[Tensor, "B2"]) -> Any:
        """Return the cache of these rows and sentences."""
        return state.select(rows, sentences)

    def join(self, state: Any, newcomers: Any) -> Any:
        """Return the cache with new sentences appended to the sentences of `state`."""
        return state.join(newcomers)


@torch.no_grad()
def target_log_probs(
    model: Transformer, source: Int[Tensor, "B S"], target_input: Int[Tensor, "B T"], target_output: Int[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """Return the log probability (natural logarithm, ≤ 0) of each token of given targets; 0 at padding."""
    log_probs = model(source, target_input).log_softmax(-1)
    chosen = log_probs.gather(-1, target_output[..., None]).squeeze(-1)  # (B, T, V) -> (B, T)
    return chosen.masked_fill(target_output == model.config.pad_id, 0.0)
