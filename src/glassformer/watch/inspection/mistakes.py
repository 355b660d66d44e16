"""Classic mistakes of Transformer implementations, which can be planted temporarily in a correct model.

Code with such a mistake runs without an error and gives the right shapes. `MISTAKES`, read from mistakes.toml,
describes each mistake, and the first point of the forward pass that differs. `plant` plants mistakes. Each mistake has
a function, its planter, that replaces a step of the model or intervenes at a named point.

Axes: B batch · T query positions · S key positions · H heads · K width of a head · D d_model.
"""

import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.errors import ConfigError, nearest, quoted
from glassformer.model.attention import MultiHeadAttention, attention_weights, join_heads
from glassformer.model.cache import KeyValues
from glassformer.model.config import ModelConfig
from glassformer.model.positions import Positions
from glassformer.model.residual import Residual
from glassformer.model.taps import intervene
from glassformer.model.transformer import Transformer

__all__ = ["MISTAKES", "Mistake", "pad_to_one_length", "plant", "replaced"]

Planted = Iterator[None]
Planter = Callable[[Transformer], AbstractContextManager[None]]
"""A function that returns a context within which a model computes with a mistake."""
Module = TypeVar("Module", bound=nn.Module)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """A classic mistake: what is wrong, its symptom, and its effect on a forward pass."""

    id: str
    title: str
    """The mistake in a few words."""
    wrong: str
    """The mistake in one sentence."""
    symptom: str
    """The likely symptom in training or translation."""
    rules: Sequence[Mapping[str, Any]]
    """Rules for the first point that differs: the first rule whose settings match the configuration applies."""
    at: Sequence[str]
    """Patterns of the points whose formula changes."""
    zh: Mapping[str, str]
    """`title`, `wrong` and `unseen` in Chinese."""
    unseen: str = ""
    """The reason why nothing differs in some configurations."""
    causal: bool = True
    """Whether target positions still depend only on earlier positions, so that decoding may use a cache."""
    one_length: bool = False
    """Whether source and target must be padded to one length."""
    fails: Sequence[str] = ()
    """The checks of `glassformer.check` that fail with this mistake, in addition to the comparison with the
    reference."""

    def first(self, config: ModelConfig) -> str | None:
        """Return the first point that differs, in the order of the unchanged model, or None if no point can differ."""
        point: str | None = next(rule.get("point") for rule in self.rules if _applies(rule, config))
        return point


def _applies(rule: Mapping[str, Any], config: ModelConfig) -> bool:
    """Return whether a configuration matches a rule: each setting has the value (or one of the values) in the rule.

    If a value is the name of another setting, it stands for the value of that setting.
    """
    for setting, expected in rule.items():
        allowed = expected if isinstance(expected, list) else [expected]
        if setting != "point" and getattr(config, setting) not in [getattr(config, str(one), one) for one in allowed]:
            return False
    return True


def _table() -> dict[str, Mistake]:
    rows = tomllib.loads(files("glassformer.watch.inspection").joinpath("mistakes.toml").read_text(encoding="utf-8"))
    return {row["id"]: Mistake(rules=row.pop("first"), **row) for row in rows["mistake"]}


MISTAKES = _table()
"""The classic mistakes by id, in the order in which `plant` plants them."""


@contextmanager
def plant(model: Transformer, *mistakes: str) -> Iterator[None]:
    """Plant these mistakes in a model within a `with` block; the weights are unchanged.

    Some mistakes replace methods of the model's parts, which affects all threads: use such a model in one thread only.
    If both `no_scale` and `scale_d_model` are given, only `no_scale` has an effect. A search uses a cache, which only
    holds the past, so a search cannot show the effect of a mistake that is not `causal`. Within `changed`, a search
    shows the effect.

    Raises:
        ConfigError: a mistake is unknown.

    >>> import torch, glassformer as gf
    >>> model = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11)).eval()
    >>> with plant(model, "mask_after_softmax"), gf.record(model) as trace:
    ...     logits = model(torch.tensor([[4, 5, 6]]), torch.tensor([[1, 4]]))
    >>> bool((trace["decoder.layers.0.self_attention.weights"][0, :, 0].sum(-1) < 1).all())
    True
    """
    for mistake in mistakes:
        if mistake not in MISTAKES:
            known = ", ".join(MISTAKES)
            raise ConfigError(f"mistake: expected one of {known}, got {quoted(mistake)}{nearest(mistake, MISTAKES)}")
    planters = {one: _PLANTERS[one] for one in MISTAKES if one in mistakes}
    for both, planter in _TOGETHER.items():
        if set(both) <= set(planters):
            planters = {one: planters[one] for one in planters if one not in both} | {both[0]: planter}
    with ExitStack() as stack:
        for planter in planters.values():
            stack.enter_context(planter(model))
        yield


@contextmanager
def replaced(part: nn.Module, name: str, value: Any) -> Planted:
    """Replace a method, an attribute or a submodule of one module within a `with` block."""
    stays, before = name in vars(part) or name in part._modules, getattr(part, name)
    setattr(part, name, value)
    try:
        yield
    finally:
        if stays:
            setattr(part, name, before)
        else:
            delattr(part, name)


