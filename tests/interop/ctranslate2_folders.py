"""Random models written by CTranslate2's own specifications, with CTranslate2's names, ids and special tokens."""

import json
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import torch

from glassformer.bundle import Bundle
from glassformer.model.positions import sinusoids
from glassformer.model.transformer import Transformer

Specs = ctranslate2.specs
OPENNMT = ["<blank>", "<unk>", "<s>", "</s>"]
"""The special tokens of OpenNMT, in OpenNMT's order."""


def write_folder(
    folder: Path,
    source: Sequence[str],
    target: Sequence[str],
    *,
    seed: int = 3,
    d_model: int = 24,
    d_ff: int = 37,
    heads: int = 3,
    quantization: str = "float32",
    joint: bool = False,
    tied: bool = False,
    projection_bias: bool = True,
    biases: bool = True,
    positions: int = 50,
    scale: Any = True,
    config: Mapping[str, Any] | None = None,
    variables: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Path:
    """Write a random model with these settings of `TransformerSpec.from_config`; `positions` = 0 writes no table."""
    pre_norm = settings.pop("pre_norm", True)
    spec = Specs.TransformerSpec.from_config((2, 1), heads, pre_norm=pre_norm, **settings)
    chance = np.random.default_rng(seed)

    def numbers(*shape: int, around: float = 0.0, spread: float = 0.3) -> Any:
        return (around + spread * chance.standard_normal(shape)).astype(np.float32)

    def linear(layer: Any, rows: int, columns: int) -> None:
        layer.weight = numbers(rows, columns)
        if biases:
            layer.bias = numbers(rows)

    def norm(layer: Any) -> None:
        layer.gamma = numbers(d_model, around=1)
        if hasattr(layer, "beta"):
            layer.beta = numbers(d_model)

    def stack(part: Any, embedding: Any, size: int) -> None:
        embedding.weight = numbers(size, d_model, spread=0.6)
        part.scale_embeddings = scale
        if positions and hasattr(part, "position_encodings"):
            part.position_encodings.encodings = numbers(positions, d_model)
        for name in ("layer_norm", "layernorm_embedding"):
            if hasattr(part, name):
                norm(getattr(part, name))
        for layer in part.layer:
            for name in ("self_attention", "attention"):
                if hasattr(layer, name):
                    attention(getattr(layer, name))
            norm(layer.ffn.layer_norm)
            linear(layer.ffn.linear_0, d_ff, d_model)
            linear(layer.ffn.linear_1, d_model, d_ff)
            if hasattr(layer.ffn, "linear_0_noact"):
                linear(layer.ffn.linear_0_noact, d_ff, d_model)

    def attention(part: Any) -> None:
        norm(part.layer_norm)
        rows = [3] if len(part.linear) == 2 else [1, 2]
        for layer, count in zip(part.linear, [*rows, 1], strict=True):
            linear(layer, count * d_model, d_model)
        for name in ("relative_position_keys", "relative_position_values"):
            if hasattr(part, name):
                setattr(part, name, numbers(5, d_model // heads))

    stack(spec.encoder, spec.encoder.embeddings[0], len(source))
    stack(spec.decoder, spec.decoder.embeddings, len(target))
    if joint:
        spec.decoder.embeddings.weight = spec.encoder.embeddings[0].weight
    linear(spec.decoder.projection, len(target), d_model)
    if tied:
        spec.decoder.projection.weight = spec.decoder.embeddings.weight
    if not projection_bias:
        spec.decoder.projection.bias = Specs.model_spec.OPTIONAL
    for name, value in (variables or {}).items():
        part = spec
        *path, last = name.split("/")
        for step in path:
            part = part[int(step)] if step.isdecimal() else getattr(part, step)
        part.__dict__[last] = value
    for name, value in (config or {}).items():
        spec.config.add_attribute(name, value)
    spec.register_source_vocabulary(list(source))
    spec.register_target_vocabulary(list(target))
    spec.validate()
    spec.optimize(quantization=quantization)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))
    return folder


def draw(tokens: Sequence[str], count: int, seed: int, longest: int = 12) -> list[list[str]]:
    """Return random texts of these tokens."""
    chance = np.random.default_rng(seed)
    return [list(chance.choice(tokens, chance.integers(1, longest))) for _ in range(count)]


def their_log_probs(
    folder: Path, sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]], compute_type: str = "float32"
) -> list[list[float]]:
    """Return CTranslate2's log probability of each token of each target, with its `eos_token`."""
    translator = ctranslate2.Translator(str(folder), device="cpu", compute_type=compute_type, inter_threads=1)
    results = translator.score_batch([list(one) for one in sources], [list(one) for one in targets])
    return [list(result.log_probs) for result in results]


