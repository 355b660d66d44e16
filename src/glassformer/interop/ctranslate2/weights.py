"""Convert the weights of a CTranslate2 model to our names and our order of tokens.

Axes: D d_model · F d_ff.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from glassformer.errors import CheckpointError, ConfigError, VocabularyError, quoted
from glassformer.interop.activations import OF_CTRANSLATE2
from glassformer.interop.ctranslate2.binary import CTranslate2Variable, Variables, attribute
from glassformer.interop.ctranslate2.folder import CTranslate2Folder
from glassformer.interop.ctranslate2.model import EPSILON, POSITIONS, position_table
from glassformer.interop.importing import NEVER_WRITTEN
from glassformer.model.config import ModelConfig
from glassformer.model.shapes import Shape
from glassformer.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID

__all__ = ["Floats", "ImportedRow", "imported_rows", "imported_weights", "starts_from_zeros"]

Floats = NDArray[np.float32]

_MODEL = "model.bin"
PADDING = ("<pad>", "<blank>", "[PAD]", "<PAD>")
"""The usual names of the padding token, which CTranslate2 does not need, because it masks padding by lengths."""
MOST_COPIES = 16
"""Maximum ratio of the model's numbers to the numbers in the file; only a malicious file has more aliases of large
variables."""
_OTHER_ACTIVATIONS = {
    1: "the tanh approximation of gelu",
    4: "the sigmoid approximation of gelu",
    5: "tanh",
    6: "sigmoid",
}
"""CTranslate2's other activations, by their numbers."""
_REFUSED = {
    "relative_": "relative positions",
    "rotary_|max_position_embeddings": "rotary positions",
    "layernorm_embedding/": "a layer norm of the embeddings",
    "linear_0_noact/": "a gated feed-forward network",
    "num_heads_kv": "fewer heads for keys and values than for queries",
    "head_dim": "a width of the heads that is not d_model / heads",
    "sliding_window": "attention to a window of positions",
    "(q|k|v)_norm/": "norms of queries, keys or values",
    "(input|attention|feedforward|shared)_layer_norm/": "additional layer norms",
    "merged_encoder_attention|memory_kv/": "self-attention and cross-attention in one",
    "layer_norm_use_residual": "RMS norm",
    "project_(in|out)/": "embeddings of a width that is not d_model",
    "embeddings_[1-9]": "additional features of the source's words",
    "scale_outputs": "a scale of the decoder's output",
    "final_logit_softcapping": "a limit of the logits",
    "layer_scalar": "a scale of the layer's output",
    "weight_zero": "4-bit weights",
}
"""Parts that glassformer's `Transformer` does not have, by the parts of variable names that show them."""
_FLAGS = {"alibi": "attention that depends on the distance (ALiBi)", "multi_query_attention": _REFUSED["num_heads_kv"]}
"""Attributes of a stack that must be 0."""
_READ = {"num_heads", "pre_norm", "activation", "scale_embeddings", "start_from_zero_embedding"}
"""Attributes of a stack that decide what it computes."""
_IGNORED = {"alignment_layer", "alignment_heads", "embeddings_merge", "alibi_use_positive_positions", "scale_alibi"}
"""Attributes of a stack that change no output; the first two choose the heads by which CTranslate2 aligns words."""
_STACKS = {"encoder": "source", "decoder": "target"}


class ImportedRow(NamedTuple):
    """A row of an imported vocabulary, in our order."""

    token: str
    """The token's name in our tokenizer."""
    id: int | None
    """CTranslate2's id of the row; None for a row of zeros."""
    added: bool = False
    """Whether CTranslate2's vocabulary does not contain this token, so that the model must never write it."""


class _Wanted(NamedTuple):
    """One of our weights, with the names and shapes of the variables whose rows are joined to make this weight."""

    name: str
    parts: Sequence[tuple[str, Shape]]
    optional: bool = False
    """Whether a missing variable stands for zeros."""