def pad_to_one_length(first: Tensor, second: Tensor, pad_id: int) -> tuple[Tensor, Tensor]:
    """Return two batches of ids, (B, T) and (B, S), both padded to the longer length."""
    length = max(first.shape[1], second.shape[1])
    padded = (F.pad(ids, (0, length - ids.shape[1]), value=pad_id) for ids in (first, second))
    return next(padded), next(padded)


def _parts(model: nn.Module, kind: type[Module]) -> list[Module]:
    return [part for part in model.modules() if isinstance(part, kind)]


@contextmanager
def _all_replaced(parts: Sequence[Module], name: str, make: Callable[[Module], Any]) -> Planted:
    """Replace the method `name` of each of these parts by `make(part)`, within a `with` block."""
    with ExitStack() as stack:
        for part in parts:
            stack.enter_context(replaced(part, name, make(part)))
        yield


# Residual connections and norms


@contextmanager
def _norm_order(model: Transformer) -> Planted:
    """Swap pre-norm and post-norm. Pre-norm then has final norms (the model's own, or new ones without weights)."""
    pre, stacks = model.config.norm == "pre", (model.encoder, model.decoder)
    with ExitStack() as stack:
        stack.enter_context(_all_replaced(_parts(model, Residual), "pre", lambda _: not pre))
        if pre:
            norms = [one.norm for one in stacks]
            stack.enter_context(_all_replaced(norms, "forward", lambda _: lambda x: x))
        else:
            plain = _unlearned(_parts(model, Residual)[0].norm)
            without = [one for one in stacks if not model.config.final_norm]
            stack.enter_context(_all_replaced(without, "norm", lambda _: plain))
        yield


def _unlearned(norm: nn.Module) -> nn.Module:
    """Return a norm like this one, whose gain is 1 and whose bias is 0; neither is a parameter of the model."""
    plain = deepcopy(norm)
    for name, weight in [*plain.named_parameters()]:
        delattr(plain, name)
        plain.register_buffer(name, torch.full_like(weight, name == "weight"), persistent=False)
    return plain


def _residual_normed(model: Transformer) -> AbstractContextManager[None]:
    """Add the norm of x instead of x to the sub-layer's output."""

    def make(residual: Residual) -> Callable[[Tensor, Tensor], Tensor]:
        right = residual.add
        return lambda x, share: right(residual.norm(x), share)

    return _all_replaced(_parts(model, Residual), "add", make)


def _unbiased_norm(model: Transformer) -> AbstractContextManager[None]:
    """Compute (x − mean) / (s + eps), where s is the standard deviation with divisor n − 1, as in some tutorials."""

    def make(norm: nn.LayerNorm) -> Callable[[Tensor], Tensor]:
        def forward(x: Tensor) -> Tensor:
            scaled = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + norm.eps)
            return scaled * norm.weight + norm.bias

        return forward

    norms = [norm for norm in _parts(model, nn.LayerNorm) if "forward" not in vars(norm)]
    return _all_replaced(norms, "forward", make)


# Embedding and positions


def _no_embedding_scale(model: Transformer) -> AbstractContextManager[None]:
    return intervene(model, {"*.embedding": lambda embedding: embedding / math.sqrt(model.config.d_model)})


def _doubled_exponent(model: Transformer) -> AbstractContextManager[None]:
    """Use the exponent 2i/d_model with an i that counts dimensions instead of pairs."""

    def make(positions: Positions) -> Callable[[int, Tensor], Tensor]:
        def patterns(end: int, like: Tensor) -> Tensor:
            i = torch.arange(positions.d_model, dtype=torch.float64, device="cpu")
            angles = torch.arange(end, device="cpu")[:, None] * 10000.0 ** (-2 * i / positions.d_model)
            table = torch.where(i % 2 == 0, angles.sin(), angles.cos())
            if positions.kind == "halves":
                table = torch.cat([table[:, 0::2], table[:, 1::2]], dim=-1)
            return table.to(like)

        return patterns

    sinusoids = [part for part in _parts(model, Positions) if part.kind in ("interleaved", "halves")]
    return _all_replaced(sinusoids, "patterns", make)


# Scores and heads


def _no_scale(model: Transformer) -> AbstractContextManager[None]:
    return intervene(model, {"*.scores": lambda scores: scores * math.sqrt(model.config.d_k)})


def _scale_d_model(model: Transformer) -> AbstractContextManager[None]:
    factor = math.sqrt(model.config.d_k / model.config.d_model)
    return intervene(model, {"*.scores": lambda scores: scores * factor})


def _no_transpose(model: Transformer) -> AbstractContextManager[None]:
    """Split heads by view(H, T, K) without a transpose: the shape is right, but each head only gets some positions."""

    def scrambled(x: Tensor) -> Tensor:
        return join_heads(x).reshape(x.shape)  # (B, H, T, K) -> (B, T, H·K) -> (B, H, T, K)

    return intervene(model, {"*.query": scrambled, "*.key": scrambled, "*.value": scrambled})


# Masks and softmax

WeightRule = Callable[[Tensor, Tensor], Tensor]
"""(scores, mask) → weights."""


