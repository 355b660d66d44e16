"""The classic mistakes of Transformer implementations, each of which can be planted in a working model for a while.

All of them run without an error and give the right shapes. `MISTAKES` says what each gets wrong, and which point of the
forward pass is the first to differ; `plant` makes a model commit some of them.

Axes: B batch · T query positions · S key positions · H heads · K width of a head · D d_model.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.errors import ConfigError, nearest
from glassformer.model.attention import MultiHeadAttention, attention_scores, join_heads
from glassformer.model.cache import KeyValues
from glassformer.model.config import ModelConfig
from glassformer.model.positions import Positions
from glassformer.model.residual import Residual
from glassformer.model.taps import intervene
from glassformer.model.transformer import Transformer

__all__ = ["MISTAKES", "Mistake", "pad_to_one_length", "plant", "replaced"]

Planted = Iterator[None]
Part = TypeVar("Part", bound=nn.Module)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One mistake: what it is, how it shows, and how it is planted."""

    id: str
    title: str
    wrong: str
    """What goes wrong, in one sentence."""
    symptom: str
    """How it is likely to show in training or translation."""
    first: Callable[[ModelConfig], str | None]
    """Returns the first point that differs, in the order of the unchanged model, or None where nothing can."""
    planted: Callable[[Transformer], AbstractContextManager[None]]
    """Returns the context in which a model commits it."""


@contextmanager
def plant(model: Transformer, *mistakes: str) -> Iterator[None]:
    """Make a model commit these mistakes while the context lasts; its weights stay as they are.

    Some replace methods of the model's parts, which every thread sees: let one thread at a time use such a model.
    Without √d_k at all, √d_model cannot take its place: `no_scale` beside `scale_d_model` is `no_scale` alone.

    Raises:
        ConfigError: there is no such mistake.

    >>> import torch, glassformer as gf
    >>> model = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11)).eval()
    >>> with plant(model, "mask_after_softmax"), gf.record(model) as trace:
    ...     logits = model(torch.tensor([[4, 5, 6]]), torch.tensor([[1, 4]]))
    >>> bool((trace["decoder.layers.0.self_attention.weights"][0, :, 0].sum(-1) < 1).all())
    True
    """
    for mistake in mistakes:
        if mistake not in MISTAKES:
            raise ConfigError(
                f"no classic mistake is called {mistake!r}{nearest(mistake, MISTAKES)}; there are {', '.join(MISTAKES)}"
            )
    planters = {one.id: one.planted for one in MISTAKES.values() if one.id in mistakes}
    for both, planter in _TOGETHER.items():
        if set(both) <= set(planters):
            planters = {one: planters[one] for one in planters if one not in both} | {both[0]: planter}
    with ExitStack() as stack:
        for planter in planters.values():
            stack.enter_context(planter(model))
        yield


@contextmanager
def replaced(part: nn.Module, name: str, value: Any) -> Planted:
    """Put a method, an attribute or a part in the place of that of one module, while the context lasts."""
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
    """Return two batches of ids, (B, T) and (B, S), both padded to the length of the longer one."""
    length = max(first.shape[1], second.shape[1])
    padded = (F.pad(ids, (0, length - ids.shape[1]), value=pad_id) for ids in (first, second))
    return next(padded), next(padded)


def _parts(model: nn.Module, kind: type[Part]) -> list[Part]:
    return [part for part in model.modules() if isinstance(part, kind)]


@contextmanager
def _all_replaced(parts: Sequence[Part], name: str, make: Callable[[Part], Any]) -> Planted:
    """Replace a method of each of these parts by what `make` makes for it."""
    with ExitStack() as stack:
        for part in parts:
            stack.enter_context(replaced(part, name, make(part)))
        yield


# Residual connections and norms


@contextmanager
def _norm_order(model: Transformer) -> Planted:
    """The other placement of the norms. To pre: one more norm ends each stack; to post: none does."""
    pre, stacks = model.config.norm == "pre", (model.encoder, model.decoder)
    with ExitStack() as stack:
        stack.enter_context(_all_replaced(_parts(model, Residual), "pre", lambda _: not pre))
        if pre:
            norms = [one.norm for one in stacks]
            stack.enter_context(_all_replaced(norms, "forward", lambda _: lambda x: x))
        else:
            plain = nn.LayerNorm(model.config.d_model, elementwise_affine=False)
            stack.enter_context(_all_replaced(stacks, "norm", lambda _: plain))
        yield


