"""Edits for `gf.intervene`: heads off, rows of weights by hand, masks, positions off, rows of another sentence.

>>> import torch, glassformer as gf
>>> model = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11)).eval()
>>> cross = "decoder.layers.1.cross_attention"
>>> edits = combine(without_heads({cross: [0, 3]}), with_rows({cross: [(1, 0, [0, 0, 1])]}))
>>> with gf.intervene(model, edits), gf.record(model, f"{cross}.weights") as trace:
...     logits = model(torch.tensor([[4, 5, 6]]), torch.tensor([[1, 4]]))
>>> trace[f"{cross}.weights"][0, 1, 0].tolist()
[0.0, 0.0, 1.0]

Positions are absolute and counted from 0, so that edits by position are for whole passes, not for cached steps.

Axes: B batch · H heads · T query positions · S key positions.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from glassformer.errors import ConfigError, ShapeError, nearest
from glassformer.model.attention import MultiHeadAttention, attention_weights
from glassformer.model.masks import causal_mask
from glassformer.model.taps import Edit
from glassformer.model.transformer import Transformer

__all__ = [
    "Cell",
    "HeadSet",
    "Row",
    "attentions",
    "combine",
    "heads_of",
    "patched",
    "with_cells",
    "with_mask",
    "with_rows",
    "without_heads",
    "without_positions",
]

Cell = tuple[int, int, bool]
"""(query position, key position, whether it may be attended to), in all heads."""
Row = tuple[int, int, Sequence[float]]
"""(head, query position, its weights); missing ones at the end are 0, surplus ones are cut."""
HeadSet = Literal["encoder", "decoder", "cross"]
"""Which attentions' heads are meant."""


def combine(*edits: Mapping[str, Edit]) -> dict[str, Edit]:
    """Return all these edits as one: those of a point act one after the other, in this order. Names have no wildcards.

    >>> both = combine({"logits": lambda x: x + 1}, {"logits": lambda x: 2 * x})
    >>> both["logits"](torch.zeros(1))
    tensor([2.])
    """
    combined: dict[str, Edit] = {}
    for each in edits:
        for name, edit in each.items():
            combined[name] = _one_after_the_other(combined[name], edit) if name in combined else edit
    return combined


def heads_of(model: Transformer, which: HeadSet) -> list[tuple[str, int]]:
    """Return (attention, head) of all heads of the encoder, of the decoder's self-attention, or of cross-attention.

    Raises:
        ConfigError: there is no such set.
    """
    ends = {"encoder": ("encoder.", ".self_attention"), "decoder": ("decoder.", ".self_attention")}
    ends["cross"] = ("decoder.", ".cross_attention")
    if which not in ends:
        raise ConfigError(f"no set of heads is called {which!r}{nearest(which, ends)}; there are {', '.join(ends)}")
    first, last = ends[which]
    names = [name for name in attentions(model) if name.startswith(first) and name.endswith(last)]
    return [(name, head) for name in names for head in range(model.config.heads)]


def without_heads(heads: Mapping[str, Iterable[int]]) -> dict[str, Edit]:
    """Return the edits that take heads away: their weighted values are 0."""

    def edit(chosen: list[int]) -> Edit:
        def ablated(values: Tensor) -> Tensor:
            values = values.clone()
            values[:, chosen] = 0.0
            return values

        return ablated

    return {f"{name}.heads": edit(list(chosen)) for name, chosen in heads.items()}


def with_rows(rows: Mapping[str, Iterable[Row]]) -> dict[str, Edit]:
    """Return the edits that write rows of attention weights by hand."""

    def edit(chosen: list[Row]) -> Edit:
        def written(weights: Tensor) -> Tensor:
            weights = weights.clone()
            for head, query, row in chosen:
                if query < weights.shape[2]:
                    weights[:, head, query] = 0.0
                    cut = torch.tensor(row[: weights.shape[3]]).to(weights)
                    weights[:, head, query, : len(cut)] = cut
            return weights

        return written

    return {f"{name}.weights": edit(list(chosen)) for name, chosen in rows.items()}


