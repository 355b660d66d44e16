"""What a page gets of a model: configuration, words, weights, the curve of its training, and PyTorch's own numbers.

Small models travel whole, in half precision, and the page computes. Of larger ones a recording travels. All of it is
plain data, ready for JSON; numbers lie side by side in one base64 text, with names, shapes and offsets beside it.

Axes: S source positions · T target positions.
"""

import base64
import copy
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.bundle import Bundle
from glassformer.decoding import Hypothesis, SearchTree
from glassformer.decoding.beam import search_tree
from glassformer.decoding.hypothesis import max_length
from glassformer.decoding.transformer_step import TransformerStep, padded
from glassformer.errors import DataError
from glassformer.explorer.module import strings
from glassformer.explorer.remote import number_bytes, search_data, snapshot_halves, unbatched
from glassformer.explorer.tokenizer_data import tokenizer_data
from glassformer.model.taps import record
from glassformer.model.transformer import Transformer
from glassformer.run import METRICS, SNAPSHOTS, read_log
from glassformer.tasks import CLASSIC, TASKS
from glassformer.text.tokenizer import Tokenizer
from glassformer.text.vocabulary import UNK_ID
from glassformer.training.snapshots import Snapshots
from glassformer.translator import MAX_SOURCE, Translator

__all__ = ["FORMAT_VERSION", "LARGEST_MODEL", "pack", "payload", "rounded"]

FORMAT_VERSION = 1
LARGEST_MODEL = 2_000_000
"""Parameters up to which the weights travel in the page, which then computes everything itself."""
LARGEST_PAGE = 10_000_000
"""Bytes that a page may have; snapshots that do not fit are left out."""
FRAME = 170_000
"""Bytes of the page that are not made here: the module and what is around it."""
LARGEST_TRACE = 4_000_000
"""Bytes of the recording of a model whose weights do not travel."""
LARGEST_COMPARISON = 800_000
"""Bytes of the numbers with which a page compares its own."""
MOST_CHECKPOINTS = 6
MOST_POINTS = 200
"""Points of a curve."""
EXAMPLES = 5

COMPARED = ("logits", "output", "normed", "input", "embedding", "weights")
"""Points with which the page compares its own numbers, in order of worth."""
WORTH = ("weights", "log_probs", "scores", "output", "normed", "embedding", "positions", "input", "added", "heads")
"""Points that are worth most where the page cannot compute, in this order; then come the others."""

Dtype = Literal["float16", "float32"]


def payload(
    translator: Translator, sentence: str = "", *, checkpoints: int = 0, host: str | None = None
) -> dict[str, Any]:
    """Return all that the page needs to show this model, with `sentence` to begin with, ready for JSON.

    Args:
        translator: The model and its words; it stays as it is.
        sentence: What is translated first; unless given, one that the model was made for.
        checkpoints: How many snapshots of the training the page may have, at most 6.
        host: Where the page asks Python; snapshots then need not travel.

    Raises:
        DataError: the sentence cannot be translated.
        CheckpointError: a snapshot is damaged.
    """
    bundle = translator.bundle
    count = sum(parameter.numel() for parameter in translator.model.parameters())
    travels = count <= LARGEST_MODEL
    model = rounded(translator.model) if travels else translator.model
    examples = _examples(bundle)
    sentence = sentence or (examples[0] if examples else _frequent_words(bundle.source_tokenizer))
    source = _source_ids(translator, sentence)
    hypotheses, tree = _searched(bundle, model, source)
    page = {
        "format_version": FORMAT_VERSION,
        "name": bundle.folder.resolve().name,
        "config": bundle.model_config.to_dict(),
        "parameters": count,
        "decoding": asdict(bundle.configuration.decoding),
        "sentence": sentence,
        "examples": examples,
        "strings": strings(),
        "source": tokenizer_data(bundle.source_tokenizer),
        "target": _target_tokenizer(bundle),
        "weights": pack(dict(model.named_parameters()), "float16") if travels else None,
        **_progress(bundle.folder),
        "trace": _trace(model, source, [bundle.model_config.bos_id, *hypotheses[0].tokens[:-1]], whole=not travels),
        "search": None if travels else search_data(bundle.target_tokenizer, hypotheses, tree),
        "host": {"url": host} if host else None,
    }
    snapshots = Snapshots(bundle.folder / SNAPSHOTS, keep=0).paths()
    chosen = _spread(sorted(snapshots), min(checkpoints, MOST_CHECKPOINTS), page["step"])
    carried = chosen if host or not chosen else _spread(chosen, _room(page, count) if travels else 0, page["step"])
    data = {step: None if host else _base64(snapshot_halves(snapshots[step], model)) for step in carried}
    return page | {
        "checkpoints": [{"step": step, "data": halves} for step, halves in data.items()],
        "left_out": [step for step in chosen if step not in carried],
    }


def _room(page: Mapping[str, Any], count: int) -> int:
    """Return how many snapshots of so many weights fit beside what the page has."""
    return (LARGEST_PAGE - FRAME - len(json.dumps(page))) * 3 // 4 // (2 * count)


def rounded(model: Transformer) -> Transformer:
    """Return a copy of a model, in evaluation mode on the CPU, in float32, whose weights are halves."""
    return copy.deepcopy(model).cpu().half().float().eval()


