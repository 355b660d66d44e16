"""Convert models from CTranslate2 before 3.0 (2019–2022) to today's variable names and today's `config.json`.

CTranslate2 still loads such models by the same rules: see `TransformerModel` in its `src/models/transformer.cc`,
`SequenceToSequenceModel::initialize` in `src/models/sequence_to_sequence.cc`, and `build_embeddings_scale` in
`src/layers/transformer.cc`.
"""

from typing import Any

import numpy as np

from glassformer.errors import CheckpointError
from glassformer.interop.ctranslate2.binary import (
    HEADS,
    CTranslate2Binary,
    CTranslate2Variable,
    Variables,
    attribute,
)

__all__ = ["told_by_attributes", "with_todays_names"]

_OPENNMT_TF = (
    ("transformer/", ""),
    (":0", ""),
    ("w_embs", "embeddings/weight"),
    ("kernel", "weight"),
    ("LayerNorm", "layer_norm"),
    ("dense", "projection"),
    ("conv1d_", "linear_"),
    ("conv1d", "linear_0"),
)
"""Parts of the names in revision 1, which come from OpenNMT-tf → today's parts; only the first occurrence of a part is
replaced."""
_ATTENTIONS = {
    "encoder": (("multi_head", "self_attention"),),
    "decoder": (("masked_multi_head", "self_attention"), ("multi_head", "attention")),
}
"""Parts of the names of attentions in revision 1 → today's parts, for each stack."""
_SHARED = ("num_heads", "pre_norm", "activation")
_ONCE = {
    "encoder": (*_SHARED, "embeddings_merge"),
    "decoder": (*_SHARED, "alignment_layer", "alignment_heads"),
}
"""Attributes of each stack that, before revision 5, were attributes of the whole model."""
_TOKENS = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
"""The default special tokens, for models whose files do not name them."""
_FLAGS = ("with_source_bos", "with_source_eos", "with_target_bos", "user_decoder_start_tokens")
_FORMER = {
    *(name for names in _ONCE.values() for name in names),
    *_TOKENS,
    *_FLAGS,
    "with_relative_position",  # redundant, because the weights of the layers show it
    "layernorm_embedding",
}
"""Former attributes of the whole model, which CTranslate2 does not use under these names today."""
_FORMER_SCALE = "multiply_by_sqrt_depth"
"""The former name of `scale_embeddings`, an attribute of the embeddings."""


def with_todays_names(binary: CTranslate2Binary) -> Variables:
    """Return the variables under the names that a file of the last revision has."""
    variables: dict[str, CTranslate2Variable] = {}
    for name, variable in binary.variables.items():
        variables.setdefault(_todays(name) if binary.revision == 1 else name, variable)
    if binary.revision < 3:
        heads = np.asarray(HEADS[binary.specification], np.int8)
        variables.setdefault("num_heads", CTranslate2Variable("num_heads", "int8", heads))
    for stack, names in _ONCE.items():
        former = {f"{stack}/scale_embeddings": f"{stack}/embeddings/{_FORMER_SCALE}"}
        if binary.revision < 5:
            former |= {f"{stack}/{name}": name for name in names}
        for alias, name in former.items():
            if name in variables:
                variables.setdefault(alias, variables[name])
    return {
        name: variable
        for name, variable in variables.items()
        if name not in _FORMER and not name.endswith(f"/{_FORMER_SCALE}")
    }


def told_by_attributes(variables: Variables) -> dict[str, Any]:
    """Return the fields of today's `config.json` that were attributes in `model.bin` before binary version 6.

    Raises:
        CheckpointError: an attribute has a wrong type.
    """
    tokens = {name: _text(variables, name, default) for name, default in _TOKENS.items()}
    flags = {name: bool(attribute(variables, name, name == "with_target_bos")) for name in _FLAGS}
    start = tokens["bos_token"] if flags["with_target_bos"] else tokens["eos_token"]
    return {
        **tokens,
        "add_source_bos": flags["with_source_bos"],
        "add_source_eos": flags["with_source_eos"],
        "decoder_start_token": None if flags["user_decoder_start_tokens"] else start,
    }


def _todays(name: str) -> str:
    stack = "encoder" if "encoder" in name else "decoder"
    for former, today in (*_OPENNMT_TF, *_ATTENTIONS[stack]):
        name = name.replace(former, today, 1)
    return name


def _text(variables: Variables, name: str, default: str) -> str:
    """Return the text in a variable, which stores the text's bytes as numbers."""
    if name not in variables:
        return default
    try:
        return variables[name].numbers.tobytes().decode()
    except UnicodeDecodeError as error:
        raise CheckpointError(f"model.bin: expected UTF-8 in {name}; convert the model again") from error