def imported_rows(
    tokens: Sequence[str], *, start: str | None, bos: str, eos: str, unk: str, zero_start: bool = False
) -> list[ImportedRow]:
    """Return the rows of a vocabulary in our order: the four special tokens, then all other tokens in their order.

    A special token that CTranslate2's vocabulary does not contain gets a row of zeros. If the start token is `bos`, its
    row becomes `<bos>`. If the start token is a different token, `<bos>` gets a copy of its row, because the token may
    also occur inside a text.

    Args:
        tokens: the tokens, in the order of CTranslate2's ids.
        start: the token that begins each sequence; None if no token does.
        bos: the vocabulary's `bos_token`.
        eos: the token that ends a sequence.
        unk: the unknown token.
        zero_start: whether the embedding of the start token is zeros.

    Raises:
        VocabularyError: the vocabulary does not contain the start token or `eos`.
    """
    ids: dict[str, int] = {}
    for id, token in enumerate(tokens):
        ids.setdefault(token, id)
    if zero_start:
        start = None
    for name, needed in (("eos_token", eos), ("the token that begins a sequence", start)):
        if needed is not None and needed not in ids:
            raise VocabularyError(
                f"{name} is {quoted(needed)}, which the vocabulary lacks; correct config.json or the vocabulary"
            )
    own = {SPECIALS[EOS_ID]: ids.pop(eos)}
    padding = next((name for name in PADDING if name in ids and name not in (start, bos, unk)), None)
    named = [(SPECIALS[UNK_ID], unk), (SPECIALS[PAD_ID], padding)]
    if not zero_start and start in (None, bos):
        named.insert(0, (SPECIALS[BOS_ID], bos))
    for ours, theirs in named:
        if theirs is not None and theirs in ids:
            own[ours] = ids.pop(theirs)
    copied = None if start is None else tokens.index(start)
    first = [
        ImportedRow(ours, own.get(ours, copied if ours == SPECIALS[BOS_ID] else None), ours not in own)
        for ours in SPECIALS
    ]
    used = {*own.values()}
    return first + [ImportedRow(token, id) for id, token in enumerate(tokens) if id not in used]


def imported_weights(
    folder: CTranslate2Folder, source: Sequence[ImportedRow], target: Sequence[ImportedRow]
) -> tuple[ModelConfig, dict[str, Floats]]:
    """Return the configuration and the weights of a model, with the vocabulary rows in the given orders.

    Raises:
        CheckpointError: a variable is missing, has a wrong shape, or holds nan or inf.
        ConfigError: the model computes something that glassformer's `Transformer` cannot.
        VocabularyError: a vocabulary does not fit the embedding.
    """
    variables = folder.variables
    _check_epsilon(folder.config.get("layer_norm_epsilon"))
    fields = _sizes(variables) | _order_of_norms(variables)
    wanted = list(_wanted(fields))
    _refuse_others(variables, {name for weight in wanted for name, _ in weight.parts}, fields)
    _check_size(variables, wanted)
    of_vocabularies, embeddings = _embeddings(folder, source, target, fields["d_model"])
    of_positions, tables = _positions(variables, fields["d_model"])
    weights = {weight.name: _made(variables, weight) for weight in wanted}
    return ModelConfig.from_dict(fields | of_vocabularies | of_positions), weights | embeddings | tables


def starts_from_zeros(folder: CTranslate2Folder) -> bool:
    """Return whether the embedding of the start token consists of zeros, as in models of Marian.

    Raises:
        CheckpointError: the attribute is not a number.
    """
    return bool(attribute(folder.variables, "decoder/start_from_zero_embedding", 0))


def _check_epsilon(epsilon: object) -> None:
    if epsilon not in (None, EPSILON):
        raise ConfigError(
            f"config.json: layer_norm_epsilon: expected {EPSILON}, the only ε that our layer norms have, got "
            f"{quoted(epsilon)}; such a model cannot be imported"
        )


def _same(variables: Variables, name: str, default: float) -> int:
    """Return an attribute that must be equal in encoder and decoder."""
    encoder, decoder = (attribute(variables, f"{stack}/{name}", default) for stack in _STACKS)
    if encoder != decoder:
        raise ConfigError(
            f"{_MODEL}: expected the same {name} in encoder and decoder, as our models have, got {encoder:g} and "
            f"{decoder:g}; such a model cannot be imported"
        )
    return int(encoder)


