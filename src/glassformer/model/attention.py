"""Attention: each query's output is an average of values, weighted by how well their keys fit the query.

`attention` computes equation 1 of the paper step by step. `MultiHeadAttention` projects its input, attends with all
heads at once, and joins the heads. If no intermediate step is recorded or changed, `fast/attention.py` computes the
same result without these steps.

Axes: B batch · R rows (hypotheses; R = B unless a beam is decoded) · T query positions · S key positions · D d_model ·
H heads · K width of a head's query and key · W width of a head's value.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from glassformer.errors import ShapeError
from glassformer.model.cache import KeyValues, LayerCache
from glassformer.model.fast.attention import weighted_values
from glassformer.model.fast.dropout import dropout
from glassformer.model.fast.linear import Linear
from glassformer.model.points import ATTENTION, RESIDUAL, names
from glassformer.model.taps import Tap

__all__ = [
    "Attended",
    "MultiHeadAttention",
    "attention",
    "attention_scores",
    "attention_weights",
    "join_heads",
    "split_heads",
]


class Attended(NamedTuple):
    """The result of attention: the weighted values (…, T, W), and their weights (…, T, S).

    `MultiHeadAttention` records these tensors as `heads` and `weights`. The point `output` of `MultiHeadAttention` is a
    different tensor: the product with W_O.
    """

    weighted_values: Tensor
    weights: Tensor


def attention_scores(query: Float[Tensor, "... T K"], key: Float[Tensor, "... S K"]) -> Float[Tensor, "... T S"]:
    """Return how well each query fits each key: their dot product, divided by √d_k.

    Paper: §3.2.1, footnote 4. If the components of query and key are independent, with mean 0 and variance 1, the
    division keeps the variance of a score at 1.
    """
    return query @ key.mT / math.sqrt(query.shape[-1])  # (…, T, K) @ (…, K, S) -> (…, T, S)


def attention_weights(
    scores: Float[Tensor, "... T S"], mask: Bool[Tensor, "..."] | None = None
) -> Float[Tensor, "... T S"]:
    """Return the softmax of each row of scores, in [0, 1] and summing to 1, over the keys that the mask allows.

    A masked score is −∞ before the softmax, so its weight is exactly 0. A row with no allowed key is all zeros. The
    softmax is computed, and returned, in float32 or better.
    """
    precise = torch.promote_types(scores.dtype, torch.float32)
    if mask is None:
        return scores.softmax(-1, dtype=precise)
    weights = scores.masked_fill(~mask, -math.inf).softmax(-1, dtype=precise)
    return weights.masked_fill(~mask, 0.0)  # only changes rows without an allowed key, whose softmax is 0/0


def attention(
    query: Float[Tensor, "... T K"],
    key: Float[Tensor, "... S K"],
    value: Float[Tensor, "... S W"],
    mask: Bool[Tensor, "..."] | None = None,
) -> Attended:
    """Return softmax(Q Kᵀ / √d_k) V, together with the weights; in the mask, True = may attend.

    The inputs may have leading axes, such as batch and heads; the mask must broadcast to (…, T, S).

    Raises:
        ShapeError: the shapes of query, key, value and mask do not fit together.

    Paper: §3.2.1, equation 1.

    >>> one = torch.eye(2)
    >>> attention(one, one, one, mask=torch.tensor([[True, False], [True, True]])).weights[0]
    tensor([1., 0.])
    """
    _check_shapes(query, key, value, mask)
    weights = attention_weights(attention_scores(query, key), mask)
    return Attended(weights.to(value.dtype) @ value, weights)  # (…, T, S) @ (…, S, W) -> (…, T, W)


def split_heads(x: Float[Tensor, "B T width"], heads: int) -> Float[Tensor, "B H T K"]:
    """Return a projection split into heads: one sequence of vectors per head."""
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)  # (B, T, H·K) -> (B, T, H, K) -> (B, H, T, K)


def join_heads(x: Float[Tensor, "B H T W"]) -> Float[Tensor, "B T width"]:
    """Return the heads' weighted values concatenated at each position: the inverse of `split_heads`."""
    return x.transpose(1, 2).flatten(2)  # (B, H, T, W) -> (B, T, H, W) -> (B, T, H·W)


