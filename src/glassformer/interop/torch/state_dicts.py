"""Import the state dicts of other implementations: recognise each by its weight names, and rename the weights.

The names and shapes of a state dict show the layers, the widths, the final norms and the output bias. They do not show
the number of heads or the ids of the special tokens, so the caller gives these.
"""

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from glassformer.bundle import put_weights
from glassformer.errors import CheckpointError, ConfigError, nearest, quoted
from glassformer.interop.torch.weight_files import StateDict, StateDicts
from glassformer.interop.torch.wrappers import the_model
from glassformer.model.config import Activation, ModelConfig
from glassformer.model.feed_forward import ACTIVATIONS
from glassformer.model.positions import sinusoids
from glassformer.model.transformer import Transformer

__all__ = [
    "FAMILIES",
    "HUGGING_FACE",
    "Family",
    "import_module",
    "import_state_dict",
    "is_sinusoidal",
    "norm_difference",
    "recognised",
]

SINUSOIDS = 1e-3
"""A position table that differs from the paper's sinusoids by at most this much counts as sinusoidal. A table computed
in float32 differs by up to 1.3e-5 before position 200, and by up to 3.9e-4 before position 5 000 (d_model 512)."""

RANDOM_TOKENS = 16
"""Length of the random sequences on which the difference of two layer norms is measured."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """A family of state dicts: the state dicts of one implementation, which all have the same weight names.

    In a name, `{p}` stands for "weight" and "bias", and `{n}` for the names of a layer norm's gain and bias.
    """

    title: str
    settings: Mapping[str, Any]
    """Fields of ModelConfig that no weight name shows, with their values in this implementation."""
    outside: Mapping[str, str]
    """The weights outside the layers: our name → the family's name."""
    layer: str
    """The family's name of layer `{i}` in the `{stack}`, which is "encoder" or "decoder"."""
    parts: Mapping[str, Mapping[str, str | list[str]]]
    """For each stack, the weights of a layer: our name → the family's name, or a list of names whose rows are
    joined."""
    positions: tuple[str, str]
    """The family's names of the position tables of source and target."""
    norm_parts: tuple[str, str] = ("weight", "bias")
    """The family's names of a layer norm's gain and bias."""
    unbiased_norm: bool = False
    """Whether the layer norm divides by the unbiased standard deviation (with n − 1) plus 1e-6."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Parts of names that some copies of the implementation spell differently → the spelling in `outside` and
    `parts`."""
    all_copies: bool = False
    """Whether a state dict must contain each shared matrix under all its names; if not, missing copies are added."""


def _torch_attention(ours: str, theirs: str) -> dict[str, str | list[str]]:
    """Return our names and the names in torch.nn.MultiheadAttention for the projections of an attention."""
    return {
        f"{ours}.input_projection.{{p}}": f"{theirs}.in_proj_{{p}}",
        f"{ours}.output_projection.{{p}}": f"{theirs}.out_proj.{{p}}",
    }


def _separate_attention(ours: str, theirs: str, letters: Sequence[str]) -> dict[str, str | list[str]]:
    """Return our and the family's names for an attention with four matrices: queries, keys, values and output."""
    *inputs, output = (f"{theirs.format(letter)}.{{p}}" for letter in letters)
    return {f"{ours}.input_projection.{{p}}": inputs, f"{ours}.output_projection.{{p}}": output}


def _capstone_attention(name: str) -> dict[str, str | list[str]]:
    """Return our names and the names in the book's chapter "Write it yourself" for an attention and its layer norm."""
    return {
        **_separate_attention(name, f"{name}.{{}}", ("query", "key", "value", "output")),
        f"{name}_residual.norm.{{n}}": f"{name}_norm.{{n}}",
    }


_CAPSTONE_FEED_FORWARD = {
    "feed_forward.expand.{p}": "feed_forward.expand.{p}",
    "feed_forward.contract.{p}": "feed_forward.contract.{p}",
    "feed_forward_residual.norm.{n}": "feed_forward_norm.{n}",
}

