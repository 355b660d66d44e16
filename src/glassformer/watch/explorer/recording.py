"""The recording of one sentence: all numbers that PyTorch computed for it, in half precision, without the weights.

A page with a recording is small enough to be sent to somebody, whatever the size of the model, because it has no weight
matrices. The page has the gains and biases of the norms, so that it can show the arithmetic of a norm.

Axes: T target positions · V target vocabulary · N recorded words of each position.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.decoding import Hypothesis, SearchTree
from glassformer.decoding.transformer_step import padded
from glassformer.model.taps import record
from glassformer.model.transformer import Transformer
from glassformer.text.tokenizer import Tokenizer
from glassformer.text.vocabulary import EOS_ID
from glassformer.translator import Translator
from glassformer.watch.explorer.opening import openings
from glassformer.watch.explorer.packing import number_bytes, pack
from glassformer.watch.explorer.remote import search_data, unbatched

__all__ = ["RECORDED_WORDS", "best_words", "in_halves", "recorded_data"]

RECORDED_WORDS = 100
"""Maximum number of words per position whose logit and log probability are recorded."""
VOCABULARY_POINTS = ("logits", "log_probs")


def recorded_data(
    translator: Translator, sentence: str, source: Sequence[int], hypotheses: Sequence[Hypothesis], tree: SearchTree
) -> dict[str, Any]:
    """Return the parts of a page that hold a recording.

    The parts are the trace, the search, what the page highlights at first, the norms, and the words that occur.
    """
    bundle, model = translator.bundle, translator.model
    written = hypotheses[0].tokens
    trace = _trace(model, source, [bundle.model_config.bos_id, *written[:-1]], written)
    lit = openings(translator, model, [sentence])
    outputs = [written, *_outputs(tree), *(one.tokens for one in hypotheses)]
    rivals = [one["rival"] for one in lit.values()]
    words = {id for ids in (*outputs, trace["target_ids"], rivals, *trace["words"]["ids"]) for id in ids}
    return {
        "recorded": True,
        "examples": [],
        "openings": lit,
        "source": _words(bundle.source_tokenizer, source, [(sentence, source[:-1])]),
        "target": _words(bundle.target_tokenizer, words, [(bundle.target_tokenizer.decode(o), o) for o in outputs]),
        "weights": pack(_norms(model), "float16"),
        "trace": trace,
        "search": search_data(bundle.target_tokenizer, hypotheses, tree),
    }


@torch.no_grad()
def _trace(model: Transformer, source: Sequence[int], target: Sequence[int], written: Sequence[int]) -> dict[str, Any]:
    """Return all points of one sentence in half precision; logits and log_probs only for N words of each position."""
    with record(model) as trace:
        model(padded(model, [source]), padded(model, [target]))
    points = {name: unbatched(value).float().cpu() for name, value in trace.items()}
    log_probs = points["log_probs"]
    ids = best_words(log_probs, torch.tensor(written, device="cpu"))
    whole = ids.size(1) == log_probs.size(1)
    rest = [] if whole else (1 - log_probs.gather(1, ids).double().exp().sum(1)).clamp(min=0).tolist()
    halves = {name: in_halves(v.gather(1, ids) if name in VOCABULARY_POINTS else v) for name, v in points.items()}
    packed = _packed_once(halves)
    return {
        "source_ids": list(source),
        "target_ids": list(target),
        "dtype": packed["dtype"],
        "points": packed["tensors"],
        "data": packed["data"],
        "words": {"ids": ids.tolist(), "rest": rest},
    }


def best_words(log_probs: Float[Tensor, "T V"], written: Int[Tensor, " T"]) -> Int[Tensor, "T N"]:
    """Return the ids of the most probable words of each position, best first.

    The ids include the word that was written at a position; if this word is not among the best, it replaces the last of
    the best.
    """
    ids = log_probs.topk(min(RECORDED_WORDS, log_probs.size(1))).indices
    missing = (ids != written[:, None]).all(1)
    ids[missing, -1] = written[missing]
    return ids


def in_halves(values: Tensor) -> Tensor:
    """Return values in half precision, but keep finite values finite, such as an imported model's logit of −10⁹."""
    largest = torch.finfo(torch.half).max
    return torch.where(values.isinf(), values, values.clamp(-largest, largest)).half()


def _packed_once(points: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return points as `pack` does, but store equal tensors once, because one sub-layer's output is another's input."""
    numbers = {name: number_bytes(value.numpy()) for name, value in points.items()}
    firsts = {same: name for name, same in reversed(numbers.items())}
    packed = pack({name: points[name] for name, same in numbers.items() if firsts[same] == name}, "float16")
    offsets = {one["name"]: one["offset"] for one in packed["tensors"]}
    layout = [
        {"name": name, "shape": list(value.shape), "offset": offsets[firsts[numbers[name]]]}
        for name, value in points.items()
    ]
    return packed | {"tensors": layout}


def _norms(model: Transformer) -> dict[str, Tensor]:
    """Return the gains and biases of all norms, by name."""
    return {name: in_halves(value) for name, value in model.named_parameters() if ".norm." in name}


def _outputs(tree: SearchTree) -> list[list[int]]:
    """Return the ids from the first token to each node of a tree."""
    return [[one.token for one in tree.path(node.id)] for node in tree.nodes]


def _words(tokenizer: Tokenizer, ids: Iterable[int], texts: Iterable[tuple[str, Sequence[int]]]) -> dict[str, Any]:
    """Return the data that replaces a tokenizer: tokens by id, texts with ids, and whether sources have `<eos>`."""
    some = sorted(set(ids))
    tokens = dict(zip(map(str, some), tokenizer.tokens(some), strict=True))
    ends = {} if tokenizer.eos_id == EOS_ID else {"with_eos": False}
    return {"kind": "recorded", "tokens": tokens, "texts": [[text, list(ids)] for text, ids in texts], **ends}
