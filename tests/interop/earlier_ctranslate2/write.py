"""Write test folders with an earlier release of CTranslate2 (see README.md): python3.8 write.py FOLDER.

The release's own specifications make the names, the numbers and the files; this script only draws the weights.
"""

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from ctranslate2 import specs

TARGET = [f"t{number}" for number in range(14)]
SPECIALS = ["<unk>", "<blank>", "<s>", "</s>"]
WORDS = [f"w{number}" for number in range(12)]
D_MODEL, D_FF, HEADS = 8, 10, 2

ONE = {"tied": True, "target": WORDS}
"""One vocabulary and one matrix for source, target and output."""

FOLDERS: Any = {
    "1.20.1": {
        "float32": {},
        "int8": ONE,
        "int16": {"positions": 0, "with_source_eos": True},
        "float16": {"with_source_bos": True, "with_source_eos": True},
    },
    "2.17.0": {
        "float32": {"pre_norm": False, "activation": "SWISH", "with_source_eos": True, "with_target_bos": False, **ONE},
        "int8": {"alignment_layer": 0, "alignment_heads": 2},
    },
    "2.24.0": {
        "int8_float16": {"positions": 0, "with_source_eos": True},
        "int16": {"specials": ["[PAD]", "[UNK]", "[CLS]", "[SEP]"], "with_source_eos": True, **ONE},
    },
}
"""For each release, the settings of its folders."""


def draw(spec: Any, tokens: "tuple[int, int]", positions: int, chance: np.random.Generator) -> None:
    """Set every variable that a specification declares."""

    def numbers(*shape: int, around: float = 0.0) -> Any:
        return (around + 0.5 * chance.standard_normal(shape)).astype(np.float32)

    def norm(part: Any) -> None:
        part.gamma, part.beta = numbers(D_MODEL, around=1), numbers(D_MODEL)

    def linear(part: Any, rows: int, columns: int) -> None:
        part.weight, part.bias = numbers(rows, columns), numbers(rows)

    def attention(part: Any) -> None:
        norm(part.layer_norm)
        rows = [3, 1] if len(part.linear) == 2 else [1, 2, 1]
        for number, count in enumerate(rows):
            linear(part.linear[number], count * D_MODEL, D_MODEL)

    for number, stack in enumerate((spec.encoder, spec.decoder)):
        embedding = stack.embeddings[0] if isinstance(stack.embeddings, list) else stack.embeddings
        embedding.weight = numbers(tokens[number], D_MODEL)
        if not hasattr(stack, "scale_embeddings"):
            embedding.multiply_by_sqrt_depth = True
        if positions:
            stack.position_encodings.encodings = numbers(positions, D_MODEL)
        if hasattr(stack.layer_norm, "gamma"):
            norm(stack.layer_norm)
        for layer in stack.layer:
            attention(layer.self_attention)
            if stack is spec.decoder:
                attention(layer.attention)
            norm(layer.ffn.layer_norm)
            linear(layer.ffn.linear_0, D_FF, D_MODEL)
            linear(layer.ffn.linear_1, D_MODEL, D_FF)
    linear(spec.decoder.projection, tokens[1], D_MODEL)


def write(
    folder: Path,
    quantization: str,
    *,
    specials: "list[str]" = SPECIALS,
    target: "list[str]" = TARGET,
    tied: bool = False,
    positions: int = 30,
    activation: str = "",
    **settings: Any,
) -> None:
    """Write a model; `positions` = 0 writes no table."""
    flags = {name: settings.pop(name) for name in list(settings) if name.startswith("with_")}
    if activation:
        settings["activation"] = specs.common_spec.Activation[activation]
    spec = specs.TransformerSpec((2, 1), HEADS, **settings)
    sides = {"source": [*specials, *WORDS], "target": [*specials, *target]}
    chance = np.random.default_rng(len(folder.name))
    draw(spec, (len(sides["source"]), len(sides["target"])), positions, chance)
    if tied:
        embedding = spec.encoder.embeddings
        part = embedding[0] if isinstance(embedding, list) else embedding
        spec.decoder.embeddings.weight = spec.decoder.projection.weight = part.weight
    if specials != SPECIALS:
        spec.unk_token, spec.bos_token, spec.eos_token = specials[1:]
    for name, value in flags.items():
        setattr(spec, name, value)
    for side, tokens in sides.items():
        if hasattr(spec, "register_vocabulary"):
            spec.register_vocabulary(side, tokens)
        else:
            getattr(spec, f"register_{side}_vocabulary")(tokens)
    spec.validate()
    spec.optimize(quantization=None if quantization == "float32" else quantization)
    folder.mkdir(parents=True)
    spec.save(str(folder))


if __name__ == "__main__":
    release = version("ctranslate2")
    for name, settings in FOLDERS[release].items():
        write(Path(sys.argv[1]) / f"{release}-{name}", name, **settings)
