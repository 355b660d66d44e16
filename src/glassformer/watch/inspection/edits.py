"""Edits for `gf.intervene`: ablate heads, set weights, change masks, remove positions, copy rows from a recording.

>>> import torch, glassformer as gf
>>> model = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11)).eval()
>>> cross = "decoder.layers.1.cross_attention"
>>> edits = combine(without_heads({cross: [0, 3]}), with_rows({cross: [(1, 0, [0, 0, 1])]}))
>>> with gf.intervene(model, edits), gf.record(model, f"{cross}.weights") as trace:
...     logits = model(torch.tensor([[4, 5, 6]]), torch.tensor([[1, 4]]))
>>> trace[f"{cross}.weights"][0, 1, 0].tolist()
[0.0, 0.0, 1.0]

Positions count from the first token of the sentence. A decoding step with a cache computes only the newest token, so
edits at given positions need passes over whole sentences.

Axes: B batch · H heads · T query positions · S key positions.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from glassformer.errors import ConfigError, ShapeError, nearest, quoted
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
"""(query position, key position, whether the query may attend to the key), in all heads."""
Row = tuple[int, int, Sequence[float]]
"""(head, query position, weights); missing weights at the end count as 0, and surplus weights are ignored."""
HeadSet = Literal["encoder", "decoder", "cross"]
"""A group of attention layers: the encoder's self-attention, the decoder's self-attention, or cross-attention."""


def combine(*edits: Mapping[str, Edit]) -> dict[str, Edit]:
    """Return one mapping with all edits; several edits of a point apply one after another. Names have no wildcards.

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
    """Return (name of the attention layer, head) for all heads of a group.

    Raises:
        ConfigError: the group is unknown.
    """
    ends = {"encoder": ("encoder.", ".self_attention"), "decoder": ("decoder.", ".self_attention")}
    ends["cross"] = ("decoder.", ".cross_attention")
    if which not in ends:
        raise ConfigError(f"which: expected one of {', '.join(ends)}, got {quoted(which)}{nearest(which, ends)}")
    first, last = ends[which]
    names = [name for name in attentions(model) if name.startswith(first) and name.endswith(last)]
    return [(name, head) for name in names for head in range(model.config.heads)]


def without_heads(heads: Mapping[str, Iterable[int]]) -> dict[str, Edit]:
    """Return edits that ablate heads, by setting their weighted values to 0."""

    def edit(chosen: list[int]) -> Edit:
        def ablated(values: Tensor) -> Tensor:
            values = values.clone()
            values[:, chosen] = 0.0
            return values

        return ablated

    return {f"{name}.heads": edit(list(chosen)) for name, chosen in heads.items()}


def with_rows(rows: Mapping[str, Iterable[Row]]) -> dict[str, Edit]:
    """Return edits that set rows of attention weights."""

    def edit(chosen: list[Row]) -> Edit:
        def written(weights: Tensor) -> Tensor:
            weights = weights.clone()
            for head, query, row in chosen:
                if query < weights.shape[2]:
                    weights[:, head, query] = 0.0
                    cut = weights.new_tensor(row[: weights.shape[3]])
                    weights[:, head, query, : len(cut)] = cut
            return weights

        return written

    return {f"{name}.weights": edit(list(chosen)) for name, chosen in rows.items()}


def with_mask(cells: Mapping[str, Iterable[Cell]], usual: Tensor | None = None) -> dict[str, Edit]:
    """Return edits that recompute attention weights with these cells of the mask changed.

    All other cells come from the mask `usual`, (B, 1, T or 1, S). By default, this mask hides no padding, and is causal
    in the decoder's self-attention. The edits recompute the weights from the scores, which earlier edits may have
    changed. Therefore, put them after other edits of scores and before other edits of weights in `combine`.
    """
    edits: dict[str, Edit] = {}
    for name, chosen in cells.items():
        edits |= _remade(name, list(chosen), usual)
    return edits


def without_positions() -> dict[str, Edit]:
    """Return edits that set the position encodings to 0."""
    return dict.fromkeys(("source.positions", "target.positions"), torch.zeros_like)


def patched(
    trace: Mapping[str, Tensor],
    point: str,
    positions: Iterable[tuple[int, int]] | None = None,
    heads: Iterable[int] | None = None,
) -> dict[str, Edit]:
    """Return an edit that copies rows of a recording into a point.

    `positions` are pairs (row to replace, row of the recording); by default, each row is replaced by the recorded row
    of the same position. A pair is skipped if one of its rows does not exist.

    Raises:
        ShapeError: raised by the edit, if the recorded rows do not have the width of the point's rows.
    """
    there = trace[point]
    pairs = None if positions is None else list(positions)
    chosen = slice(None) if heads is None else list(heads)

    def edit(tensor: Tensor) -> Tensor:
        if there.shape[-1] != tensor.shape[-1]:
            raise ShapeError(
                f"{point}: expected rows of {tensor.shape[-1]} numbers, got {there.shape[-1]} from the other "
                "sentence; patch scores and weights only between sentences of equal length"
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
    """Return edits that remember the scores of an attention layer and recompute its weights from them."""
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
    """Return a mask, (B, 1, T, S), with these cells changed; if `mask` is None, all other cells are allowed."""
    whole = torch.ones(1, 1, T, S, dtype=torch.bool, device=device) if mask is None else mask
    whole = whole.expand(-1, -1, T, S).clone()
    for query, key, allowed in cells:
        if query < T and key < S:
            whole[:, :, query, key] = allowed
    return whole


def attentions(model: Transformer) -> dict[str, MultiHeadAttention]:
    """Return a model's attention layers, by name."""
    return {name: part for name, part in model.named_modules() if isinstance(part, MultiHeadAttention)}
