"""Answer a page's or a notebook cell's questions about snapshots, and about numbers that JavaScript cannot compute.

A question is a JSON object with a "kind". An answer is a JSON object and a list of arrays of numbers. In an answer's
`points`, each offset is a count of numbers from the start of the first array.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
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
from glassformer.decoding.hypothesis import max_length
from glassformer.decoding.step import Step
from glassformer.decoding.transformer_step import padded
from glassformer.errors import (
    CheckpointError,
    ConfigError,
    DecodingError,
    ShapeError,
    VocabularyError,
    nearest,
    quoted,
    shortened,
)
from glassformer.jobs import SNAPSHOTS
from glassformer.model.taps import Trace, intervene, record
from glassformer.model.transformer import Transformer
from glassformer.text.tokenizer import Tokenizer
from glassformer.training.snapshots import Snapshots
from glassformer.translator import Translator
from glassformer.watch.explorer.packing import layout_of
from glassformer.watch.explorer.turns import StepInTurns, Turns
from glassformer.watch.inspection.changes import STRICT, Changes, adapter, changed
from glassformer.watch.inspection.forced import decoding, first_difference

__all__ = ["Answer", "Remote", "search_data", "snapshot_halves", "unbatched"]

Answer = tuple[dict[str, Any], list[NDArray[Any]]]
"""The JSON object of an answer, and its arrays of numbers."""

LARGEST_BEAM = 64
SEARCH_SECONDS = 10.0
"""Maximum duration of a search. Other questions are answered between two steps of a search."""
MOST_IDS = 1 << 31
"""An upper bound of token ids, larger than any vocabulary."""
KEPT_TRACES = 5
"""Maximum number of traces to keep, because pages fetch the points of a trace only when they show them. The least
recently used trace is dropped first.
"""
KEPT_BYTES = 1_000_000_000
"""Maximum size of all kept traces except the newest, because the traces of long sentences are large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _EncodeQuestion:
    """How is this text tokenized?"""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = STRICT
    kind: Literal["encode"]
    side: Literal["source", "target"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Traced:
    """A forward pass of one sentence, given by its ids, under changes."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = STRICT
    source_ids: list[int]
    target_ids: list[int]
    changes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _TraceQuestion(_Traced):
    """What are the values at these points (by default: the attention weights) for these ids?"""

    kind: Literal["trace"]
    names: list[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _DifferenceQuestion:
    """Which point is the first to differ between two forward passes?"""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = STRICT
    kind: Literal["difference"]
    unchanged: _Traced
    changed: _Traced


@dataclass(frozen=True, slots=True, kw_only=True)
class _ScoreQuestion(_Traced):
    """What is the log probability of this output? Token i of the output follows token i of the target."""

    kind: Literal["score"]
    output_ids: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _GradientQuestion(_Traced):
    """How does log p(word) − log p(rival) at a target position depend on the input at each source position?"""

    kind: Literal["gradient"]
    row: int
    word: int
    rival: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _SearchQuestion:
    """What does beam search find?"""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = STRICT
    kind: Literal["search"]
    source_ids: list[int]
    prefix_ids: list[int] = field(default_factory=list)
    beam_size: int
    length_penalty: float
    n_best: int
    changes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CheckpointQuestion:
    """What were the weights at this step?"""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = STRICT
    kind: Literal["checkpoint"]
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _ParametersQuestion:
    """What are these weights, at a step of the training or at its end?"""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = STRICT
    kind: Literal["parameters"]
    names: list[str]
    rows: list[int] | None = None
    """The rows to send of each matrix; by default, all."""
    checkpoint: int | None = None


_Question = (
    _EncodeQuestion
    | _TraceQuestion
    | _DifferenceQuestion
    | _ScoreQuestion
    | _GradientQuestion
    | _SearchQuestion
    | _CheckpointQuestion
    | _ParametersQuestion
)
_QUESTIONS = {
    "encode": _EncodeQuestion,
    "trace": _TraceQuestion,
    "difference": _DifferenceQuestion,
    "score": _ScoreQuestion,
    "gradient": _GradientQuestion,
    "search": _SearchQuestion,
    "checkpoint": _CheckpointQuestion,
    "parameters": _ParametersQuestion,
}


class Remote:
    """Answers questions about one model; any thread may ask.

    Threads take turns, because changes apply to the shared model. A search takes one turn per token, and any other
    question takes a single turn.
    """

    def __init__(self, translator: Translator, search_seconds: float = SEARCH_SECONDS) -> None:
        self._bundle, self._model = translator.bundle, translator.model
        self._decoding = translator.bundle.configuration.decoding
        self._search_seconds = search_seconds
        self._turns = Turns()
        self._traces: dict[str, Trace] = {}
        self._snapshot: tuple[int, Transformer] | None = None

    @torch.no_grad()
    def answer(self, message: Mapping[str, Any], check_client: Callable[[], object] = lambda: None) -> Answer:
        """Return the answer to a question.

        Args:
            message: The question, as JSON.
            check_client: Function that is called at each turn; it raises an error if nobody waits for the answer.

        Raises:
            ConfigError: the question is malformed, or the model does not support its changes.
            DecodingError: the search takes too long.
            GlassformerError: the ids do not fit the model, or the snapshot is missing or damaged.
        """
        question = _question(message)
        if isinstance(question, _SearchQuestion):
            return self._found(question, check_client), []
        with self._turns.next():
            check_client()
            match question:
                case _EncodeQuestion():
                    return self._encoded(question), []
                case _TraceQuestion():
                    return self._traced(question)
                case _DifferenceQuestion():
                    return {"first": self._first_difference(question)}, []
                case _ScoreQuestion():
                    return {"log_prob": self._score(question)}, []
                case _GradientQuestion():
                    return {"effects": self._gradients(question)}, []
                case _CheckpointQuestion():
                    return self._weights(question.step)
                case _ParametersQuestion():
                    return self._parameters(question)

    def _encoded(self, asked: _EncodeQuestion) -> dict[str, Any]:
        bundle = self._bundle
        tokenizer = bundle.source_tokenizer if asked.side == "source" else bundle.target_tokenizer
        ids = tokenizer.encode(asked.text)
        return {"ids": ids, "tokens": tokenizer.tokens(ids)}

    def _traced(self, asked: _TraceQuestion) -> Answer:
        trace = self._trace(asked)
        names = [name for name in trace if name.endswith(".weights")]
        if asked.names is not None and len(set(asked.names)) < len(asked.names):
            raise ConfigError("trace: names: expected each point once, got one several times")
        for name in asked.names or ():
            if name not in trace:
                raise ConfigError(f"the model has no point {quoted(name)}{nearest(name, trace)}")
        chosen = names if asked.names is None else asked.names
        points, arrays = _packed({name: unbatched(trace[name]) for name in chosen})
        return {"points": points, "names": list(trace)}, arrays

    def _parameters(self, asked: _ParametersQuestion) -> Answer:
        """Return weights by name; a shared matrix may be asked for by any of its names."""
        model, _ = self._model_and_changes({"checkpoint": asked.checkpoint})
        there = dict(model.named_parameters(remove_duplicate=False))
        for name in asked.names:
            if name not in there:
                raise ConfigError(f"the model has no weights {quoted(name)}{nearest(name, there)}")
        chosen = {name: _rows(name, there[name].detach(), asked.rows) for name in asked.names}
        parameters, arrays = _packed(chosen)
        return {"parameters": parameters}, arrays

    def _first_difference(self, asked: _DifferenceQuestion) -> str | None:
        return first_difference(self._trace(asked.unchanged), self._trace(asked.changed))

    def _score(self, asked: _ScoreQuestion) -> float:
        log_probs = unbatched(self._trace(asked)["log_probs"])
        rows, width = log_probs.shape
        if len(asked.output_ids) > rows or any(not 0 <= id < width for id in asked.output_ids):
            raise ConfigError(f"score: output_ids: expected up to {rows} numbers from 0 to {width - 1}")
        return sum(log_probs[row, id].item() for row, id in enumerate(asked.output_ids))

    @torch.enable_grad()
    def _gradients(self, asked: _GradientQuestion) -> list[float]:
        """Return gradient × input of each source position."""
        model, changes = self._model_and_changes(asked.changes)
        source, target = (self._batch(model, ids) for ids in (asked.source_ids, asked.target_ids))
        # makes the input a leaf, so that it has a gradient even if the embedding is frozen
        edit = {"source.input": lambda x: x.detach().requires_grad_()}
        with changed(model, changes), intervene(model, edit), record(model, ["source.input", "log_probs"]) as trace:
            model(source, target)
        x, log_probs = trace["source.input"], trace["log_probs"][0]
        rows, width = log_probs.shape
        if not (0 <= asked.row < rows and all(0 <= id < width for id in (asked.word, asked.rival))):
            raise ConfigError(f"gradient: expected a row below {rows}, and a word and a rival below {width}")
        margin = log_probs[asked.row, asked.word] - log_probs[asked.row, asked.rival]
        [gradient] = torch.autograd.grad(margin, x, materialize_grads=True)
        effects: list[float] = (gradient * x.detach()).sum(-1)[0].tolist()
        return effects

    def _trace(self, asked: _Traced) -> Trace:
        key = json.dumps([asked.source_ids, asked.target_ids, asked.changes], sort_keys=True)
        trace = self._traces.pop(key, None) or self._new_trace(asked)
        self._traces[key] = trace
        while len(self._traces) > KEPT_TRACES or (
            len(self._traces) > 1 and sum(map(_size, self._older())) > KEPT_BYTES
        ):
            del self._traces[next(iter(self._traces))]
        return trace

    def _older(self) -> list[Trace]:
        return list(self._traces.values())[:-1]

    def _new_trace(self, asked: _Traced) -> Trace:
        model, changes = self._model_and_changes(asked.changes)
        source, target = (self._batch(model, ids) for ids in (asked.source_ids, asked.target_ids))
        with changed(model, changes), record(model) as trace:
            model(source, target)
        return trace

    def _found(self, asked: _SearchQuestion, check_client: Callable[[], object]) -> dict[str, Any]:
        if asked.beam_size > LARGEST_BEAM:
            raise ConfigError(f"beam_size: expected 1 to {LARGEST_BEAM}, got {asked.beam_size}")
        _check_ids(asked.prefix_ids)
        hypotheses, tree = search_tree(
            StepInTurns(self._search_turns(asked, check_client)),
            n_best=asked.n_best,
            max_length=max_length(self._model.config, len(asked.source_ids), self._decoding.extra_length),
            prefix=asked.prefix_ids,
            **{**asdict(self._decoding), "beam_size": asked.beam_size, "length_penalty": asked.length_penalty},
        )
        return search_data(self._bundle.target_tokenizer, hypotheses, tree)

    def _search_turns(
        self, asked: _SearchQuestion, check_client: Callable[[], object]
    ) -> Callable[[], AbstractContextManager[Step[Any]]]:
        """Return a context manager for one turn, which yields the search's `Step`; within it, the model is changed."""
        with self._turns.next():
            check_client()
            model, changes = self._model_and_changes(asked.changes)
            source, resolved = self._batch(model, asked.source_ids), changes.resolved(model)
        end = time.monotonic() + self._search_seconds

        @contextmanager
        def turn() -> Iterator[Step[Any]]:
            with self._turns.next():
                check_client()
                if time.monotonic() >= end:
                    raise DecodingError(
                        f"the search was stopped after {self._search_seconds:g} seconds: a beam of {asked.beam_size} "
                        f"over {len(asked.source_ids)} source tokens takes longer; use a smaller beam or a shorter "
                        "sentence"
                    )
                with decoding(model, source, resolved) as step:
                    yield step

        return turn

    @property
    def _longest(self) -> int:
        """Maximum number of ids of a source or a target; the longest output, together with `<bos>`, has as many ids."""
        return self._decoding.max_source + self._decoding.extra_length + 1

    def _batch(self, model: Transformer, ids: Sequence[int]) -> Tensor:
        """Return the ids of a source or a target as a batch of one sentence; raise an error if there are too many."""
        if not 1 <= len(ids) <= self._longest:
            raise ShapeError(f"ids: expected 1 to {self._longest}, got {len(ids)}")
        _check_ids(ids)
        return padded(model, [ids])

    def _model_and_changes(self, values: Mapping[str, Any]) -> tuple[Transformer, Changes]:
        """Return the model, from the checkpoint that `values` may name, and the changes to apply to the model."""
        rest = {name: value for name, value in values.items() if name != "checkpoint"}
        step = values.get("checkpoint")
        if not (step is None or isinstance(step, int)):
            raise ConfigError(f"changes.checkpoint: expected a step of the training or null, got {quoted(step)}")
        changes = Changes.from_dict(rest)
        changes.check_positions(self._longest)
        return self._model if step is None else self._at(step), changes

    def _at(self, step: int) -> Transformer:
        """Return the model with its weights at a step of its training."""
        if self._snapshot is None or self._snapshot[0] != step:
            model, path = deepcopy(self._model), self._snapshot_path(step)
            put_weights(model, read_weights(path), str(path))
            self._snapshot = (step, model)
        return self._snapshot[1]

    def _weights(self, step: int) -> Answer:
        """Return a snapshot's weights in half precision, in the order of the model's parameters."""
        return {"step": step}, snapshot_halves(self._snapshot_path(step), self._model)

    def _snapshot_path(self, step: int) -> Path:
        paths = Snapshots(self._bundle.folder / SNAPSHOTS, keep=0).paths()
        if step not in paths:
            there = ", ".join(map(str, paths)) or "none"
            raise ConfigError(f"the run has no snapshot of step {step}; it has {there}")
        return paths[step]


def _rows(name: str, matrix: Tensor, rows: Sequence[int] | None) -> Tensor:
    """Return these rows of a matrix, or the whole tensor."""
    if rows is None:
        return matrix
    if matrix.dim() < 2 or any(not 0 <= row < len(matrix) for row in rows):
        raise ConfigError(f"parameters: rows: expected rows of {name}, which has the shape {list(matrix.shape)}")
    return matrix[list(rows)]


def _packed(tensors: Mapping[str, Tensor]) -> tuple[list[dict[str, Any]], list[NDArray[Any]]]:
    """Return the layout of tensors, and the numbers of each tensor."""
    return layout_of(tensors), [value.float().cpu().numpy() for value in tensors.values()]


def _question(message: Mapping[str, Any]) -> _Question:
    """Return the question in a message, without the message's "id"."""
    from pydantic import ValidationError

    kind = message.get("kind")
    if not isinstance(kind, str) or kind not in _QUESTIONS:
        raise ConfigError(f"kind: expected one of {', '.join(_QUESTIONS)}, got {quoted(kind)}")
    values = {name: value for name, value in message.items() if name != "id"}
    try:
        question: _Question = adapter(_QUESTIONS[kind]).validate_json(json.dumps(values))
    except ValidationError as error:
        problem = error.errors()[0]
        raise ConfigError(f"{kind}: {shortened('.'.join(map(str, problem['loc'])))}: {problem['msg']}") from error
    return question


def search_data(tokenizer: Tokenizer, hypotheses: Sequence[Hypothesis], tree: SearchTree) -> dict[str, Any]:
    """Return the results of a search in the page's format."""
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


def _check_ids(ids: Sequence[int]) -> None:
    """Raise an error for ids that no vocabulary has; later, the model checks its own vocabulary."""
    if any(not 0 <= id < MOST_IDS for id in ids):
        raise VocabularyError(f"ids: expected numbers from 0 to {MOST_IDS - 1}")


def _size(trace: Trace) -> int:
    """Return the size of a trace in bytes."""
    return sum(value.nbytes for value in trace.values())


def unbatched(value: Tensor) -> Tensor:
    """Return a point's value for the only sentence of a batch; a value with two axes has no batch axis."""
    return value if value.dim() == 2 else value[0]


def snapshot_halves(path: Path, model: Transformer) -> list[NDArray[Any]]:
    """Return a snapshot's weights in half precision, in the order of the model's parameters.

    Raises:
        CheckpointError: the snapshot cannot be read, or belongs to a different model.
    """
    weights = read_weights(path)
    names = [name for name, _ in model.named_parameters()]
    if set(names) != set(weights):
        raise CheckpointError(f"{path} belongs to a different model: delete the snapshot")
    return [weights[name].half().numpy() for name in names]
