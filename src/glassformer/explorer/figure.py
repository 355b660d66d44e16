"""One head's attention as an SVG picture for a paper or a slide: the same bytes as the page's own "Save"."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from glassformer.decoding.transformer_step import padded
from glassformer.errors import ConfigError, quoted
from glassformer.explorer.module import strings
from glassformer.model.taps import record
from glassformer.translator import Translator

__all__ = ["AttentionFamily", "Figure", "head_figure", "weights_figure"]

AttentionFamily = Literal["encoder", "cross", "decoder"]
_PLACES = {
    "encoder": ("encoder", "self_attention"),
    "cross": ("decoder", "cross_attention"),
    "decoder": ("decoder", "self_attention"),
}
"""The stack and the sub-layer of each family of attention."""
COLOUR_STOPS = tuple(bytes.fromhex(stop) for stop in ("ffffff", "c6dbef", "6baed6", "2171b5", "08306b"))
"""The colours of probabilities from 0 to 1, in the light theme of the page."""
INK, SOFT, LINE, BLOCKED, HATCHING = "#1d2733", "#55606e", "#d5dbe3", "#eceff3", "#98a3b3"
LETTER, WIDE_LETTER, WIDE_FROM = 6.5, 12.5, 0x2E80
"""Widths of letters in pixels in a font of 12 pixels; Chinese, Japanese and Korean letters are wider."""
CELL, NUMBERED, MOST_NUMBERED, WIDEST, CAPTION = 34, 30, 24, 1200, 18


@dataclass(frozen=True)
class Figure:
    """A picture as the text of an SVG file; a notebook shows the picture."""

    svg: str

    def _repr_html_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> Path:
        """Write the SVG file, and return its path.

        Raises:
            ConfigError: the name does not end with .svg, or the file cannot be written.
        """
        path = Path(path)
        if path.suffix != ".svg":
            raise ConfigError(f"{path}: expected a name that ends with .svg, got {quoted(path.name)}")
        try:
            path.write_text(self.svg, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{path} cannot be written: {error.strerror}; choose another path") from error
        return path


def head_figure(
    translator: Translator, shown: Mapping[str, Any], translation: str, family: AttentionFamily, layer: int, head: int
) -> Figure:
    """Return one head's weights for the sentence of a page's payload.

    Raises:
        ConfigError: the family, the layer or the head does not exist.
    """
    model, config, ids = translator.model, translator.bundle.model_config, shown["trace"]
    stack, sublayer = _PLACES.get(family, ("", ""))
    if not stack:
        raise ConfigError(f"family: expected one of {', '.join(_PLACES)}, got {quoted(family)}")
    layers = getattr(config, f"{stack}_layers")
    for name, value, count, least in (("layer", layer, layers, -layers), ("head", head, config.heads, 0)):
        if not least <= value < count:
            raise ConfigError(f"{name}: expected a number from {least} to {count - 1}, got {value}")
    name = f"{stack}.layers.{layer % layers}.{sublayer}.weights"
    source, target = (padded(model, [ids[f"{side}_ids"]]) for side in ("source", "target"))
    with torch.no_grad(), record(model, name) as trace:
        model(source, target)
    weights = trace[name][0, head].float().cpu().numpy()
    tokens = {
        "encoder": translator.bundle.source_tokenizer.tokens(ids["source_ids"]),
        "decoder": translator.bundle.target_tokenizer.tokens(ids["target_ids"]),
    }
    columns = tokens["decoder" if family == "decoder" else "encoder"]
    # A row of the decoder reads one word and writes the next.
    written = translator.bundle.target_tokenizer.tokens([*ids["target_ids"][1:], config.eos_id])
    pairs = zip(tokens["decoder"], written, strict=True)
    rows = columns if stack == "encoder" else [f"{read} → {word}" for read, word in pairs]
    label = strings()["en"]["grid.label"].format(name, head, *weights.shape)
    caption = (label, f"{shown['sentence']} → {translation}", f"glassformer · {shown['name']}")
    future = np.triu(np.ones(weights.shape, bool), 1) if family == "decoder" else None
    return weights_figure(weights, rows, columns, caption, blocked=future)


def weights_figure(
    weights: NDArray[np.floating],
    rows: Sequence[str],
    columns: Sequence[str],
    caption: Sequence[str],
    *,
    about: str = "",
    blocked: NDArray[np.bool_] | None = None,
) -> Figure:
    """Return a picture of attention weights, as in `web/ui/picture_svg.js`.

    Args:
        weights: Weights of one head, (T, S), each in [0, 1].
        rows: The words that read, T.
        columns: The words that are read, S.
        caption: The lines under the picture; the first is bold.
        about: The description of the SVG file.
        blocked: Cells that a mask hides, (T, S); by default none.
    """
    height, width = weights.shape
    numbered = width <= NUMBERED and height <= MOST_NUMBERED * 2
    side = CELL if numbered else max(4, min(18, WIDEST // width))
    left, top = (math.ceil(max(map(_width, labels), default=0)) + 12 for labels in (rows, columns))
    across, down = side * width, side * height
    whole = max(left + across, *(math.ceil(_width(line)) for line in caption)) + 12
    deep = top + down + len(caption) * CAPTION + 20
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{deep}" viewBox="0 0 {whole} {deep}" '
        'font-family="system-ui, sans-serif" font-size="12" role="img">',
        f"<title>{_escaped(caption[0] if caption else '')}</title>",
        f"<desc>{_escaped(about)}</desc>",
        f'<rect width="{whole}" height="{deep}" fill="#ffffff"/>',
    ]
    for row, column in np.ndindex(height, width):
        hidden = blocked is not None and bool(blocked[row, column])
        value = None if hidden else float(weights[row, column])
        lines += _cell(value, left + side * column, top + side * row, side, numbered)
    lines.append(f'<rect x="{left}" y="{top}" width="{across}" height="{down}" fill="none" stroke="{LINE}"/>')
    for row, label in enumerate(rows):
        lines.append(_text(left - 6, top + side * (row + 0.5) + 4, label, 'text-anchor="end"', INK))
    for column, label in enumerate(columns):
        x, y = left + side * (column + 0.5) + 4, top - 6
        lines.append(_text(x, y, label, f'transform="rotate(-90 {x:g} {y:g})"', INK))
    for at, line in enumerate(caption):
        looks = ('font-weight="bold"', INK) if at == 0 else ("", SOFT)
        lines.append(_text(6, top + down + CAPTION * (at + 1) + 4, line, *looks))
    return Figure("\n".join([*lines, "</svg>\n"]))


def _cell(value: float | None, x: float, y: float, side: int, numbered: bool) -> list[str]:
    """Return the elements of one cell; None is a masked one."""
    fill = [BLOCKED, SOFT]
    parts: list[str] = []
    if value is None:
        parts.append(f'<path d="M{x:g} {y + side:g}L{x + side:g} {y:g}" stroke="{HATCHING}"/>')
    else:
        colour = _colour(value)
        bright = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]
        fill = [f"#{bytes(colour).hex()}", "black" if bright > 140 else "white"]
    if numbered and (number := _number(value)):
        looks = 'text-anchor="middle" font-size="10"'
        parts.append(_text(x + side / 2, y + side / 2 + 4, number, looks, fill[1]))
    return [f'<rect x="{x:g}" y="{y:g}" width="{side}" height="{side}" fill="{fill[0]}"/>', *parts]


def _colour(value: float) -> list[int]:
    """Return red, green and blue of a probability."""
    place = max(0.0, min(1.0, value)) * (len(COLOUR_STOPS) - 1)
    low = min(math.floor(place), len(COLOUR_STOPS) - 2)
    lower, upper = list(pairwise(COLOUR_STOPS))[low]
    return [math.floor(a + (b - a) * (place - low) + 0.5) for a, b in zip(lower, upper, strict=True)]


def _number(value: float | None) -> str:
    """Return a probability in four characters, and nothing near zero."""
    if value is None:
        return "–∞"
    if value >= 0.9995:
        return "1.00"
    # As JavaScript's toFixed: the exact value, halves up.
    rounded = Decimal(value).quantize(Decimal("0.001"), ROUND_HALF_UP)
    return "" if value < 0.005 else str(rounded)[1:]


def _text(x: float, y: float, words: str, looks: str, fill: str) -> str:
    more = f" {looks}" if looks else ""
    return f'<text x="{x:g}" y="{y:g}"{more} fill="{fill}">{_escaped(words)}</text>'


def _width(words: str) -> float:
    return sum(WIDE_LETTER if ord(letter) >= WIDE_FROM else LETTER for letter in words)


def _escaped(words: str) -> str:
    """Return a text for XML, which has no control characters."""
    plain = "".join("\ufffd" if ord(letter) < 32 and letter not in "\t\n\r" else letter for letter in words)
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