def _sizes(variables: Variables) -> dict[str, int]:
    embedding = _matrix(variables, "decoder/embeddings/weight")
    return {
        "d_model": embedding.shape[1],
        "heads": _same(variables, "num_heads", 8),
        "d_ff": _matrix(variables, "encoder/layer_0/ffn/linear_0/weight").shape[0],
        **{f"{stack}_layers": _layers(variables, stack) for stack in _STACKS},
    }


def _layers(variables: Variables, stack: str) -> int:
    numbers = {found[1] for name in variables if (found := re.match(rf"{stack}/layer_(\d+)/", name))}
    missing = next(number for number in map(str, range(len(numbers) + 1)) if number not in numbers)
    if int(missing) < len(numbers):
        raise CheckpointError(
            f"{_MODEL}: expected a variable {stack}/layer_{missing}/…, got none; convert the model again"
        )
    return len(numbers)


def _order_of_norms(variables: Variables) -> dict[str, Any]:
    encoder, decoder = (f"{stack}/layer_norm/gamma" in variables for stack in _STACKS)
    if encoder != decoder:
        raise ConfigError(
            f"{_MODEL}: expected a final layer norm in both stacks or in none, got one in the "
            f"{'encoder' if encoder else 'decoder'} only (layer_norm/gamma); such a model cannot be imported"
        )
    activation = _same(variables, "activation", 0)
    if activation not in OF_CTRANSLATE2:
        raise ConfigError(
            f"{_MODEL}: activation: expected one of {', '.join(OF_CTRANSLATE2.values())}, got number {activation} "
            f"({_OTHER_ACTIVATIONS.get(activation, 'unknown')}); such a model cannot be imported"
        )
    norm = "pre" if _same(variables, "pre_norm", 1) else "post"
    return {"norm": norm, "final_norm": encoder, "activation": OF_CTRANSLATE2[activation]}


def _wanted(fields: Mapping[str, Any]) -> Iterator[_Wanted]:
    """Yield the weights of the layers and of the final norms."""
    d_model = fields["d_model"]
    for stack in _STACKS:
        for number in range(fields[f"{stack}_layers"]):
            ours, theirs = f"{stack}.layers.{number}", f"{stack}/layer_{number}"
            attentions = {"self_attention": [(3, "self_attention/linear_0")]}
            if stack == "decoder":
                attentions["cross_attention"] = [(1, "attention/linear_0"), (2, "attention/linear_1")]
            for attention, inputs in attentions.items():
                scope = f"{theirs}/{inputs[0][1].partition('/')[0]}"
                parts = [(f"{theirs}/{name}", (rows * d_model, d_model)) for rows, name in inputs]
                yield from _linear(f"{ours}.{attention}.input_projection", parts)
                yield from _linear(
                    f"{ours}.{attention}.output_projection", [(f"{scope}/linear_{len(inputs)}", (d_model, d_model))]
                )
                yield from _norm(f"{ours}.{attention}_residual.norm", f"{scope}/layer_norm", d_model)
            ffn, d_ff = f"{theirs}/ffn", fields["d_ff"]
            yield from _linear(f"{ours}.feed_forward.expand", [(f"{ffn}/linear_0", (d_ff, d_model))])
            yield from _linear(f"{ours}.feed_forward.contract", [(f"{ffn}/linear_1", (d_model, d_ff))])
            yield from _norm(f"{ours}.feed_forward_residual.norm", f"{ffn}/layer_norm", d_model)
        if fields["final_norm"]:
            yield from _norm(f"{stack}.norm", f"{stack}/layer_norm", d_model)


def _linear(ours: str, parts: Sequence[tuple[str, Shape]]) -> Iterator[_Wanted]:
    yield _Wanted(f"{ours}.weight", [(f"{name}/weight", shape) for name, shape in parts])
    yield _Wanted(f"{ours}.bias", [(f"{name}/bias", shape[:1]) for name, shape in parts], optional=True)


def _norm(ours: str, theirs: str, d_model: int) -> Iterator[_Wanted]:
    yield _Wanted(f"{ours}.weight", [(f"{theirs}/gamma", (d_model,))])
    yield _Wanted(f"{ours}.bias", [(f"{theirs}/beta", (d_model,))])


