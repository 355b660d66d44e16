"""What Python answers when a page or a notebook's cell asks it to compute: models too large for the page, snapshots.

A question is a JSON object with a "kind"; an answer is a JSON object and arrays of numbers, which travel beside it. In
`points`, offsets are counted in numbers, from the first number of the first array.
"""

import json
import threading
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.bundle import put_weights, read_weights
from glassformer.decoding import Hypothesis, SearchTree
from glassformer.decoding.beam import search_tree
from glassformer.decoding.hypothesis import EXTRA_LENGTH, max_length
from glassformer.decoding.transformer_step import padded
from glassformer.errors import CheckpointError, ConfigError, ShapeError, nearest
from glassformer.inspection.changes import Changes, changed
from glassformer.inspection.forced import decoding
from glassformer.model.taps import Trace, record
from glassformer.model.transformer import Transformer
from glassformer.run import SNAPSHOTS
from glassformer.text.tokenizer import Tokenizer
from glassformer.training.snapshots import Snapshots
from glassformer.translator import MAX_SOURCE, Translator

__all__ = ["Answer", "Remote", "number_bytes", "search_data", "snapshot_halves", "unbatched"]

Answer = tuple[dict[str, Any], list[NDArray[Any]]]
"""The JSON object, and the numbers beside it."""