FAMILIES: Mapping[str, Family] = {
    "nn.Transformer": Family(
        title="torch.nn.Transformer, as in PyTorch's tutorial on translation",
        settings={"norm": "post", "activation": "relu"},
        outside={
            "source.tokens.weight": "src_tok_emb.embedding.weight",
            "target.tokens.weight": "tgt_tok_emb.embedding.weight",
            "encoder.norm.{n}": "transformer.encoder.norm.{n}",
            "decoder.norm.{n}": "transformer.decoder.norm.{n}",
            "output.{p}": "generator.{p}",
        },
        layer="transformer.{stack}.layers.{i}",
        parts={
            "encoder": {
                **_torch_attention("self_attention", "self_attn"),
                "self_attention_residual.norm.{n}": "norm1.{n}",
                "feed_forward.expand.{p}": "linear1.{p}",
                "feed_forward.contract.{p}": "linear2.{p}",
                "feed_forward_residual.norm.{n}": "norm2.{n}",
            },
            "decoder": {
                **_torch_attention("self_attention", "self_attn"),
                "self_attention_residual.norm.{n}": "norm1.{n}",
                **_torch_attention("cross_attention", "multihead_attn"),
                "cross_attention_residual.norm.{n}": "norm2.{n}",
                "feed_forward.expand.{p}": "linear1.{p}",
                "feed_forward.contract.{p}": "linear2.{p}",
                "feed_forward_residual.norm.{n}": "norm3.{n}",
            },
        },
        positions=("positional_encoding.pos_embedding", "positional_encoding.pos_embedding"),
    ),
    "Trevett": Family(
        title="the sequence-to-sequence Transformer of Ben Trevett's tutorial",
        settings={"norm": "post", "activation": "relu"},
        outside={
            "source.tokens.weight": "encoder.tok_embedding.weight",
            "target.tokens.weight": "decoder.tok_embedding.weight",
            "output.{p}": "decoder.fc_out.{p}",
        },
        layer="{stack}.layers.{i}",
        parts={
            "encoder": {
                **_separate_attention("self_attention", "self_attention.fc_{}", "qkvo"),
                "self_attention_residual.norm.{n}": "self_attn_layer_norm.{n}",
                "feed_forward.expand.{p}": "positionwise_feedforward.fc_1.{p}",
                "feed_forward.contract.{p}": "positionwise_feedforward.fc_2.{p}",
                "feed_forward_residual.norm.{n}": "ff_layer_norm.{n}",
            },
            "decoder": {
                **_separate_attention("self_attention", "self_attention.fc_{}", "qkvo"),
                "self_attention_residual.norm.{n}": "self_attn_layer_norm.{n}",
                **_separate_attention("cross_attention", "encoder_attention.fc_{}", "qkvo"),
                "cross_attention_residual.norm.{n}": "enc_attn_layer_norm.{n}",
                "feed_forward.expand.{p}": "positionwise_feedforward.fc_1.{p}",
                "feed_forward.contract.{p}": "positionwise_feedforward.fc_2.{p}",
                "feed_forward_residual.norm.{n}": "ff_layer_norm.{n}",
            },
        },
        positions=("encoder.pos_embedding.weight", "decoder.pos_embedding.weight"),
        renamed={
            "self_attention_layer_norm": "self_attn_layer_norm",
            "enc_attention_layer_norm": "enc_attn_layer_norm",
        },
    ),
    "annotated": Family(
        title="the Annotated Transformer",
        settings={"norm": "pre", "activation": "relu"},
        outside={
            "source.tokens.weight": "src_embed.0.lut.weight",
            "target.tokens.weight": "tgt_embed.0.lut.weight",
            "encoder.norm.{n}": "encoder.norm.{n}",
            "decoder.norm.{n}": "decoder.norm.{n}",
            "output.{p}": "generator.proj.{p}",
        },
        layer="{stack}.layers.{i}",
        parts={
            "encoder": {
                **_separate_attention("self_attention", "self_attn.linears.{}", "0123"),
                "self_attention_residual.norm.{n}": "sublayer.0.norm.{n}",
                "feed_forward.expand.{p}": "feed_forward.w_1.{p}",
                "feed_forward.contract.{p}": "feed_forward.w_2.{p}",
                "feed_forward_residual.norm.{n}": "sublayer.1.norm.{n}",
            },
            "decoder": {
                **_separate_attention("self_attention", "self_attn.linears.{}", "0123"),
                "self_attention_residual.norm.{n}": "sublayer.0.norm.{n}",
                **_separate_attention("cross_attention", "src_attn.linears.{}", "0123"),
                "cross_attention_residual.norm.{n}": "sublayer.1.norm.{n}",
                "feed_forward.expand.{p}": "feed_forward.w_1.{p}",
                "feed_forward.contract.{p}": "feed_forward.w_2.{p}",
                "feed_forward_residual.norm.{n}": "sublayer.2.norm.{n}",
            },
        },
        positions=("src_embed.1.pe", "tgt_embed.1.pe"),
        norm_parts=("a_2", "b_2"),
        unbiased_norm=True,
    ),
    "capstone": Family(
        title='the page "Write it yourself" of glassformer\'s book',
        settings={"norm": "post", "activation": "relu"},
        outside={
            "source.tokens.weight": "source_embedding.weight",
            "target.tokens.weight": "target_embedding.weight",
            "encoder.norm.{n}": "encoder_norm.{n}",
            "decoder.norm.{n}": "decoder_norm.{n}",
            "output.{p}": "output.{p}",
        },
        layer="{stack}.{i}",
        parts={
            "encoder": {**_capstone_attention("self_attention"), **_CAPSTONE_FEED_FORWARD},
            "decoder": {
                **_capstone_attention("self_attention"),
                **_capstone_attention("cross_attention"),
                **_CAPSTONE_FEED_FORWARD,
            },
        },
        positions=("source_positions", "target_positions"),
    ),
}
"""The families that are recognised by their weight names."""

