"""One sentence: its ids, its translation, and PyTorch's numbers, with which the page compares its own numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from glassformer.bundle import Bundle
from glassformer.decoding import Hypothesis, SearchTree
from glassformer.decoding.beam import search_tree
from glassformer.decoding.hypothesis import max_length
from glassformer.decoding.transformer_step import TransformerStep, padded
from glassformer.errors import DataError, quoted
from glassformer.model.taps import record
from glassformer.model.transformer import Transformer
from glassformer.translator import Translator
from glassformer.watch.explorer.packing import pack
from glassformer.watch.explorer.remote import unbatched

__all__ = ["searched", "source_ids", "trace_data"]

COMPARED = ("logits", "output", "normed", "input", "embedding", "weights")
"""Points at which the page compares its own numbers with PyTorch's numbers, most useful first. A wrong number at any
other point shows at the next of these points; log_probs follow from the logits."""


def source_ids(translator: Translator, sentence: str) -> list[int]:
    """Return the ids of a source sentence.

    Raises:
        DataError: the sentence is empty or too long for the model.
    """
    config, tokenizer = translator.bundle.model_config, translator.bundle.source_tokenizer
    ids = [*tokenizer.encode(sentence), tokenizer.eos_id]
    max_source = translator.bundle.configuration.decoding.max_source
    longest = config.max_length if config.positions == "learned" else max_source
    if not 1 < len(ids) <= longest:
        raise DataError(
            f"{quoted(sentence)}: expected 1 to {longest - 1} tokens, got {len(ids) - 1}; shorten the sentence"
        )
    return ids


def searched(bundle: Bundle, model: Transformer, source: Sequence[int]) -> tuple[list[Hypothesis], SearchTree]:
    """Return the hypotheses of a beam search with the run's settings, and the tree of its candidates."""
    decoding, config = bundle.configuration.decoding, bundle.model_config
    return search_tree(
        TransformerStep(model, padded(model, [source])),
        n_best=decoding.beam_size,
        max_length=max_length(config, len(source), decoding.extra_length),
        **asdict(decoding),
    )


@torch.no_grad()
def trace_data(model: Transformer, source: Sequence[int], target: Sequence[int], room: int) -> dict[str, Any]:
    """Return PyTorch's numbers at the points of `COMPARED`, as many as fit into `room` bytes."""
    with record(model) as trace:
        model(padded(model, [source]), padded(model, [target]))
    points = {name: unbatched(value) for name, value in trace.items() if _kind(name) in COMPARED}
    chosen = _fitting(points, room)
    packed = pack({name: value for name, value in points.items() if name in chosen}, "float32")
    return {
        "source_ids": list(source),
        "target_ids": list(target),
        "dtype": packed["dtype"],
        "points": packed["tensors"],
        "data": packed["data"],
        "words": None,
    }


def _fitting(points: Mapping[str, Tensor], room: int) -> set[str]:
    """Return the names of the points that fit into `room` bytes of base64, most useful first."""
    chosen = set()
    for name in sorted(points, key=lambda name: COMPARED.index(_kind(name))):
        size = points[name].numel() * 4 * 4 // 3
        if size <= room:
            chosen.add(name)
            room -= size
    return chosen


def _kind(name: str) -> str:
    return name.rpartition(".")[2]