def _residual_normed(model: Transformer) -> AbstractContextManager[None]:
    """What is added back is LayerNorm(x) in the place of x."""

    def make(residual: Residual) -> Callable[..., Tensor]:
        tap = residual.tap

        def forward(x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
            x = tap("input", x)
            if residual.pre:
                x = tap("normed", residual.norm(x))  # the name of x is overwritten
                return tap("added", x + residual.dropout(sublayer(x)))
            added = tap("added", residual.norm(x) + residual.dropout(sublayer(x)))
            return tap("normed", residual.norm(added))

        return forward

    return _all_replaced(_parts(model, Residual), "forward", make)


def _unbiased_norm(model: Transformer) -> AbstractContextManager[None]:
    """(x − mean) / (deviation with n − 1, + eps), as in some well-read tutorials."""

    def make(norm: nn.LayerNorm) -> Callable[[Tensor], Tensor]:
        def forward(x: Tensor) -> Tensor:
            scaled = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + norm.eps)
            return scaled * norm.weight + norm.bias if norm.elementwise_affine else scaled

        return forward

    norms = [norm for norm in _parts(model, nn.LayerNorm) if "forward" not in vars(norm)]
    return _all_replaced(norms, "forward", make)


# Embedding and positions


def _no_embedding_scale(model: Transformer) -> AbstractContextManager[None]:
    return intervene(model, {"*.embedding": lambda embedding: embedding / math.sqrt(model.config.d_model)})


def _doubled_exponent(model: Transformer) -> AbstractContextManager[None]:
    """2i/d_model with an i that counts dimensions instead of pairs."""

    def make(positions: Positions) -> Callable[..., Tensor]:
        def forward(start: int, length: int, like: Tensor) -> Tensor:
            i = torch.arange(positions.d_model, dtype=torch.float64)
            angles = torch.arange(start, start + length)[:, None] * 10000.0 ** (-2 * i / positions.d_model)
            sines, cosines = angles[:, 0::2].sin(), angles[:, 1::2].cos()
            if positions.kind == "halves":
                return torch.cat([sines, cosines], dim=-1).to(like)
            angles[:, 0::2], angles[:, 1::2] = sines, cosines
            return angles.to(like)

        return forward

    sinusoids = [part for part in _parts(model, Positions) if part.kind in _SINUSOIDS]
    return _all_replaced(sinusoids, "forward", make)


# Scores and heads


def _no_scale(model: Transformer) -> AbstractContextManager[None]:
    return intervene(model, {"*.scores": lambda scores: scores * math.sqrt(model.config.d_k)})


def _scale_d_model(model: Transformer) -> AbstractContextManager[None]:
    factor = math.sqrt(model.config.d_k / model.config.d_model)
    return intervene(model, {"*.scores": lambda scores: scores * factor})


def _no_transpose(model: Transformer) -> AbstractContextManager[None]:
    """Heads by view(H, T, K) alone: the same shape, but each head gets a stretch of the text."""

    def scrambled(x: Tensor) -> Tensor:
        return join_heads(x).reshape(x.shape)  # (B, H, T, K) -> (B, T, H·K) -> (B, H, T, K)

    return intervene(model, {"*.query": scrambled, "*.key": scrambled, "*.value": scrambled})


# Masks and softmax

Rule = Callable[[Tensor, Tensor], Tensor]
"""(scores, mask) → weights."""


def _weights_by(rule: Rule) -> Callable[[Transformer], AbstractContextManager[None]]:
    """Return what plants another rule of making weights, in every attention."""

    def make(attention: MultiHeadAttention) -> Callable[..., Tensor]:
        tap = attention.tap

        def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
            key, value = (_for_each_row(x, query) for x in (key, value))
            scores = tap("scores", attention_scores(query, key))
            weights = scores.softmax(-1) if mask is None else rule(scores, _for_each_row(mask, query))
            heads = tap("heads", tap("weights", weights) @ value)
            return tap("output", attention.output_projection(tap("joined", join_heads(heads))))

        return attend

    return lambda model: _all_replaced(_parts(model, MultiHeadAttention), "attend", make)