def our_log_probs(
    bundle: Bundle,
    sources: Sequence[Sequence[str]],
    targets: Sequence[Sequence[str]],
    dtype: torch.dtype = torch.float32,
) -> list[list[float]]:
    """Return a run's log probability of each token of each target, with `<eos>`, from texts of the same words."""
    model = bundle.model().to(dtype)
    source_tokenizer, target_tokenizer = bundle.source_tokenizer, bundle.target_tokenizer
    return [
        _log_probs(
            model,
            [*source_tokenizer.encode(" ".join(source)), source_tokenizer.eos_id],
            [*target_tokenizer.encode(" ".join(target)), target_tokenizer.eos_id],
        )
        for source, target in zip(sources, targets, strict=True)
    ]


def _log_probs(model: Transformer, source: Sequence[int], target: Sequence[int]) -> list[float]:
    with torch.no_grad():
        logits = model(torch.tensor([source]), torch.tensor([[model.config.bos_id, *target[:-1]]]))
    found: list[float] = logits.log_softmax(-1)[0, range(len(target)), target].tolist()
    return found


def largest_difference(
    folder: Path, bundle: Bundle, source: Sequence[str], target: Sequence[str], compute_type: str = "float32"
) -> float:
    """Return the largest difference of a token's log probability between a folder and the run imported from it.

    Args:
        folder: the folder of CTranslate2.
        bundle: the run.
        source: words for random sources.
        target: words for random targets.
        compute_type: the number format in which CTranslate2 computes.
    """
    texts = _texts(source, target)
    return _largest(their_log_probs(folder, *texts, compute_type), our_log_probs(bundle, *texts))


def rounding_error(bundle: Bundle, source: Sequence[str], target: Sequence[str]) -> float:
    """Return the run's largest difference between float32 and float64, on the texts of `largest_difference`."""
    texts = _texts(source, target)
    return _largest(our_log_probs(bundle, *texts), our_log_probs(bundle, *texts, torch.float64))


def _texts(source: Sequence[str], target: Sequence[str]) -> tuple[list[list[str]], list[list[str]]]:
    return draw(source, 20, 1), draw(target, 20, 2)


