"""Suspects: copies of the NumPy reference, each with one mistake.

A model that differs from the reference but equals a suspect has the suspect's mistake. The classic mistakes are
implemented here a second time, in NumPy, so that tests can compare `mistakes.plant` with an independent implementation.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from glassformer.model.config import ModelConfig
from glassformer.watch.inspection.mistakes import MISTAKES
from glassformer.watch.inspection.reference import Array, Mask, Reference

__all__ = ["SUSPECTS", "SUSPECT_OF_MISTAKE"]


class _NormOrder(Reference):
    def __init__(self, config: ModelConfig, weights: Mapping[str, Array]) -> None:
        norm = "encoder.layers.0.self_attention_residual.norm."
        parts = {name.removeprefix(norm): weight for name, weight in weights.items() if name.startswith(norm)}
        unlearned = {part: np.full_like(weight, part == "weight") for part, weight in parts.items()}
        final = {f"{stack}.norm.{part}": one for stack in ("encoder", "decoder") for part, one in unlearned.items()}
        super().__init__(config, {**final, **weights})
        self.pre = not self.pre

    def end(self, stack: str, x: Array) -> Array:
        return self.norm(f"{stack}.norm", x) if self.pre else x


class _ResidualNormed(Reference):
    def past(self, norm: str, x: Array) -> Array:
        return self.norm(norm, x)


class _NoScale(Reference):
    def scores(self, query: Array, key: Array) -> Array:
        return query @ key.swapaxes(-1, -2)


class _ScaleDModel(Reference):
    def scores(self, query: Array, key: Array) -> Array:
        return np.asarray(query @ key.swapaxes(-1, -2) / np.sqrt(self.config.d_model))


class _ScaleDK(Reference):
    def scores(self, query: Array, key: Array) -> Array:
        return query @ key.swapaxes(-1, -2) / self.config.d_k


class _NoEmbeddingScale(Reference):
    def lookup(self, side: str, ids: Sequence[int]) -> Array:
        return self.weights[f"{side}.tokens.weight"][list(ids)]


class _DoubledExponent(Reference):
    def exponents(self) -> tuple[Array, Array]:
        dimensions = np.arange(self.config.d_model + 1)
        doubled = 2 * dimensions / self.config.d_model
        pairs = (self.config.d_model + 1) // 2
        return doubled[0::2][:pairs], doubled[1::2][:pairs]


class _PositionsFromOne(Reference):
    def positions(self, side: str, length: int) -> Array:
        return super().positions(side, length + 1)[1:]


class _SoftmaxOverQueries(Reference):
    def attention(self, scores: Array, mask: Mask) -> Array:
        columns = np.broadcast_to(mask, scores.shape).swapaxes(-1, -2)
        return super().attention(scores.swapaxes(-1, -2), columns).swapaxes(-1, -2)


class _MaskZero(Reference):
    def attention(self, scores: Array, mask: Mask) -> Array:
        return super().attention(np.where(mask, scores, 0.0), np.ones_like(mask))


class _MaskAfterSoftmax(Reference):
    def attention(self, scores: Array, mask: Mask) -> Array:
        return super().attention(scores, np.ones_like(mask)) * mask


class _PaddingSeen(Reference):
    def padding(self, ids: Sequence[int]) -> Mask:
        return np.ones((1, len(ids)), dtype=bool)


class _TargetPaddingMask(Reference):
    def memory_mask(self, source: Sequence[int], target: Sequence[int]) -> Mask:
        return self.padding(target if len(source) == len(target) else source)


class _NoCausalMask(Reference):
    def target_mask(self, target: Sequence[int]) -> Mask:
        return np.repeat(self.padding(target), len(target), axis=0)


class _DecoderKeys(Reference):
    def memory_mask(self, _source: Sequence[int], target: Sequence[int]) -> Mask:
        return self.padding(target)

    def cross_attention(self, name: str, y: Array, _memory: tuple[Array, Array], mask: Mask) -> Array:
        return self.self_attention(name, y, mask)


class _DoubleSoftmax(Reference):
    def log_probs(self, logits: Array) -> Array:
        return super().log_probs(np.exp(super().log_probs(logits)))


class _NoTranspose(Reference):
    def split(self, x: Array) -> Array:
        return x.reshape(self.config.heads, len(x), -1)


class _UnbiasedNorm(Reference):
    def deviation(self, x: Array) -> Array:
        return np.asarray(x.std(-1, ddof=1, keepdims=True) + 1e-5)


class _UnbiasedVariance(Reference):
    def deviation(self, x: Array) -> Array:
        return np.asarray(np.sqrt(x.var(-1, ddof=1, keepdims=True) + 1e-5))


class _EpsOutside(Reference):
    def deviation(self, x: Array) -> Array:
        return np.asarray(x.std(-1, keepdims=True) + 1e-5)


class _NoFinalNorm(Reference):
    def end(self, _stack: str, x: Array) -> Array:
        return x


SUSPECT_OF_MISTAKE: dict[str, type[Reference]] = {
    "norm_order": _NormOrder,
    "residual_normed": _ResidualNormed,
    "no_scale": _NoScale,
    "scale_d_model": _ScaleDModel,
    "no_embedding_scale": _NoEmbeddingScale,
    "doubled_exponent": _DoubledExponent,
    "softmax_over_queries": _SoftmaxOverQueries,
    "mask_zero": _MaskZero,
    "mask_after_softmax": _MaskAfterSoftmax,
    "target_padding_mask": _TargetPaddingMask,
    "no_causal_mask": _NoCausalMask,
    "decoder_keys": _DecoderKeys,
    "double_softmax": _DoubleSoftmax,
    "no_transpose": _NoTranspose,
    "unbiased_norm": _UnbiasedNorm,
}
"""The reference with each classic mistake, by the mistake's id."""

SUSPECTS: dict[str, type[Reference]] = {
    **{MISTAKES[mistake].title: suspect for mistake, suspect in SUSPECT_OF_MISTAKE.items()},
    "scores divided by d_k instead of its root": _ScaleDK,
    "positions counted from 1": _PositionsFromOne,
    "padding attended: no padding mask": _PaddingSeen,
    "layer norm with the unbiased variance": _UnbiasedVariance,
    "layer norm with eps outside of the root": _EpsOutside,
    "no norm at the end of the stacks": _NoFinalNorm,
}
"""The reference with each mistake that can be identified by its numbers, by the text that a check lists as `likely`.
The last six mistakes are not classic mistakes, so they have no id."""