def pack(tensors: Mapping[str, Tensor], dtype: Dtype) -> dict[str, Any]:
    """Return tensors as one base64 text of little-endian numbers, and where each begins, counted in numbers."""
    layout, offset = [], 0
    for name, tensor in tensors.items():
        layout.append({"name": name, "shape": list(tensor.shape), "offset": offset})
        offset += tensor.numel()
    arrays = (tensor.detach().cpu().numpy().astype(dtype) for tensor in tensors.values())
    return {"dtype": dtype, "tensors": layout, "data": _base64(arrays)}


def _frequent_words(tokenizer: Tokenizer) -> str:
    """Return the most frequent words of a vocabulary, for want of a sentence."""
    tokens = tokenizer.tokens(range(len(tokenizer)))
    frequent = (id for id, token in enumerate(tokens) if id > UNK_ID and not re.fullmatch("▁|<0x..>", token))
    return tokenizer.decode(list(islice(frequent, EXAMPLES)))


def _base64(arrays: Iterable[NDArray[Any]]) -> str:
    return base64.b64encode(b"".join(map(number_bytes, arrays))).decode("ascii")


def _examples(bundle: Bundle) -> list[str]:
    configuration = bundle.configuration
    if configuration.data.task == "english-french":
        return [example.source for example in CLASSIC]
    if configuration.data.task in TASKS:
        task = TASKS[configuration.data.task](configuration.run.seed)
        return [example.source for example in task.splits["test"][:EXAMPLES]]
    return []


def _target_tokenizer(bundle: Bundle) -> dict[str, Any] | None:
    """Return the target's tokenizer, or None when the source's is the same."""
    joint = bundle.target_tokenizer is bundle.source_tokenizer
    return None if joint else tokenizer_data(bundle.target_tokenizer)


# One sentence, translated and recorded


def _source_ids(translator: Translator, sentence: str) -> list[int]:
    config = translator.bundle.model_config
    ids = [*translator.bundle.source_tokenizer.encode(sentence), config.eos_id]
    longest = config.max_length if config.positions == "learned" else MAX_SOURCE
    if not 1 < len(ids) <= longest:
        raise DataError(f"{sentence[:40]!r} has {len(ids) - 1} tokens, expected 1 to {longest - 1}: give another one")
    return ids


def _searched(bundle: Bundle, model: Transformer, source: Sequence[int]) -> tuple[list[Hypothesis], SearchTree]:
    """Return the hypotheses of a beam search with the run's settings, and the tree of what it weighed."""
    decoding, config = bundle.configuration.decoding, bundle.model_config
    return search_tree(
        TransformerStep(model, padded(model, [source])),
        beam_size=decoding.beam_size,
        n_best=decoding.beam_size,
        length_penalty=decoding.length_penalty,
        max_length=max_length(config, len(source)),
    )


@torch.no_grad()
def _trace(model: Transformer, source: Sequence[int], target: Sequence[int], *, whole: bool) -> dict[str, Any]:
    """Return PyTorch's numbers: those that are compared, or as many as there is room for, those of most worth first."""
    with record(model) as trace:
        model(padded(model, [source]), padded(model, [target]))
    points = {name: unbatched(value) for name, value in trace.items()}
    if whole:
        chosen = _most_worth(points, WORTH, LARGEST_TRACE)
    else:
        compared = {name: value for name, value in points.items() if _kind(name) in COMPARED}
        chosen = _most_worth(compared, COMPARED, LARGEST_COMPARISON)
    packed = pack({name: value for name, value in points.items() if name in chosen}, "float32")
    return {
        "source_ids": list(source),
        "target_ids": list(target),
        "points": packed["tensors"],
        "data": packed["data"],
    }


def _most_worth(points: Mapping[str, Tensor], worth: Sequence[str], room: int) -> set[str]:
    """Return the names of the points that fit into so many bytes of base64, those of most worth first."""
    chosen = set()
    for name in sorted(points, key=lambda name: (*worth, _kind(name)).index(_kind(name))):
        size = points[name].numel() * 4 * 4 // 3
        if size <= room:
            chosen.add(name)
            room -= size
    return chosen


def _kind(name: str) -> str:
    return name.rpartition(".")[2]


# The training


def _progress(folder: Path) -> dict[str, Any]:
    """Return the curve of the loss, and the step whose weights the run kept."""
    lines = [line for line in read_log(folder / METRICS) if math.isfinite(line.get("loss", math.nan))]
    kinds = {"loss": "step", "validation": "validation"}
    curve = {
        name: _thinned([[line["step"], line["loss"]] for line in lines if line["type"] == kind])
        for name, kind in kinds.items()
    }
    kept = [line["step"] for line in lines if line.get("best") or line.get("kept")]
    return {"step": kept[-1] if kept else None, "curve": curve}


def _thinned(items: Sequence[Any], most: int = MOST_POINTS) -> list[Any]:
    """Return at most so many of the items, evenly chosen, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    return [items[round(place * (len(items) - 1) / (most - 1))] for place in range(most)]


def _spread(steps: Sequence[int], count: int, final: int | None) -> list[int]:
    """Return `count` of the steps, at about equal distances of their logarithms from each other and from the end.

    The end is the step of the run's own weights, which are there anyway; unless it is known, the last of the steps.
    """
    if len(steps) <= count:
        return list(steps)
    if count <= 0:
        return []
    end = max(final or 0, steps[-1])
    ended = end > steps[-1]
    aims = np.linspace(math.log(end), math.log(steps[0]), count + ended)
    free = set(steps)
    for aim in aims[ended:]:
        free.remove(min(free, key=lambda step: abs(math.log(step) - aim)))
    return [step for step in steps if step not in free]