def with_mask(cells: Mapping[str, Iterable[Cell]], usual: Tensor | None = None) -> dict[str, Edit]:
    """Return the edits after which weights are those of a mask with these cells.

    The other cells are those of `usual`, (B, 1, T or 1, S); unless it is given, nothing is padding, and the decoder's
    self-attention sees no future. Weights are made anew from the scores as they are when these edits meet them: combine
    them behind other edits of scores, and before other edits of weights.
    """
    edits: dict[str, Edit] = {}
    for name, chosen in cells.items():
        edits |= _remade(name, list(chosen), usual)
    return edits


def without_positions() -> dict[str, Edit]:
    """Return the edits after which positions add nothing."""
    return dict.fromkeys(("source.positions", "target.positions"), torch.zeros_like)


def patched(
    trace: Mapping[str, Tensor],
    point: str,
    positions: Iterable[tuple[int, int]] | None = None,
    heads: Iterable[int] | None = None,
) -> dict[str, Edit]:
    """Return the edit that puts rows of another recording into a point: (here, there), or all at their own places.

    Rows that do not exist, here or there, are left as they are.

    Raises:
        ShapeError: (when it acts) a row there is not as wide as here.
    """
    there = trace[point]
    pairs = None if positions is None else list(positions)
    chosen = slice(None) if heads is None else list(heads)

    def edit(tensor: Tensor) -> Tensor:
        if there.shape[-1] != tensor.shape[-1]:
            raise ShapeError(
                f"{point} of the other sentence has rows of {there.shape[-1]} numbers, here they have "
                f"{tensor.shape[-1]}: patch scores and weights between sentences of equal length only"
            )
        rows, available = tensor.shape[-2], there.shape[-2]
        tensor, donor = tensor.clone(), there.to(tensor)
        for to, origin in pairs if pairs is not None else ((row, row) for row in range(rows)):
            if to < rows and origin < available:
                where = (..., to, slice(None)) if tensor.dim() < 4 else (slice(None), chosen, to)
                what = (..., origin, slice(None)) if tensor.dim() < 4 else (slice(None), chosen, origin)
                tensor[where] = donor[what]
        return tensor

    return {point: edit}


def _one_after_the_other(first: Edit, second: Edit) -> Edit:
    return lambda tensor: second(first(tensor))


def _remade(name: str, cells: Sequence[Cell], usual: Tensor | None) -> dict[str, Edit]:
    """Return the edits that remember an attention's scores, and make its weights of them."""
    seen: list[Tensor] = []

    def remember(scores: Tensor) -> Tensor:
        seen[:] = [scores]
        return scores

    def remake(weights: Tensor) -> Tensor:
        T, S = weights.shape[2:]
        causal = name.startswith("decoder.") and name.endswith(".self_attention")
        mask = usual if usual is not None else causal_mask(T, weights.device) if causal else None
        return attention_weights(seen.pop(), with_cells(mask, cells, T, S, weights.device))

    return {f"{name}.scores": remember, f"{name}.weights": remake}


def with_cells(mask: Tensor | None, cells: Iterable[Cell], T: int, S: int, device: torch.device) -> Tensor:
    """Return a mask, (B, 1, T, S), in which these cells are changed; without a mask, all is allowed before."""
    whole = torch.ones(1, 1, T, S, dtype=torch.bool, device=device) if mask is None else mask
    whole = whole.expand(-1, -1, T, S).clone()
    for query, key, allowed in cells:
        if query < T and key < S:
            whole[:, :, query, key] = allowed
    return whole


def attentions(model: Transformer) -> dict[str, MultiHeadAttention]:
    """Return the attentions of a model, by name."""
    return {name: part for name, part in model.named_modules() if isinstance(part, MultiHeadAttention)}
