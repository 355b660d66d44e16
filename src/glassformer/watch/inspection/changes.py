"""Changes of a forward pass as plain data, in the format that the explorer's page sends:

>>> import torch, glassformer as gf
>>> model = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11)).eval()
>>> changes = Changes.from_dict({"ablated": {"decoder.layers.1.cross_attention": [0, 3]}, "mistakes": ["no_scale"]})
>>> with changed(model, changes):
...     logits = model(torch.tensor([[4, 5, 6]]), torch.tensor([[1, 4]]))
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from glassformer.decoding.transformer_step import padded
from glassformer.errors import ConfigError, nearest, quoted, shortened
from glassformer.model.attention import MultiHeadAttention
from glassformer.model.points import named_points
from glassformer.model.taps import intervene, record
from glassformer.model.transformer import Transformer
from glassformer.watch.inspection.edits import (
    Cell,
    Row,
    attentions,
    combine,
    patched,
    with_cells,
    with_rows,
    without_heads,
    without_positions,
)
from glassformer.watch.inspection.mistakes import MISTAKES, plant, replaced
from glassformer.watch.inspection.uncached import uncached

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["STRICT", "Changes", "Patch", "adapter", "changed"]

STRICT = {"extra": "forbid", "strict": True, "allow_inf_nan": False}
"""Settings with which pydantic reads data from a page: unknown keys, conversions, infinity and NaN are errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """Replaces rows of a point's tensor by rows of another sentence, recorded in the unchanged model."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {**STRICT, "arbitrary_types_allowed": True}

    point: str
    positions: Sequence[tuple[int, int]]
    """Pairs (here, there): row `here` of this sentence is replaced by row `there` of the other sentence. Rows
    count along the last axis but one; missing rows are skipped."""
    source_ids: Sequence[int] = ()
    """The source ids of the other sentence, with `<eos>`."""
    target_ids: Sequence[int] = ()
    """The target ids of the other sentence, with `<bos>`."""
    heads: Sequence[int] | None = None
    """For a point with heads, the heads to patch; by default, all."""
    trace: Mapping[str, Tensor] | None = None
    """A recording of the other sentence, in place of its ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """All changes of a model for one sentence, as plain data.

    Attention layers are named by their path, such as "decoder.layers.1.cross_attention".
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {**STRICT, "arbitrary_types_allowed": True}

    ablated: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Heads whose weighted values are set to 0."""
    masks: Mapping[str, Sequence[Cell]] = field(default_factory=dict)
    """Cells to change in masks: (query, key, may attend). A query that may attend to no key gets weights of 0."""
    overrides: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """Rows of attention weights to set to given values: (head, query, weights)."""
    patches: Sequence[Patch] = ()
    positions: bool = True
    """Whether position encodings are added to the embeddings."""
    scale: bool = True
    """Whether scores are divided by √d_k."""
    mistakes: Sequence[str] = ()
    """Classic mistakes, by id."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Changes":
        """Return the changes from the plain data of `to_dict`, or of the explorer (as JSON).

        Raises:
            ConfigError: a key is unknown, or a value has the wrong type.
        """
        from pydantic import ValidationError

        try:
            found: Changes = adapter(cls).validate_json(json.dumps(values))  # type: ignore[arg-type]  # a class is hashable
        except ValidationError as error:
            raise ConfigError(_described(error.errors())) from error
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the changes as plain data.

        Raises:
            ConfigError: a patch has a recording, which is not plain data.
        """
        if any(patch.trace is not None for patch in self.patches):
            raise ConfigError("patches: a recording is not plain data; give source_ids and target_ids instead")
        values = asdict(self)
        values["patches"] = [
            {name: value for name, value in patch.items() if value is not None} for patch in values["patches"]
        ]
        plain: dict[str, Any] = json.loads(json.dumps(values))
        return plain

    @property
    def planted(self) -> Sequence[str]:
        """The classic mistakes to plant, including "no_scale" if `scale` is False."""
        return self.mistakes if self.scale else (*self.mistakes, "no_scale")

    @property
    def cacheable(self) -> bool:
        """Whether decoding with a cache gives the same result: no change is at given target positions."""
        named = (*self.masks, *self.overrides, *(patch.point for patch in self.patches))
        causal = all(MISTAKES[mistake].causal for mistake in self.mistakes)
        return causal and all(name.startswith(("source.", "encoder.")) for name in named)

    @property
    def one_length(self) -> bool:
        """Whether source and target must be padded to the same length."""
        return any(MISTAKES[mistake].one_length for mistake in self.mistakes)

    def check_positions(self, longest: int) -> None:
        """Raise a ConfigError for changes at positions that sentences of up to `longest` tokens do not have.

        A position is valid even if a shorter sentence does not have it; changes at this position do not affect that
        sentence.
        """
        for cells in self.masks.values():
            _check_range("masks: a position", (index for cell in cells for index in cell[:2]), longest)
        for rows in self.overrides.values():
            _check_range("overrides: a position", (row[1] for row in rows), longest)
        for patch in self.patches:
            _check_range("patches: a position", (index for pair in patch.positions for index in pair), longest)

    def resolved(self, model: Transformer) -> "Changes":
        """Return the same changes, in which each patch has a recording of its other sentence.

        Raises:
            ConfigError: the model does not have a named point, head or position.
        """
        _check(self, model)
        return replace(self, patches=tuple(_recorded(patch, model) for patch in self.patches))