LONGEST = MAX_SOURCE + EXTRA_LENGTH + 1
"""Ids of a source or a target, `<bos>` included."""
LARGEST_BEAM = 64
KEPT_TRACES = 3
"""A page fetches the points of a trace one by one; so many traces are kept for it."""
_STRICT = {"extra": "forbid", "strict": True, "allow_inf_nan": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Encode:
    """How is a text cut?"""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT
    kind: Literal["encode"]
    side: Literal["source", "target"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trace:
    """What are the numbers at these points (unless given: weights and log_probs) for these ids?"""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT
    kind: Literal["trace"]
    source_ids: list[int]
    target_ids: list[int]
    changes: dict[str, Any] = field(default_factory=dict)
    names: list[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """What does the beam find?"""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT
    kind: Literal["search"]
    source_ids: list[int]
    prefix_ids: list[int] = field(default_factory=list)
    beam_size: int
    length_penalty: float
    n_best: int
    changes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checkpoint:
    """What were the weights at this step?"""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT
    kind: Literal["checkpoint"]
    step: int


_Question = _Encode | _Trace | _Search | _Checkpoint
_QUESTIONS = {"encode": _Encode, "trace": _Trace, "search": _Search, "checkpoint": _Checkpoint}


class Remote:
    """Answers questions about one model, one at a time, from whatever thread they come."""

    def __init__(self, translator: Translator) -> None:
        self._bundle, self._model = translator.bundle, translator.model
        self._lock = threading.Lock()
        self._traces: dict[str, Trace] = {}
        self._snapshot: tuple[int, Transformer] | None = None

    @torch.no_grad()
    def answer(self, message: Mapping[str, Any]) -> Answer:
        """Return the answer to a question.

        Raises:
            ConfigError: the question is none, or asks for changes that the model cannot have.
            GlassformerError: the model cannot read these ids, or the snapshot is not there.
        """
        question = _question(message)
        with self._lock:
            match question:
                case _Encode():
                    return self._encoded(question), []
                case _Trace():
                    return self._traced(question)
                case _Search():
                    return self._found(question), []
                case _Checkpoint():
                    return self._weights(question.step)

    def _encoded(self, asked: _Encode) -> dict[str, Any]:
        bundle = self._bundle
        tokenizer = bundle.source_tokenizer if asked.side == "source" else bundle.target_tokenizer
        ids = tokenizer.encode(asked.text)
        return {"ids": ids, "tokens": tokenizer.tokens(ids)}

    def _traced(self, asked: _Trace) -> Answer:
        trace = self._trace(asked)
        names = [name for name in trace if name.endswith((".weights", "log_probs"))]
        points, arrays, offset = [], [], 0
        for name in names if asked.names is None else asked.names:
            if name not in trace:
                raise ConfigError(f"the model has no point {name!r}{nearest(name, trace)}")
            value = unbatched(trace[name])
            points.append({"name": name, "shape": list(value.shape), "offset": offset})
            arrays.append(value.float().cpu().numpy())
            offset += value.numel()
        return {"points": points, "names": list(trace)}, arrays

    def _trace(self, asked: _Trace) -> Trace:
        key = json.dumps([asked.source_ids, asked.target_ids, asked.changes], sort_keys=True)
        if key not in self._traces:
            model, changes = self._changed(asked.changes)
            source, target = (_batch(model, ids) for ids in (asked.source_ids, asked.target_ids))
            with changed(model, changes), record(model) as trace:
                model(source, target)
            self._traces = dict(list(self._traces.items())[1 - KEPT_TRACES :]) | {key: trace}
        return self._traces[key]

    def _found(self, asked: _Search) -> dict[str, Any]:
        if asked.beam_size > LARGEST_BEAM:
            raise ConfigError(f"beam_size is {asked.beam_size}, expected 1 to {LARGEST_BEAM}")
        model, changes = self._changed(asked.changes)
        with decoding(model, _batch(model, asked.source_ids), changes) as step:
            hypotheses, tree = search_tree(
                step,
                beam_size=asked.beam_size,
                n_best=asked.n_best,
                length_penalty=asked.length_penalty,
                max_length=max_length(model.config, len(asked.source_ids)),
                prefix=asked.prefix_ids,
            )
        return search_data(self._bundle.target_tokenizer, hypotheses, tree)

    def _changed(self, values: Mapping[str, Any]) -> tuple[Transformer, Changes]:
        """Return the model of the checkpoint that the changes name, and the changes to be made in it."""
        rest = {name: value for name, value in values.items() if name != "checkpoint"}
        step = values.get("checkpoint")
        if not (step is None or isinstance(step, int)):
            raise ConfigError(f"changes.checkpoint = {step!r}, expected a step of the training, or null")
        return self._model if step is None else self._at(step), Changes.from_dict(rest)

    def _at(self, step: int) -> Transformer:
        """Return the model as it was at a step of its training."""
        if self._snapshot is None or self._snapshot[0] != step:
            model, path = deepcopy(self._model), self._snapshot_path(step)
            put_weights(model, read_weights(path), str(path))
            self._snapshot = (step, model)
        return self._snapshot[1]

    def _weights(self, step: int) -> Answer:
        """Return a snapshot's weights as halves, in the order of the model's parameters."""
        return {"step": step}, snapshot_halves(self._snapshot_path(step), self._model)

    def _snapshot_path(self, step: int) -> Path:
        paths = Snapshots(self._bundle.folder / SNAPSHOTS, keep=0).paths()
        if step not in paths:
            there = ", ".join(map(str, paths)) or "none"
            raise ConfigError(f"the run has no snapshot of step {step}; there are {there}")
        return paths[step]


def _question(message: Mapping[str, Any]) -> _Question:
    """Return what a message asks; its "id", by which the page knows the answer, is no part of the question."""
    from pydantic import TypeAdapter, ValidationError

    kind = message.get("kind")
    if not isinstance(kind, str) or kind not in _QUESTIONS:
        raise ConfigError(f"kind = {kind!r}, expected one of {', '.join(_QUESTIONS)}")
    values = {name: value for name, value in message.items() if name != "id"}
    try:
        question: _Question = TypeAdapter(_QUESTIONS[kind]).validate_json(json.dumps(values))
    except ValidationError as error:
        problem = error.errors()[0]
        raise ConfigError(f"{kind}: {'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error
    return question


def search_data(tokenizer: Tokenizer, hypotheses: Sequence[Hypothesis], tree: SearchTree) -> dict[str, Any]:
    """Return a search as the page reads it."""
    return {
        "hypotheses": [
            {
                "ids": list(one.tokens),
                "tokens": tokenizer.tokens(one.tokens),
                "text": tokenizer.decode(one.tokens),
                "log_prob": one.log_prob,
                "score": one.score,
                "token_log_probs": list(one.token_log_probs),
            }
            for one in hypotheses
        ],
        "tree": [{**asdict(node), "text": tokenizer.tokens([node.token])[0]} for node in tree.nodes],
    }


def _batch(model: Transformer, ids: Sequence[int]) -> Tensor:
    if not 1 <= len(ids) <= LONGEST:
        raise ShapeError(f"got {len(ids)} ids, expected 1 to {LONGEST}")
    return padded(model, [ids])


def unbatched(value: Tensor) -> Tensor:
    """Return a point's value for the one sentence that was run: positions have no axis of the batch."""
    return value if value.dim() == 2 else value[0]


def snapshot_halves(path: Path, model: Transformer) -> list[NDArray[Any]]:
    """Return a snapshot's weights as halves, in the order of the model's parameters.

    Raises:
        CheckpointError: it cannot be read, or is of another model.
    """
    weights = read_weights(path)
    names = [name for name, _ in model.named_parameters()]
    if set(names) != set(weights):
        raise CheckpointError(f"{path} belongs to another model")
    return [weights[name].half().numpy() for name in names]


def number_bytes(array: NDArray[Any]) -> bytes:
    """Return an array's numbers, row by row, little-endian."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