def _refuse_others(variables: Variables, known: set[str], fields: Mapping[str, Any]) -> None:
    """Raise ConfigError for a variable that glassformer's `Transformer` does not have."""
    for stack in _STACKS:
        known |= {f"{stack}/{name}" for name in (*_READ, *_IGNORED, *_FLAGS, "position_encodings/encodings")}
        known |= {f"{stack}/{name}/weight" for name in ("embeddings", "embeddings_0", "projection")}
        for name, what in _FLAGS.items():
            if attribute(variables, f"{stack}/{name}", 0):
                raise _refused(f"{stack}/{name}", what)
    known.add("decoder/projection/bias")
    usual = math.sqrt(fields["heads"] / fields["d_model"]) if fields["heads"] > 0 else 0
    for name in variables:
        if name in known or name.removesuffix("_scale") in known:
            continue
        if name.endswith("/queries_scale"):
            if not math.isclose(attribute(variables, name, 1), usual, rel_tol=1e-5):
                raise _refused(name, "a scale of the scores that is not 1 / √d_k")
            continue
        kinds = (kind for part, kind in _REFUSED.items() if re.search(rf"(^|/|_)({part})", name))
        raise _refused(name, next(kinds, "a part of an unknown kind"))


def _refused(name: str, what: str) -> ConfigError:
    return ConfigError(
        f"{_MODEL}: the model has {what} ({name}), which glassformer's Transformer does not compute; such a model "
        "cannot be imported"
    )


def _check_size(variables: Variables, wanted: Sequence[_Wanted]) -> None:
    """Refuse a file in which so many aliases name the same weights that their copies would fill the memory."""
    stored = sum(one.numbers.size for one in {id(one): one for one in variables.values()}.values())
    needed = sum(math.prod(shape) for weight in wanted for _, shape in weight.parts if not weight.optional)
    if needed > MOST_COPIES * stored:
        raise CheckpointError(
            f"{_MODEL} is damaged: its aliases make {needed:,} numbers out of {stored:,}, more than {MOST_COPIES} "
            "times as many; convert the model again"
        )