@cache
def adapter(kind: type[Any]) -> "TypeAdapter[Any]":
    """Return pydantic's reader for a class (cached: creating a reader takes a hundred times as long as reading)."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


@contextmanager
def changed(model: Transformer, changes: Changes) -> Iterator[None]:
    """Apply these changes to the model within the context.

    In each attention layer, changes apply in this order: scale of the scores, mask, softmax, mistakes in masking, given
    rows of weights. At each point, patches come last. A search within the context, such as
    `translator.translate(["…"])`, applies the changes, too. A step with a cache only computes the newest position. If
    changes are at given positions of the target, each step therefore runs the whole prefix, one sentence at a time,
    which takes several times as long. Some changes and mistakes replace methods of the model's parts, so only one
    thread at a time may use the model.

    Raises:
        ConfigError: the model does not have a named point, head or position.
    """
    changes = changes.resolved(model)
    edits = combine(
        {} if changes.positions else without_positions(),
        with_rows(changes.overrides),
        without_heads(changes.ablated),
        *(patched(patch.trace, patch.point, patch.positions, patch.heads) for patch in changes.patches if patch.trace),
    )
    steps = nullcontext() if changes.cacheable else uncached(model, changes.one_length)
    with plant(model, *changes.planted), _masked(model, changes.masks), intervene(model, edits), steps:
        yield


@contextmanager
def _masked(model: Transformer, cells: Mapping[str, Sequence[Cell]]) -> Iterator[None]:
    """Change cells of the masks that attention layers receive."""

    def make(attention: MultiHeadAttention, chosen: Sequence[Cell]) -> Callable[..., Tensor]:
        right = attention.attend

        def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
            return right(query, key, value, with_cells(mask, chosen, query.shape[2], key.shape[2], query.device))

        return attend

    with ExitStack() as stack:
        for name, chosen in cells.items():
            attention = attentions(model)[name]
            stack.enter_context(replaced(attention, "attend", make(attention, chosen)))
        yield


@torch.no_grad()
def _recorded(patch: Patch, model: Transformer) -> Patch:
    if patch.trace is not None:
        return patch
    with record(model, patch.point) as trace:
        model(padded(model, [patch.source_ids]), padded(model, [patch.target_ids]))
    return replace(patch, trace=trace)


# Errors in changes


def _check(changes: Changes, model: Transformer) -> None:
    heads = model.config.heads
    for what in ("ablated", "masks", "overrides"):
        for name in getattr(changes, what):
            _check_known(f"{what} names", name, attentions(model))
    for chosen in changes.ablated.values():
        _check_range("ablated: a head", chosen, heads)
    for cells in changes.masks.values():
        _check_range("masks: a position", (index for cell in cells for index in cell[:2]))
    for rows in changes.overrides.values():
        _check_range("overrides: a head", (row[0] for row in rows), heads)
        _check_range("overrides: a position", (row[1] for row in rows))
    for mistake in changes.mistakes:
        _check_known("mistakes names", mistake, MISTAKES)
    for patch in changes.patches:
        _check_patch(patch, model)


def _check_patch(patch: Patch, model: Transformer) -> None:
    _check_known("patches: a point is", patch.point, named_points(model.config))
    _check_range("patches: a position", (index for pair in patch.positions for index in pair))
    if patch.heads is not None:
        if not named_points(model.config)[patch.point].has_heads:
            raise ConfigError(f"patches: expected no heads for {patch.point}, got {list(patch.heads)}; omit heads")
        _check_range("patches: a head", patch.heads, model.config.heads)
    if patch.trace is None and not (patch.source_ids and patch.target_ids):
        raise ConfigError(f"patches: expected a sentence for {patch.point}, got none; give source_ids and target_ids")
    if patch.trace is not None and patch.point not in patch.trace:
        raise ConfigError(f"patches: {patch.point} is not in the recording of the other sentence; record this point")


def _check_known(what: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise ConfigError(f"{what} {quoted(name)}, which the model does not have{nearest(name, known)}")


def _check_range(what: str, values: Iterable[int], size: int | None = None) -> None:
    for value in values:
        if value < 0 or (size is not None and value >= size):
            expected = "0 or more" if size is None else f"0 to {size - 1}"
            raise ConfigError(f"{what}: expected {expected}, got {value}")


def _described(problems: Sequence[Any]) -> str:
    """Return pydantic's first error in the style of our messages; errors about unknown keys come first."""
    unknown = [problem for problem in problems if problem["type"] == "unexpected_keyword_argument"]
    problem = (*unknown, *problems)[0]
    where = shortened(".".join(["changes", *map(str, problem["loc"])]))
    if unknown:
        known = [one.name for one in fields(Patch if "patches" in problem["loc"] else Changes) if one.name != "trace"]
        return f"{where}: unknown key{nearest(str(problem['loc'][-1]), known)}; the keys are {', '.join(known)}"
    if problem["type"] == "missing":
        return f"{where}: missing"
    return f"{where}: {problem['msg'][0].lower()}{problem['msg'][1:]}, got {quoted(problem['input'])}"