_HUGGING_FACE_PARTS = ("q", "k", "v", "out")

HUGGING_FACE = Family(
    title="Marian or Pegasus of Hugging Face's transformers",
    settings={},
    all_copies=True,
    outside={
        "source.tokens.weight": "model.encoder.embed_tokens.weight",
        "target.tokens.weight": "model.decoder.embed_tokens.weight",
        "encoder.norm.{n}": "model.encoder.layer_norm.{n}",
        "decoder.norm.{n}": "model.decoder.layer_norm.{n}",
        "output.{p}": "lm_head.{p}",
    },
    layer="model.{stack}.layers.{i}",
    parts={
        "encoder": {
            **_separate_attention("self_attention", "self_attn.{}_proj", _HUGGING_FACE_PARTS),
            "self_attention_residual.norm.{n}": "self_attn_layer_norm.{n}",
            "feed_forward.expand.{p}": "fc1.{p}",
            "feed_forward.contract.{p}": "fc2.{p}",
            "feed_forward_residual.norm.{n}": "final_layer_norm.{n}",
        },
        "decoder": {
            **_separate_attention("self_attention", "self_attn.{}_proj", _HUGGING_FACE_PARTS),
            "self_attention_residual.norm.{n}": "self_attn_layer_norm.{n}",
            **_separate_attention("cross_attention", "encoder_attn.{}_proj", _HUGGING_FACE_PARTS),
            "cross_attention_residual.norm.{n}": "encoder_attn_layer_norm.{n}",
            "feed_forward.expand.{p}": "fc1.{p}",
            "feed_forward.contract.{p}": "fc2.{p}",
            "feed_forward_residual.norm.{n}": "final_layer_norm.{n}",
        },
    },
    positions=("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"),
)
"""The weight names in folders of Hugging Face's transformers, which contain a shared matrix under each of its names."""


class _Sizes(NamedTuple):
    """The sizes that the names of a state dict show."""

    encoder_layers: int
    decoder_layers: int
    final_norm: bool
    output_bias: bool