def _made(variables: Variables, weight: _Wanted) -> Floats:
    parts = [
        np.zeros(shape, np.float32) if weight.optional and name not in variables else _found(variables, name, shape)
        for name, shape in weight.parts
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _found(variables: Variables, name: str, shape: Shape) -> Floats:
    if name.endswith("/beta") and name not in variables and name.replace("beta", "gamma") in variables:
        raise _refused(name.replace("beta", "gamma"), "RMS norm, without beta")
    if name not in variables:
        raise CheckpointError(f"{_MODEL}: expected a variable {name}, got none; convert the model again")
    if variables[name].shape != shape:
        raise ConfigError(
            f"{_MODEL}: expected shape {shape} for {name}, got {variables[name].shape}; our layers have equal widths, "
            "and such a model cannot be imported"
        )
    return variables[name].floats()


def _matrix(variables: Variables, name: str) -> CTranslate2Variable:
    if name not in variables or len(variables[name].shape) != 2:
        got = variables[name].shape if name in variables else "none"
        raise CheckpointError(f"{_MODEL}: expected a matrix {name}, got {got}; convert the model again")
    return variables[name]


def _embeddings(
    folder: CTranslate2Folder, source: Sequence[ImportedRow], target: Sequence[ImportedRow], d_model: int
) -> tuple[dict[str, Any], dict[str, Floats]]:
    """Return the fields of ModelConfig for embeddings and output matrix, and these matrices in our order of tokens."""
    variables = folder.variables
    single = "encoder/embeddings/weight"
    encoder = _matrix(variables, single if single in variables else "encoder/embeddings_0/weight")
    decoder, projection = (_matrix(variables, f"decoder/{name}/weight") for name in ("embeddings", "projection"))
    for matrix, tokens in ((encoder, folder.source), (decoder, folder.target), (projection, folder.target)):
        if matrix.shape != (len(tokens), d_model):
            raise VocabularyError(
                f"{_MODEL}: expected {matrix.name} of shape {(len(tokens), d_model)}, with a row for each token of the "
                f"vocabulary, got {matrix.shape}; give the vocabulary with which this model was converted"
            )
    scales = [_scale(variables, stack, d_model) for stack in _STACKS]
    ids = [[row.id for row in rows] for rows in (source, target)]
    tie_embeddings = encoder.equals(decoder) and scales[0] == scales[1] and ids[0] == ids[1]
    tie_output = projection.equals(decoder) and scales[1] == 1
    weights = {"source.tokens.weight": _ordered(encoder.floats(), source, scales[0])}
    if not tie_embeddings:
        weights["target.tokens.weight"] = _ordered(decoder.floats(), target, scales[1])
    if not tie_output:
        weights["output.weight"] = _ordered(projection.floats(), target)
    output_bias = "decoder/projection/bias" in variables or any(row.added for row in target)
    if output_bias:
        weights["output.bias"] = _output_bias(variables, target, len(folder.target))
    sizes = {"source_vocab_size": len(source), "target_vocab_size": len(target)}
    ties = {"tie_embeddings": tie_embeddings, "tie_output": tie_output, "output_bias": output_bias}
    return sizes | ties, weights


def _scale(variables: Variables, stack: str, d_model: int) -> float:
    """Return the factor for the embeddings that, with the factor √d_model of our model, gives CTranslate2's vectors."""
    name, root = f"{stack}/scale_embeddings", math.sqrt(d_model)
    if name not in variables:
        return 1.0
    value = attribute(variables, name, 1)
    if variables[name].kind == "int8":  # an int8 scalar is a flag that says whether embeddings are scaled
        return 1.0 if value else 1 / root
    return 1.0 if math.isclose(value, root, rel_tol=1e-6) else value / root


def _ordered(weight: Floats, rows: Sequence[ImportedRow], scale: float = 1.0) -> Floats:
    result = weight[[row.id or 0 for row in rows]]
    result[[row.id is None for row in rows]] = 0
    return result if scale == 1 else result * np.float32(scale)


def _output_bias(variables: Variables, target: Sequence[ImportedRow], size: int) -> Floats:
    name = "decoder/projection/bias"
    bias = _found(variables, name, (size,)) if name in variables else np.zeros(size, np.float32)
    result = _ordered(bias, target)
    result[[row.added for row in target]] = NEVER_WRITTEN
    return result


def _positions(variables: Variables, d_model: int) -> tuple[dict[str, Any], dict[str, Floats]]:
    """Return the fields of ModelConfig for the position tables, and the tables if they are not sinusoidal."""
    tables = {side: _table(variables, stack, d_model) for stack, side in _STACKS.items()}
    for kind in ("interleaved", "halves", "none"):
        if all(_is_table(table, kind) for table in tables.values()):
            return {"positions": kind}, {}
    length = min(map(len, tables.values()))
    return (
        {"positions": "learned", "max_length": length},
        {f"{side}.positions.table": table[:length] for side, table in tables.items()},
    )


def _table(variables: Variables, stack: str, d_model: int) -> Floats:
    """Return a stack's position vectors (L, D); if the file has no table, the vectors that CTranslate2 computes."""
    name = f"{stack}/position_encodings/encodings"
    if name in variables:
        return _found(variables, name, (variables[name].shape[0] if variables[name].shape else 0, d_model))
    if d_model % 2 or d_model < 4:
        raise ConfigError(
            f"{_MODEL}: expected {name}, got none; CTranslate2 cannot compute positions of width {d_model}"
        )
    # As in `generate_sinusoidal_position_encoding` in CTranslate2's layers/common.cc: positions count from 1, and the #
    # longest wavelength is in the last dimension.
    rates = np.exp(-math.log(10000) / (d_model // 2 - 1) * np.arange(d_model // 2))
    angles = np.arange(1, POSITIONS + 1)[:, None] * rates
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1).astype(np.float32)


def _is_table(table: Floats, kind: Any) -> bool:
    """Return whether a table holds the sinusoids of this kind, up to the rounding of angles in float32."""
    allowed = np.minimum(1e-6 * (1 + np.arange(len(table))), 1e-3)[:, None]
    return bool((np.abs(table - position_table(kind, *table.shape)) <= allowed).all())