def _for_each_row(x: Tensor, query: Tensor) -> Tensor:
    """Return what all rows of a sentence share, for each of them."""
    return x.repeat_interleave(len(query) // len(x), dim=0)


def _zero_instead(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.masked_fill(~mask, 0.0).softmax(-1)


def _hidden_afterwards(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.softmax(-1).masked_fill(~mask, 0.0)


def _both_masks(scores: Tensor, mask: Tensor) -> Tensor:
    return _zero_instead(scores, mask).masked_fill(~mask, 0.0)


@contextmanager
def _target_padding_mask(model: Transformer) -> Planted:
    """Source and target have to be of one length for this mask to fit, so both are padded to it."""
    forward, hidden, pad_id = model.forward, model.hidden, model.config.pad_id

    def padded(source: Tensor, target_input: Tensor) -> Tensor:
        return forward(*pad_to_one_length(source, target_input, pad_id))[:, : target_input.shape[1]]

    def mistaken(target_input: Tensor, memory: Tensor, _source: Tensor) -> Tensor:
        return hidden(target_input, memory, target_input)

    with replaced(model, "forward", padded), replaced(model, "hidden", mistaken):
        yield


def _no_causal_mask(model: Transformer) -> AbstractContextManager[None]:
    right = model.decoder.forward

    def forward(x: Tensor, mask: Tensor | None, caches: Any, memory_mask: Tensor | None) -> Tensor:
        return right(x, mask if mask is None else _padding_alone(mask).expand_as(mask), caches, memory_mask)

    return replaced(model.decoder, "forward", forward)


@contextmanager
def _decoder_keys(model: Transformer) -> Planted:
    """Every query sees all of the decoder's own positions, the memory is not looked at."""
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
    """What the cross-attention of a planted decoder has to know of the target."""

    mask: Tensor | None = None


def _padding_alone(mask: Tensor) -> Tensor:
    """Return which positions of the target are no padding, of a mask whose last row sees no future."""
    return mask[:, :, -1:]


def _double_softmax(model: Transformer) -> AbstractContextManager[None]:
    return intervene(model, {"log_probs": lambda log_probs: log_probs.exp().log_softmax(-1)})


_FIRST, _MASKED = "encoder.layers.0.self_attention", "decoder.layers.0.self_attention.weights"
_CROSS = "decoder.layers.0.cross_attention"
_SINUSOIDS = ("interleaved", "halves")

_ALL = (
    Mistake(
        id="norm_order",
        title="pre-norm and post-norm swapped",
        wrong="The layer norm stands before the sub-layer where it should be behind the sum, or the other way round.",
        symptom="Weights that were trained elsewhere give nonsense; post-norm may not learn without warm-up.",
        first=lambda config: f"{_FIRST}.{'normed' if config.norm == 'pre' else 'query'}",
        planted=_norm_order,
    ),
    Mistake(
        id="residual_normed",
        title="residual from the normalised x",
        wrong="The normalised x is added back in the place of x, often because the name x was overwritten.",
        symptom="It trains, but deep stacks learn slowly or not at all: no path leads past the norms.",
        first=lambda _: f"{_FIRST}.added",
        planted=_residual_normed,
    ),
    Mistake(
        id="no_scale",
        title="no √d_k",
        wrong="Scores are not divided by √d_k.",
        symptom="The softmax is almost one-hot from the start, and its gradients vanish; worse with wide heads.",
        first=lambda config: f"{_FIRST}.scores" if config.d_k > 1 else None,
        planted=_no_scale,
    ),
    Mistake(
        id="scale_d_model",
        title="√d_model in the place of √d_k",
        wrong="Scores are divided by the root of the whole width instead of that of a head.",
        symptom="Attention stays too even: it learns, but more slowly and less sharply.",
        first=lambda config: f"{_FIRST}.scores" if config.d_k != config.d_model else None,
        planted=_scale_d_model,
    ),
    Mistake(
        id="no_embedding_scale",
        title="embedding not multiplied by √d_model",
        wrong="Rows of the embedding matrix are used as they are, without the factor √d_model.",
        symptom="Positions drown the words in the beginning; weights that were trained elsewhere give nonsense.",
        first=lambda config: "source.embedding" if config.d_model > 1 else None,
        planted=_no_embedding_scale,
    ),
    Mistake(
        id="doubled_exponent",
        title="exponent of the positions doubled",
        wrong="2i/d_model is taken with an i that counts dimensions, not pairs: the frequencies fall twice as fast.",
        symptom="It trains all the same; long sentences suffer, and a shift is no rotation of the pairs any more.",
        first=lambda config: "source.positions" if config.positions in _SINUSOIDS and config.d_model > 1 else None,
        planted=_doubled_exponent,
    ),
    Mistake(
        id="mask_zero",
        title="masked scores set to 0",
        wrong="A masked score becomes 0 in the place of −∞, so that its key still gets the weight e⁰ over the sum.",
        symptom="The future leaks: the loss falls wonderfully, translations are poor; padding changes results.",
        first=lambda _: _MASKED,
        planted=_weights_by(_zero_instead),
    ),
    Mistake(
        id="mask_after_softmax",
        title="mask after the softmax",
        wrong="The softmax runs over all keys, and masked weights are set to 0 afterwards: rows do not sum to 1.",
        symptom="Early positions get weak averages, whose size tells of the future; padding changes results.",
        first=lambda _: _MASKED,
        planted=_weights_by(_hidden_afterwards),
    ),
    Mistake(
        id="target_padding_mask",
        title="target's padding mask in cross-attention",
        wrong="Cross-attention hides the keys where the target is padded instead of where the source is.",
        symptom="Ends of longer sources are not seen, padding of shorter ones is; with unequal lengths it crashes.",
        first=lambda _: f"{_CROSS}.weights",
        planted=_target_padding_mask,
    ),
    Mistake(
        id="no_causal_mask",
        title="no causal mask",
        wrong="The decoder's self-attention sees the tokens that it has to predict.",
        symptom="The loss falls to almost nothing, and translations are gibberish.",
        first=lambda _: _MASKED,
        planted=_no_causal_mask,
    ),
    Mistake(
        id="decoder_keys",
        title="cross-attention with the decoder's own keys and values",
        wrong="Cross-attention takes K and V from the decoder instead of the memory.",
        symptom="The source is ignored: fluent output that has nothing to do with it.",
        first=lambda _: f"{_CROSS}.key",
        planted=_decoder_keys,
    ),
    Mistake(
        id="double_softmax",
        title="softmax twice",
        wrong="The loss or the search takes a softmax of what is a softmax already.",
        symptom="Probabilities are almost even, the loss stays high, and beam search prefers odd lengths.",
        first=lambda _: "log_probs",
        planted=_double_softmax,
    ),
    Mistake(
        id="no_transpose",
        title="heads split without the transpose",
        wrong="A view alone makes the heads: the shape is right, but each head gets a stretch of the text.",
        symptom="It learns something, and depends on the length of the sentence; cached decoding differs.",
        first=lambda config: f"{_FIRST}.query" if config.heads > 1 else None,
        planted=_no_transpose,
    ),
    Mistake(
        id="unbiased_norm",
        title="layer norm with the unbiased deviation",
        wrong="The norm divides by the deviation with n − 1, and adds eps outside of the root.",
        symptom="Hardly visible in training; weights that were trained elsewhere are slightly off.",
        first=lambda _: f"{_FIRST}.normed",
        planted=_unbiased_norm,
    ),
)
MISTAKES = {mistake.id: mistake for mistake in _ALL}
"""The classic mistakes by id, in the order in which they are planted."""

_TOGETHER: dict[tuple[str, str], Callable[[Transformer], AbstractContextManager[None]]] = {
    ("no_scale", "scale_d_model"): _no_scale,
    ("mask_zero", "mask_after_softmax"): _weights_by(_both_masks),
}
"""What two mistakes make of the same line."""