def import_state_dict(
    state: StateDict,
    *,
    heads: int,
    pad_id: int,
    bos_id: int,
    eos_id: int,
    family: Family | None = None,
    **settings: Any,
) -> Transformer:
    """Return a model with the weights of a state dict, in evaluation mode and in the widest dtype of these weights.

    Args:
        state: the state dict; buffers that are not weights are ignored. One copy of a shared matrix is enough.
        heads: number of heads of each attention.
        pad_id: id of the padding token.
        bos_id: id of the token that the decoder starts with.
        eos_id: id of the token that ends a sequence.
        family: the family of the state dict, whose names must have no prefix; by default, the family is recognised.
        settings: further fields of ModelConfig that the names do not show, such as `dropout`. By default, `norm` and
            `activation` are the family's.

    A position table that equals the paper's sinusoids is dropped, unless the settings have `positions="learned"`. Any
    other position table becomes a learned table.

    Raises:
        CheckpointError: the names belong to no known family, a weight is missing or unknown, or shapes contradict each
            other.
        ConfigError: a setting is impossible with these weights.
    """
    if family is None:
        family, state = recognised({"": state})
    state = _usual_names(state, family)
    sizes = _sizes(state, family)
    # An unknown weight may be the missing copy of a shared matrix under a different name.
    if not (family.all_copies or _unknown(state, family, sizes)):
        state = _with_copies(state, family, settings)
    weights = dict(_weights(state, family, sizes))
    weights |= _norms(weights, family)
    tables = _tables(state, family)
    config = ModelConfig(
        **{
            "source_vocab_size": len(weights["source.tokens.weight"]),
            "target_vocab_size": len(weights["target.tokens.weight"]),
            "d_model": weights["source.tokens.weight"].shape[1],
            "d_ff": weights["encoder.layers.0.feed_forward.expand.bias"].shape[0],
            "heads": heads,
            "tie_embeddings": _equal(weights, "source.tokens.weight", "target.tokens.weight"),
            "tie_output": _equal(weights, "target.tokens.weight", "output.weight"),
            "pad_id": pad_id,
            "bos_id": bos_id,
            "eos_id": eos_id,
            **sizes._asdict(),
            **family.settings,
            **_positions(tables, settings),
            **settings,
        }
    )
    if config.positions == "learned":
        weights |= {f"{side}.positions.table": table[: config.max_length] for side, table in tables.items()}
    if config.tie_output:
        del weights["output.weight"]
    if config.tie_embeddings:
        del weights["target.tokens.weight"]
    model = Transformer(config).to(_widest(weights))
    put_weights(model, weights, f"the state dict of {family.title}")
    return model.eval()


def _widest(weights: StateDict) -> torch.dtype:
    """Return the widest floating-point format of these weights; formats of 8 bits do not count."""
    dtypes = {weight.dtype for weight in weights.values() if weight.is_floating_point() and weight.itemsize > 1}
    return reduce(torch.promote_types, dtypes or {torch.float32})


def norm_difference(model: Transformer) -> float:
    """Return how far a model's logits differ at most from the Annotated Transformer's logits with the same weights.

    The tokens are random. The Annotated Transformer's layer norm adds 1e-6 to the unbiased standard deviation; our
    layer norm adds 1e-5 to the variance.
    """
    ours = copy.deepcopy(model).double()
    theirs = copy.deepcopy(ours)
    for module in list(theirs.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.LayerNorm):
                setattr(module, name, _AnnotatedNorm(child))
    sizes, chance = (model.config.source_vocab_size, model.config.target_vocab_size), torch.Generator().manual_seed(1)
    source, target = (torch.randint(1, size, (4, RANDOM_TOKENS), generator=chance) for size in sizes)
    with torch.no_grad():
        return float((ours(source, target) - theirs(source, target)).abs().max())


class _AnnotatedNorm(nn.Module):
    """The Annotated Transformer's layer norm; its gain undoes the scaling by `_norms`."""

    def __init__(self, norm: nn.LayerNorm) -> None:
        super().__init__()
        n = norm.weight.numel()
        self.gain, self.bias = norm.weight * (n / (n - 1)) ** 0.5, norm.bias

    def forward(self, x: Tensor) -> Tensor:
        normed: Tensor = self.gain * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6) + self.bias
        return normed