def _weights_by(rule: WeightRule) -> Planter:
    """Return a planter with which every attention layer computes its weights by this rule."""

    @contextmanager
    def planted(model: Transformer) -> Planted:
        def weights(scores: Tensor, mask: Tensor | None) -> Tensor:
            return rule(scores, scores.new_ones((), dtype=torch.bool) if mask is None else mask)

        right = [part for part in _parts(model, MultiHeadAttention) if "weights" not in vars(part)]
        # an intervention, even without effect, switches off the fused kernel
        step_by_step = intervene(model, {"*.weights": lambda weights: weights})
        with step_by_step, _all_replaced(right, "weights", lambda _: weights):
            yield

    return planted


def _over_queries(scores: Tensor, mask: Tensor) -> Tensor:
    """Return the softmax of each column over the queries that may attend to its key; zeros if there are none."""
    return attention_weights(scores.mT, mask.expand(scores.shape).mT).mT


def _zero_instead(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.masked_fill(~mask, 0.0).softmax(-1)


def _hidden_afterwards(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.softmax(-1).masked_fill(~mask, 0.0)


def _both_masks(scores: Tensor, mask: Tensor) -> Tensor:
    return _zero_instead(scores, mask).masked_fill(~mask, 0.0)


@contextmanager
def _target_padding_mask(model: Transformer) -> Planted:
    """Mask cross-attention with the target's padding mask, which fits because both sides are padded to one length."""
    forward, decoder_output, pad_id = model.forward, model.decoder_output, model.config.pad_id

    def padded(source: Tensor, target_input: Tensor) -> Tensor:
        return forward(*pad_to_one_length(source, target_input, pad_id))[:, : target_input.shape[1]]

    def mistaken(target_input: Tensor, memory: Tensor, _source: Tensor) -> Tensor:
        return decoder_output(target_input, memory, target_input)

    with replaced(model, "forward", padded), replaced(model, "decoder_output", mistaken):
        yield


def _no_causal_mask(model: Transformer) -> AbstractContextManager[None]:
    right = model.decoder.forward

    def forward(x: Tensor, mask: Tensor | None, caches: Any, memory_mask: Tensor | None) -> Tensor:
        return right(x, mask if mask is None else _padding_alone(mask).expand_as(mask), caches, memory_mask)

    return replaced(model.decoder, "forward", forward)


@contextmanager
def _decoder_keys(model: Transformer) -> Planted:
    """Let cross-attention take keys and values from the decoder's own positions instead of the memory."""
    right, padding = model.decoder.forward, _Padding()

    def decode(x: Tensor, mask: Tensor | None, caches: Any, memory_mask: Tensor | None) -> Tensor:
        padding.mask = mask if mask is None else _padding_alone(mask)
        return right(x, mask, caches, memory_mask)

    def make(attention: MultiHeadAttention) -> Callable[..., Tensor]:
        return lambda x, _mask, **_: attention.attend(*attention.query_key_value(x), padding.mask)

    def unheard(attention: MultiHeadAttention) -> Callable[[Tensor], KeyValues]:
        widths = (model.config.d_k, model.config.d_v)
        return lambda memory: KeyValues(*(memory.new_zeros(len(memory), attention.heads, 1, width) for width in widths))

    crosses = [part for name, part in model.named_modules() if name.endswith(".cross_attention")]
    with (
        replaced(model.decoder, "forward", decode),
        _all_replaced(crosses, "forward", make),
        _all_replaced(crosses, "key_value", unheard),
    ):
        yield


@dataclass(slots=True)
class _Padding:
    """Holds the target's padding mask for the cross-attention of a changed decoder."""

    mask: Tensor | None = None


def _padding_alone(mask: Tensor) -> Tensor:
    """Return the last row of a decoder mask, in which only padding is hidden."""
    return mask[:, :, -1:]


def _double_softmax(model: Transformer) -> AbstractContextManager[None]:
    return intervene(model, {"log_probs": lambda log_probs: log_probs.exp().log_softmax(-1)})


_PLANTERS: Mapping[str, Planter] = {
    "norm_order": _norm_order,
    "residual_normed": _residual_normed,
    "no_scale": _no_scale,
    "scale_d_model": _scale_d_model,
    "no_embedding_scale": _no_embedding_scale,
    "doubled_exponent": _doubled_exponent,
    "softmax_over_queries": _weights_by(_over_queries),
    "mask_zero": _weights_by(_zero_instead),
    "mask_after_softmax": _weights_by(_hidden_afterwards),
    "target_padding_mask": _target_padding_mask,
    "no_causal_mask": _no_causal_mask,
    "decoder_keys": _decoder_keys,
    "double_softmax": _double_softmax,
    "no_transpose": _no_transpose,
    "unbiased_norm": _unbiased_norm,
}
"""The planter of each mistake, by id."""

_TOGETHER: Mapping[tuple[str, str], Planter] = {
    ("no_scale", "scale_d_model"): _no_scale,
    ("mask_zero", "mask_after_softmax"): _weights_by(_both_masks),
}
"""Planters for pairs of mistakes that replace the same step."""