def _largest(some: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> float:
    return max(abs(a - b) for both in zip(some, others, strict=True) for a, b in zip(*both, strict=True))


def write_opennmt(path: Path, source: Sequence[str], target: Sequence[str], activation: str = "relu") -> Path:
    """Write a random checkpoint of OpenNMT-py, as its training saves it."""
    d_model, d_ff = 24, 37
    generator = torch.Generator().manual_seed(7)

    def numbers(*shape: int) -> torch.Tensor:
        return 0.3 * torch.randn(*shape, generator=generator)

    def linear(name: str, rows: int, columns: int) -> dict[str, torch.Tensor]:
        return {f"{name}.weight": numbers(rows, columns), f"{name}.bias": numbers(rows)}

    def norm(name: str) -> dict[str, torch.Tensor]:
        return {f"{name}.weight": 1 + numbers(d_model), f"{name}.bias": numbers(d_model)}

    def attention(name: str) -> dict[str, torch.Tensor]:
        parts = ("linear_keys", "linear_values", "linear_query", "final_linear")
        return {key: value for part in parts for key, value in linear(f"{name}.{part}", d_model, d_model).items()}

    state: dict[str, torch.Tensor] = {}
    for stack, layers, tokens, norms in (
        ("encoder", "transformer", source, {"layer_norm": "self_attn"}),
        ("decoder", "transformer_layers", target, {"layer_norm_1": "self_attn", "layer_norm_2": "context_attn"}),
    ):
        state[f"{stack}.embeddings.make_embedding.emb_luts.0.weight"] = numbers(len(tokens), d_model)
        state[f"{stack}.embeddings.make_embedding.pe.pe"] = sinusoids(60, d_model, "interleaved").float()[:, None]
        state |= norm(f"{stack}.layer_norm")
        for layer in (f"{stack}.{layers}.{number}" for number in range(2)):
            for name, attended in norms.items():
                state |= norm(f"{layer}.{name}") | attention(f"{layer}.{attended}")
            feed_forward = f"{layer}.feed_forward"
            state |= norm(f"{feed_forward}.layer_norm")
            state |= linear(f"{feed_forward}.w_1", d_ff, d_model) | linear(f"{feed_forward}.w_2", d_model, d_ff)
    options = Namespace(
        encoder_type="transformer",
        decoder_type="transformer",
        enc_layers=2,
        dec_layers=2,
        heads=3,
        position_encoding=True,
        pos_ffn_activation_fn=activation,
    )
    vocabularies = {"src": list(source), "tgt": list(target)}
    output = {name.removeprefix("."): value for name, value in linear("", len(target), d_model).items()}
    torch.save({"model": state, "generator": output, "vocab": vocabularies, "opt": options}, path)
    return path


def write_marian(folder: Path, tokens: Sequence[str], activation: str, *, pre_norm: bool) -> list[str]:
    """Write a random model of Marian with one vocabulary; return the paths of its model and its vocabulary."""
    d_model, d_ff, chance = 24, 37, np.random.default_rng(11)

    def numbers(*shape: int) -> Any:
        return (0.3 * chance.standard_normal(shape)).astype(np.float32)

    def norm(name: str) -> dict[str, Any]:
        return {f"{name}_ln_scale": 1 + numbers(1, d_model), f"{name}_ln_bias": numbers(1, d_model)}

    weights = {"Wemb": numbers(len(tokens), d_model), "decoder_ff_logit_out_b": numbers(1, len(tokens))}
    for stack, attentions in (("encoder", ["self"]), ("decoder", ["self", "context"])):
        if pre_norm:
            weights |= norm(f"{stack}_top")
        for layer in (f"{stack}_l{number}" for number in (1, 2)):
            for attention in (f"{layer}_{kind}" for kind in attentions):
                weights |= {f"{attention}_W{part}": numbers(d_model, d_model) for part in "qkvo"}
                weights |= {f"{attention}_b{part}": numbers(1, d_model) for part in "qkvo"} | norm(f"{attention}_Wo")
            ffn = f"{layer}_ffn"
            weights |= {f"{ffn}_W1": numbers(d_model, d_ff), f"{ffn}_b1": numbers(1, d_ff)}
            weights |= {f"{ffn}_W2": numbers(d_ff, d_model), f"{ffn}_b2": numbers(1, d_model)} | norm(f"{ffn}_ffn")
    settings = {
        "type": "transformer",
        "enc-depth": 2,
        "dec-depth": 2,
        "transformer-heads": 3,
        "transformer-ffn-activation": activation,
        "transformer-preprocess": "n" if pre_norm else "",
        "transformer-postprocess": "da" if pre_norm else "dan",
        "transformer-postprocess-top": "n" if pre_norm else "",
        "transformer-postprocess-emb": "d",
        "transformer-decoder-autoreg": "self-attention",
        "transformer-no-projection": False,
        "transformer-guided-alignment-layer": "last",
    }
    text = "".join(f"{name}: {json.dumps(value)}\n" for name, value in settings.items()).encode()
    if pre_norm:  # Marian's names for the norms of a pre-norm model, except the stacks' final norms
        weights = {
            f"{name}_pre" if "_ln_" in name and "_top_" not in name else name: value for name, value in weights.items()
        }
    np.savez(folder / "model.npz", **weights, **{"special:model.yml": np.frombuffer(text + b"\0", np.uint8)})
    (folder / "vocab.yml").write_text("".join(f"{token}: {id}\n" for id, token in enumerate(tokens)))
    return [str(folder / "model.npz"), str(folder / "vocab.yml")]