def import_module(
    module: nn.Module, *, pad_id: int, bos_id: int, eos_id: int, heads: int | None = None, **settings: Any
) -> Transformer:
    """Return a Transformer, in evaluation mode, with copies of the weights of your own module.

    The module must have the names of a known tutorial: PyTorch's tutorial on translation (`nn.Transformer`), Ben
    Trevett's tutorial, the Annotated Transformer, or this project's page "Write it yourself". If the module contains an
    `nn.Transformer`, the number of heads, the order of the norms and the activation are taken from it.

    Args:
        module: the module, which is not changed.
        pad_id: id of the padding token.
        bos_id: id of the token that the decoder starts with.
        eos_id: id of the token that ends a sequence.
        heads: number of heads of each attention; needed if the module contains no `nn.Transformer`.
        settings: further fields of ModelConfig.

    Raises:
        CheckpointError: the names belong to no known family, or a weight is missing or unknown.
        ConfigError: `heads` is missing, or the module computes something that glassformer's Transformer cannot.

    >>> import glassformer as gf
    >>> model = gf.import_module(tutorial, pad_id=1, bos_id=2, eos_id=3)             # doctest: +SKIP
    >>> gf.check(model)                                                              # doctest: +SKIP
    """
    found = _of_torch(module)
    heads = heads or found.pop("heads", None)
    if heads is None:
        raise ConfigError(
            "heads: expected the number of attention heads, got nothing; give it, because the weights do not show it"
        )
    ids: dict[str, Any] = {"pad_id": pad_id, "bos_id": bos_id, "eos_id": eos_id}
    return import_state_dict(module.state_dict(), heads=heads, **ids, **{**found, **settings})


def recognised(
    state_dicts: StateDicts, prefix: str | None = None, families: Mapping[str, Family] = FAMILIES
) -> tuple[Family, StateDict]:
    """Return the family of the model in these state dicts, and the model's weights by their names without prefixes.

    Args:
        state_dicts: the state dicts of a file, by their place in the file.
        prefix: the beginning of the names of the model's tensors; needed if there are several models.
        families: the families to which the model may belong.

    Raises:
        CheckpointError: no family has any of the names, or there are several different models.
    """
    known = {key: {*_first_names(family), *family.positions} for key, family in families.items()}
    found = the_model(state_dicts, known, prefix)
    if found is None:
        titles = "; ".join(family.title for family in families.values())
        some = min((name for state in state_dicts.values() for name in state), default="")
        raise CheckpointError(
            f"the state dict's names, such as {quoted(some)}, belong to no known model; expected one of: {titles}"
        )
    key, state = found
    return families[key], state


def _of_torch(module: nn.Module) -> dict[str, Any]:
    """Return the fields of ModelConfig that an `nn.Transformer` inside a module shows.

    Raises:
        ConfigError: the module's layer norms have a different epsilon than ours, or its activation is unknown or not
            the same in all layers.
    """
    inside = next((part for part in module.modules() if isinstance(part, nn.Transformer)), None)
    if inside is None:
        return {}
    layer = inside.encoder.layers[0]
    if layer.norm1.eps != nn.LayerNorm(1).eps:
        raise ConfigError(f"layer_norm_eps: expected 1e-05, the only supported value, got {layer.norm1.eps}")
    encoder, decoder = (
        {_computed(one.activation) for one in stack.layers} for stack in (inside.encoder, inside.decoder)
    )
    if encoder != decoder or len(encoder) > 1:
        raise ConfigError(
            f"activation: expected one activation in all layers, got {', '.join(sorted(encoder))} in the encoder and "
            f"{', '.join(sorted(decoder))} in the decoder; such a model cannot be imported (nn.Transformer replaces a "
            "module such as nn.SiLU() by relu in its decoder: give a function such as F.silu before training)"
        )
    norm = "pre" if layer.norm_first else "post"
    return {"heads": inside.nhead, "norm": norm, "activation": encoder.pop(), "dropout": layer.dropout.p}


