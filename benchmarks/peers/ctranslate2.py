"""CTranslate2, called directly with the weights of our model. It only decodes, and needs no PyTorch.

`inter` translations run in parallel, each with `intra` threads; `precision` is the type of the computation.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
from ctranslate2.specs import common_spec, transformer_spec
from numpy.typing import NDArray
from sentencepiece import SentencePieceProcessor

from benchmarks.peers.task import TOKENIZER, Task, read_task, read_weights

Weights = dict[str, NDArray[np.float32]]
TYPES = {"fp32": "float32", "int8": "int8", "bf16": "bfloat16"}


class CTranslate2:
    """A translator from source ids to target ids."""

    def __init__(self, folder: Path, pieces: list[str], precision: str, inter: int, intra: int) -> None:
        self.pieces, self.ids = pieces, {piece: id for id, piece in enumerate(pieces)}
        self.translator = ctranslate2.Translator(
            str(folder), device="cpu", compute_type=TYPES[precision], inter_threads=inter, intra_threads=intra
        )

    def translate(self, sources: Sequence[Sequence[int]], beam_size: int, batch_size: int) -> list[list[int]]:
        """Pass all sentences in one call, so that CTranslate2 batches them; with batch size 1, pass one per call."""
        if batch_size == 1 < len(sources):
            return [ids for source in sources for ids in self.translate([source], beam_size, 1)]
        results = self.translator.translate_batch(
            [[self.pieces[id] for id in ids] for ids in sources],
            max_batch_size=batch_size,
            beam_size=beam_size,
            max_decoding_length=max(map(len, sources)) + 50,
        )
        return [[self.ids[piece] for piece in result.hypotheses[0]] for result in results]

    def versions(self) -> dict[str, str]:
        """Return the versions of Python and CTranslate2."""
        return {"python": sys.version.split()[0], "ctranslate2": version("ctranslate2")}


def make(folder: Path, precision: str, *, inter: int = 1, intra: int = 0) -> CTranslate2:
    processor = SentencePieceProcessor(model_file=str(folder / TOKENIZER))
    pieces = [processor.id_to_piece(id) for id in range(processor.get_piece_size())]
    with tempfile.TemporaryDirectory() as name:
        converted = Path(name) / "model"
        convert(read_weights(folder), read_task(folder), pieces, converted, "int8" if precision == "int8" else None)
        return CTranslate2(converted, pieces, precision, inter, intra or int(os.environ.get("OMP_NUM_THREADS", "1")))


def convert(weights: Weights, task: Task, pieces: list[str], folder: Path, quantisation: str | None) -> None:
    """Write our weights as a CTranslate2 model with positions in halves and one matrix for the vocabulary."""
    spec: Any = transformer_spec.TransformerSpec.from_config(
        (task.encoder_layers, task.decoder_layers),
        task.heads,
        pre_norm=False,
        activation=common_spec.Activation.RELU,
    )
    embedding = weights["source.tokens.weight"]
    positions = _sinusoids(task.max_length, task.d_model)
    for stack, embeddings in ((spec.encoder, spec.encoder.embeddings[0]), (spec.decoder, spec.decoder.embeddings)):
        embeddings.weight, stack.scale_embeddings = embedding, True
        stack.position_encodings.encodings = positions
    spec.decoder.projection.weight = embedding
    for side in ("encoder", "decoder"):
        for number, layer in enumerate(getattr(spec, side).layer):
            _layer(layer, weights, f"{side}.layers.{number}", task.d_model)
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.bos_token = spec.config.decoder_start_token = pieces[1]
    spec.config.eos_token, spec.config.unk_token = pieces[2], pieces[3]
    spec.config.layer_norm_epsilon = 1e-5
    spec.validate()
    spec.optimize(quantization=quantisation)
    folder.mkdir(parents=True)
    spec.save(str(folder))


def _layer(spec: Any, weights: Weights, name: str, width: int) -> None:
    """Fill one layer. In cross-attention, queries are separate from keys and values."""
    _linears(spec.self_attention, weights, f"{name}.self_attention", [slice(None)])
    if f"{name}.cross_attention.input_projection.weight" in weights:
        _linears(spec.attention, weights, f"{name}.cross_attention", [slice(width), slice(width, None)])
    _fill(spec.ffn.linear_0, weights, f"{name}.feed_forward.expand")
    _fill(spec.ffn.linear_1, weights, f"{name}.feed_forward.contract")
    _norm(spec.ffn.layer_norm, weights, f"{name}.feed_forward_residual.norm")


def _linears(spec: Any, weights: Weights, name: str, parts: Sequence[slice]) -> None:
    for linear, part in zip(spec.linear, parts, strict=False):
        _fill(linear, weights, f"{name}.input_projection", part)
    _fill(spec.linear[-1], weights, f"{name}.output_projection")
    _norm(spec.layer_norm, weights, f"{name}_residual.norm")


def _fill(spec: Any, weights: Weights, name: str, part: slice = slice(None)) -> None:
    spec.weight, spec.bias = weights[f"{name}.weight"][part], weights[f"{name}.bias"][part]


def _norm(spec: Any, weights: Weights, name: str) -> None:
    spec.gamma, spec.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]


def _sinusoids(length: int, width: int) -> NDArray[np.float32]:
    angles = np.arange(length)[:, None] / 10000 ** (np.arange(0, width, 2) / width)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)