class MultiHeadAttention(nn.Module):
    """Several attention heads in parallel, each with its own projections of the input; W_O mixes the joined heads.

    Paper: §3.2.2, Figure 2 right. W_Q, W_K and W_V of all heads are stored as one matrix, so that self-attention needs
    a single product. A (d_model, heads · d_k) matrix whose result is split into heads equals a separate (d_model, d_k)
    matrix for each head.
    Differs: the projections have biases, as in fairseq, Marian and `torch.nn.MultiheadAttention`; the projections of
    the paper and of its authors' tensor2tensor have no biases.
    """

    POINTS = names(RESIDUAL, ATTENTION)

    def __init__(self, d_model: int, heads: int, d_k: int, d_v: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.widths = [heads * d_k, heads * d_k, heads * d_v]
        self.input_projection = Linear(d_model, sum(self.widths))  # rows: W_Q of all heads, then W_K, then W_V
        self.output_projection = Linear(heads * d_v, d_model)
        self.tap = Tap()
        for weight in (*self.input_projection.weight.split(self.widths), self.output_projection.weight):
            nn.init.xavier_uniform_(weight)  # W_Q, W_K, W_V and W_O are initialised as separate matrices
        nn.init.zeros_(self.input_projection.bias)
        nn.init.zeros_(self.output_projection.bias)

    def forward(
        self,
        x: Float[Tensor, "R T D"],
        mask: Bool[Tensor, "#B #H #T #S"] | None = None,
        *,
        cache: LayerCache | None = None,
        memory: KeyValues | None = None,
    ) -> Float[Tensor, "R T D"]:
        """Return the attention's output at each position of x; keys and values come from x, or from `memory` if given.

        With a cache, x contains only the newest positions. The keys and values of x are appended to the cache, and x
        attends to all cached positions.
        """
        if memory is not None:  # cross-attention: queries come from x, keys and values from the encoder's output
            return self.attend(self.query(x), memory.key, memory.value, mask)
        query, key, value = self.query_key_value(x)
        if cache is not None:
            key, value = cache.extend(key, value)
        return self.attend(query, key, value, mask)

    def query_key_value(
        self, x: Float[Tensor, "R T D"]
    ) -> tuple[Float[Tensor, "R H T K"], Float[Tensor, "R H T K"], Float[Tensor, "R H T W"]]:
        """Return the heads' queries, keys and values of x, computed by one matrix product."""
        query, key, value = self.input_projection(x).split(self.widths, dim=-1)  # (R, T, D) -> (R, T, H·K or H·W)
        return (
            self.tap("query", split_heads(query, self.heads)),
            self.tap("key", split_heads(key, self.heads)),
            self.tap("value", split_heads(value, self.heads)),
        )

    def query(self, x: Float[Tensor, "R T D"]) -> Float[Tensor, "R H T K"]:
        """Return the heads' queries of x."""
        query = self.input_projection.part(x, slice(self.widths[0]))  # (R, T, D) -> (R, T, H·K)
        return self.tap("query", split_heads(query, self.heads))

    def key_value(self, memory: Float[Tensor, "B S D"]) -> KeyValues:
        """Return the heads' keys (B, H, S, K) and values (B, H, S, W) of the encoder's output."""
        both = self.input_projection.part(memory, slice(self.widths[0], None))  # (B, S, D) -> (B, S, H·K + H·W)
        key, value = both.split(self.widths[1:], dim=-1)
        return KeyValues(
            key=self.tap("key", split_heads(key, self.heads)),
            value=self.tap("value", split_heads(value, self.heads)),
        )

    def attend(
        self,
        query: Float[Tensor, "R H T K"],
        key: Float[Tensor, "B H S K"],
        value: Float[Tensor, "B H S W"],
        mask: Bool[Tensor, "#B #H #T #S"] | None,
    ) -> Float[Tensor, "R T D"]:
        """Return the heads' weighted values, joined and mixed by W_O.

        In cross-attention, the rows (hypotheses) of a sentence share the sentence's keys and values, so the rows are
        computed as additional query positions of this sentence.
        """
        rows, positions, sentences = query.shape[0], query.shape[2], key.shape[0]
        if rows != sentences:
            query = _gathered(query, sentences)
        p = self.dropout if self.training else 0.0
        if self.tap.heard():
            heads = self._explained(query, key, value, mask, p)
        else:
            heads = weighted_values(query, key, value, mask, p)
        # separates the rows that were gathered by sentence: (B, N·T, H·W) -> (R, T, H·W)
        joined = join_heads(heads).view(rows, positions, -1)
        return self.tap("output", self.output_projection(self.tap("joined", joined)))  # -> (R, T, D)

    def _explained(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, p: float) -> Tensor:
        """Return the heads' weighted values, computed step by step so that each step can be recorded."""
        scores = self.tap("scores", attention_scores(query, key))
        weights = self.tap("weights", dropout(self.weights(scores, mask), p))
        return self.tap("heads", weights.to(value.dtype) @ value)  # (B, H, T, S) @ (B, H, S, W) -> (B, H, T, W)

    def weights(
        self, scores: Float[Tensor, "B H T S"], mask: Bool[Tensor, "#B #H #T #S"] | None
    ) -> Float[Tensor, "B H T S"]:
        """Return the softmax of each row of scores over the keys that the mask allows.

        This is a method so that `watch/inspection/mistakes.py` can replace it by a faulty function.
        """
        return attention_weights(scores, mask)

    if TYPE_CHECKING:
        __call__ = forward


def _gathered(query: Float[Tensor, "R H T K"], sentences: int) -> Float[Tensor, "B H NT K"]:
    """Return the queries with the N rows of each sentence laid out as N · T positions."""
    rows = query.view(sentences, -1, *query.shape[1:])  # (R, H, T, K) -> (B, N, H, T, K)
    return rows.transpose(1, 2).flatten(2, 3)  # -> (B, H, N, T, K) -> (B, H, N·T, K)


def _check_shapes(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
    if query.shape[-1] != key.shape[-1]:
        raise ShapeError(f"query and key must have the same width d_k, got {query.shape[-1]} and {key.shape[-1]}")
    if key.shape[-2] != value.shape[-2]:
        raise ShapeError(f"key and value must have the same length, got {key.shape[-2]} and {value.shape[-2]}")
    if mask is None:
        return
    scores = (*torch.broadcast_shapes(query.shape[:-2], key.shape[:-2]), query.shape[-2], key.shape[-2])
    try:
        fits = torch.broadcast_shapes(mask.shape, scores) == scores
    except RuntimeError:
        fits = False
    if not fits:
        raise ShapeError(f"the mask must broadcast to (…, T, S) = {tuple(scores)}, got {tuple(mask.shape)}")