@torch.no_grad()
def _computed(activation: Callable[[Tensor], Tensor]) -> Activation:
    """Return the activation that a function or a module computes.

    Raises:
        ConfigError: it computes no activation of ours.
    """
    x = torch.linspace(-30, 30, 601)
    theirs = activation(x.clone())  # the module may work in place
    for name, ours in ACTIVATIONS.items():
        if torch.allclose(theirs, ours(x), rtol=1e-5, atol=1e-6):  # float32 rounding; tanh's approximation differs more
            return name
    raise ConfigError(
        f"activation: expected a function or module that computes {' or '.join(ACTIVATIONS)}, got "
        f"{getattr(activation, '__name__', activation)}; such a model cannot be imported"
    )


def _usual_names(state: StateDict, family: Family) -> dict[str, Tensor]:
    """Return the state dict with its names in the spelling of the family's table."""
    usual = {}
    for name, tensor in state.items():
        for spelling, known in family.renamed.items():
            name = name.replace(f".{spelling}.", f".{known}.")
        usual[name] = tensor
    return usual


def _with_copies(state: StateDict, family: Family, settings: Mapping[str, Any]) -> StateDict:
    """Return the state dict with each shared matrix under all its names; many programs save it under one name only.

    Raises:
        ConfigError: the target embedding is missing and may be a copy of the source embedding or of the output matrix.
    """
    source, target = (family.outside[f"{side}.tokens.weight"] for side in ("source", "target"))
    output = family.outside["output.{p}"].format(p="weight")
    missing = {source, target, output} - state.keys()
    if missing == {target} and len(state[source]) == len(state[output]) and not _equal(state, source, output):
        ties = [name for name in ("tie_embeddings", "tie_output") if settings.get(name)]
        if len(ties) != 1:
            raise ConfigError(
                f"the state dict of {family.title} lacks {quoted(target)}, which may be a copy of {quoted(source)} or "
                f"of {quoted(output)}; choose one by --set model.tie_embeddings=true or --set model.tie_output=true"
            )
        return {**state, target: state[source if ties == ["tie_embeddings"] else output]}
    nearest_first = {source: (target, output), target: (output, source), output: (target, source)}
    copies = {name: next((one for one in nearest_first[name] if one in state), None) for name in missing}
    return {**state, **{name: state[other] for name, other in copies.items() if other is not None}}


def _sizes(state: StateDict, family: Family) -> _Sizes:
    return _Sizes(
        encoder_layers=_layers(state, family, "encoder"),
        decoder_layers=_layers(state, family, "decoder"),
        final_norm=any(name in state for name in _their_names(family, family.outside.get("encoder.norm.{n}", ""))),
        output_bias=family.outside["output.{p}"].format(p="bias") in state,
    )


def _layers(state: StateDict, family: Family, stack: str) -> int:
    pattern = re.escape(family.layer.format(stack=stack, i="#")).replace(re.escape("#"), r"(\d+)")
    numbers = {int(match[1]) for name in state if (match := re.match(pattern + r"\.", name))}
    if numbers != set(range(len(numbers))) or not numbers:
        expected = family.layer.format(stack=stack, i=0)
        raise CheckpointError(
            f"the state dict of {family.title}: expected layers {expected}, … without gaps, got {sorted(numbers)}"
        )
    return len(numbers)


def _weights(state: StateDict, family: Family, sizes: _Sizes) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights by our names, without position tables.

    Raises:
        CheckpointError: a weight is missing or unknown.
    """
    unknown = _unknown(state, family, sizes)
    for ours, theirs in _names(family, sizes):
        for name in theirs:
            if name not in state:
                raise CheckpointError(f"the state dict of {family.title} lacks {quoted(name)}{nearest(name, unknown)}")
        yield ours, torch.cat([state[name].detach() for name in theirs]) if len(theirs) > 1 else state[theirs[0]]
    if unknown:
        raise CheckpointError(
            f"the state dict of {family.title} has a weight that such a model does not have: {quoted(unknown[0])} of "
            f"shape {tuple(state[unknown[0]].shape)}"
        )


def _unknown(state: StateDict, family: Family, sizes: _Sizes) -> list[str]:
    """Return the names of weights that a model of these sizes does not have."""
    known = {*family.positions, *(name for _, theirs in _names(family, sizes) for name in theirs)}
    weights = {name for name, tensor in state.items() if tensor.is_floating_point() and tensor.dim() > 0}
    return sorted(weights - known)


def _names(family: Family, sizes: _Sizes) -> Iterator[tuple[str, list[str]]]:
    """Yield each of our weight names with the family's names for it, in a model of these sizes."""
    for ours, theirs in family.outside.items():
        if (".norm." in ours and not sizes.final_norm) or (ours == "output.{p}" and not sizes.output_bias):
            continue
        yield from _pairs(family, ours, [theirs])
    if not sizes.output_bias:
        yield "output.weight", [family.outside["output.{p}"].format(p="weight")]
    for stack, layers in (("encoder", sizes.encoder_layers), ("decoder", sizes.decoder_layers)):
        for i in range(layers):
            prefix = family.layer.format(stack=stack, i=i)
            for part, names in family.parts[stack].items():
                several = [names] if isinstance(names, str) else names
                yield from _pairs(family, f"{stack}.layers.{i}.{part}", [f"{prefix}.{one}" for one in several])


