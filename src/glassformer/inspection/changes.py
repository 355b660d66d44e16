"""What can be changed in a forward pass, as plain data: the same that the explorer sends.

>>> import torch, glassformer as gf
>>> model = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11)).eval()
>>> changes = Changes.from_dict({"ablated": {"decoder.layers.1.cross_attention": [0, 3]}, "mistakes": ["no_scale"]})
>>> with changed(model, changes):
...     logits = model(torch.tensor([[4, 5, 6]]), torch.tensor([[1, 4]]))
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from glassformer.decoding.transformer_step import padded
from glassformer.errors import ConfigError, nearest
from glassformer.inspection.edits import (
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
from glassformer.inspection.mistakes import MISTAKES, plant, replaced
from glassformer.model.attention import MultiHeadAttention
from glassformer.model.taps import intervene, points, record
from glassformer.model.transformer import Transformer

__all__ = ["Changes", "Patch", "changed"]

_HEADED = ("query", "key", "value", "scores", "weights", "heads")
_MIXING = {"mask_zero", "mask_after_softmax", "target_padding_mask", "no_causal_mask", "decoder_keys", "no_transpose"}
"""Mistakes under which what a position is depends on later ones."""
_STRICT = {"extra": "forbid", "strict": True, "allow_inf_nan": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """Rows of a point that come from another sentence, which runs through the unchanged model."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {**_STRICT, "arbitrary_types_allowed": True}

    point: str
    positions: Sequence[tuple[int, int]]
    """(here, there): this row of the last axis but one is replaced by that one; rows that do not exist are left."""
    source_ids: Sequence[int] = ()
    """The other sentence, with `<eos>`."""
    target_ids: Sequence[int] = ()
    """Its target, with `<bos>`."""
    heads: Sequence[int] | None = None
    """Of a point with heads, those that are patched; all unless given."""
    trace: Mapping[str, Tensor] | None = None
    """The recording of the other sentence, in the place of its ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """All that is changed in a model for one sentence, in plain data. Attentions are named as their points are."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {**_STRICT, "arbitrary_types_allowed": True}

    ablated: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Heads whose weighted values are 0."""
    masks: Mapping[str, Sequence[Cell]] = field(default_factory=dict)
    """Cells of masks: (query, key, may look). A query that may look at nothing gets weights of 0."""
    overrides: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """Rows of weights by hand: (head, query, weights)."""
    patches: Sequence[Patch] = ()
    positions: bool = True
    """False: positions add nothing."""
    scale: bool = True
    """False: scores are not divided by √d_k."""
    mistakes: Sequence[str] = ()
    """Classic mistakes, by id."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Changes":
        """Return the changes that `to_dict` (or the explorer, as JSON) describes.

        Raises:
            ConfigError: a key is unknown, or a value is of another kind than it should be.
        """
        from pydantic import TypeAdapter, ValidationError

        try:
            return TypeAdapter(cls).validate_json(json.dumps(values))
        except ValidationError as error:
            raise ConfigError(_described(error.errors())) from error

    def to_dict(self) -> dict[str, Any]:
        """Return the changes as plain data.

        Raises:
            ConfigError: a patch has a recording, which is no plain data.
        """
        if any(patch.trace is not None for patch in self.patches):
            raise ConfigError("a patch with a recording is no plain data: give source_ids and target_ids instead")
        values = asdict(self)
        values["patches"] = [
            {name: value for name, value in patch.items() if value is not None} for patch in values["patches"]
        ]
        plain: dict[str, Any] = json.loads(json.dumps(values))
        return plain

    @property
    def planted(self) -> Sequence[str]:
        """The classic mistakes, among them what `scale` stands for."""
        return self.mistakes if self.scale else (*self.mistakes, "no_scale")

    @property
    def cacheable(self) -> bool:
        """Whether cached decoding gives the same: nothing is changed by position behind the encoder."""
        named = (*self.masks, *self.overrides, *(patch.point for patch in self.patches))
        return not _MIXING & set(self.mistakes) and all(name.startswith(("source.", "encoder.")) for name in named)

    def resolved(self, model: Transformer) -> "Changes":
        """Return the same changes with the other sentences of their patches recorded.

        Raises:
            ConfigError: a name, a head or a position is none of this model's.
        """
        _check(self, model)
        return replace(self, patches=tuple(_recorded(patch, model) for patch in self.patches))


@contextmanager
def changed(model: Transformer, changes: Changes) -> Iterator[None]:
    """Make the model compute under these changes, while the context lasts.

    At one attention they act in this order: scores (scale), mask, softmax, mistakes of the mask, rows by hand; patches
    are the last at their point. For decoding, see `glassformer.inspection.forced.RecomputingStep`. Masks and some of
    the mistakes replace methods of the model's parts: let one thread at a time use it.

    Raises:
        ConfigError: a name, a head or a position is none of this model's.
    """
    changes = changes.resolved(model)
    edits = combine(
        {} if changes.positions else without_positions(),
        with_rows(changes.overrides),
        without_heads(changes.ablated),
        *(patched(patch.trace, patch.point, patch.positions, patch.heads) for patch in changes.patches if patch.trace),
    )
    with plant(model, *changes.planted), _masked(model, changes.masks), intervene(model, edits):
        yield


@contextmanager
def _masked(model: Transformer, cells: Mapping[str, Sequence[Cell]]) -> Iterator[None]:
    """Change cells of the masks that attentions are given."""

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


# What is wrong with changes


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
    _check_known("patches: a point is", patch.point, points(model))
    _check_range("patches: a position", (index for pair in patch.positions for index in pair))
    if patch.heads is not None:
        if not patch.point.endswith(tuple(f".{point}" for point in _HEADED)):
            raise ConfigError(f"patches: {patch.point} has no heads, got heads = {list(patch.heads)}: leave them out")
        _check_range("patches: a head", patch.heads, model.config.heads)
    if patch.trace is None and not (patch.source_ids and patch.target_ids):
        raise ConfigError(f"patches: that of {patch.point} has no other sentence: give source_ids and target_ids")
    if patch.trace is not None and patch.point not in patch.trace:
        raise ConfigError(f"patches: {patch.point} was not recorded of the other sentence")


def _check_known(what: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise ConfigError(f"{what} {name!r}, which the model does not have{nearest(name, known)}")


def _check_range(what: str, values: Iterable[int], size: int | None = None) -> None:
    for value in values:
        if value < 0 or (size is not None and value >= size):
            expected = "0 or more" if size is None else f"0 to {size - 1}"
            raise ConfigError(f"{what} is {value}, expected {expected}")


def _described(problems: Sequence[Any]) -> str:
    """Return the first of pydantic's complaints in our form, an unknown key before anything else."""
    unknown = [problem for problem in problems if problem["type"] == "unexpected_keyword_argument"]
    problem = (*unknown, *problems)[0]
    where = ".".join(["changes", *map(str, problem["loc"])])
    if unknown:
        known = [one.name for one in fields(Patch if "patches" in problem["loc"] else Changes) if one.name != "trace"]
        return f"{where}: unknown key{nearest(str(problem['loc'][-1]), known)}; there are {', '.join(known)}"
    if problem["type"] == "missing":
        return f"{where}: missing"
    return f"{where} = {problem['input']!r}: {problem['msg'][0].lower()}{problem['msg'][1:]}"