def _pairs(family: Family, ours: str, theirs: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the pairs of names that a pair of templates stands for, such as one for the weight and one for the bias."""
    if "{" not in ours:
        yield ours, theirs
        return
    for part, norm_part in zip(("weight", "bias"), family.norm_parts, strict=True):
        yield ours.format(p=part, n=part), [one.format(p=part, n=norm_part) for one in theirs]


def _their_names(family: Family, template: str) -> list[str]:
    return [template.format(p=part, n=part) for part in family.norm_parts] if template else []


def _first_names(family: Family) -> Iterator[str]:
    """Yield the family's names of the weights outside the layers and in each stack's first layer."""
    sizes = _Sizes(encoder_layers=1, decoder_layers=1, final_norm=True, output_bias=True)
    for _, theirs in _names(family, sizes):
        yield from theirs


def _norms(weights: StateDict, family: Family) -> dict[str, Tensor]:
    """Return the scaled gains of the layer norms, with which our norm gives the results of their norm, except for ε.

    Their norm divides by the unbiased standard deviation (with n − 1), which is √(variance · n/(n − 1)). So the gains
    are multiplied by √((n − 1)/n).
    """
    if not family.unbiased_norm:
        return {}
    gains = {name: weight for name, weight in weights.items() if name.endswith("norm.weight")}
    return {name: gain * ((len(gain) - 1) / len(gain)) ** 0.5 for name, gain in gains.items()}


def _tables(state: StateDict, family: Family) -> dict[str, Tensor]:
    """Return the position tables of the state dict, (positions, d_model), under the keys "source" and "target"."""
    pairs = zip(("source", "target"), family.positions, strict=True)
    return {
        side: state[name].reshape(-1, state[name].shape[-1])
        for side, name in pairs
        if name in state and state[name].is_floating_point()
    }


def _positions(tables: StateDict, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of ModelConfig that describe these position tables, except fields that the caller has set.

    Raises:
        ConfigError: the state dict has no position table, and the caller has not given `positions`.
    """
    longest = {"max_length": min(map(len, tables.values()), default=0)}
    if "positions" in settings:
        return longest if tables and settings["positions"] == "learned" else {}
    if not tables:
        raise ConfigError(
            "model.positions: expected interleaved, halves or none, got nothing; set it, because the state dict has no "
            "position table that shows it"
        )
    for layout in ("interleaved", "halves"):
        if all(is_sinusoidal(table, layout, _rounding(table)) for table in tables.values()):
            return {"positions": layout}
    return {"positions": "learned", **longest}


def _rounding(table: Tensor) -> float:
    """Return how much a sinusoidal position table may differ from the paper's, given the table's number format."""
    return max(SINUSOIDS, torch.finfo(table.dtype).eps)


def is_sinusoidal(table: Tensor, layout: Any, tolerance: float) -> bool:
    """Return whether a position table differs by at most `tolerance` from the paper's sinusoids in this layout."""
    if table.dim() != 2:
        return False
    return bool((sinusoids(len(table), table.shape[1], layout, dtype=table.dtype) - table).abs().max() <= tolerance)


def _equal(weights: StateDict, one: str, other: str) -> bool:
    return weights[one].shape == weights[other].shape and torch.equal(weights[one], weights[other])
