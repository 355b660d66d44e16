"""One head's attention as a picture for a paper or a slide, in the explorer's fonts and colours."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate, pairwise
from math import sqrt
from textwrap import wrap
from typing import Any, Literal
from unicodedata import east_asian_width
from zlib import crc32

import torch

from glassformer.decoding.transformer_step import padded
from glassformer.errors import ConfigError, quoted
from glassformer.model.taps import record
from glassformer.translator import Translator
from glassformer.watch.explorer.module import strings
from glassformer.watch.pictures import Picture

__all__ = ["AttentionFamily", "head_figure"]

AttentionFamily = Literal["encoder", "cross", "decoder"]
_PLACES = {
    "encoder": ("encoder", "self_attention"),
    "cross": ("decoder", "cross_attention"),
    "decoder": ("decoder", "self_attention"),
}
"""For each family of attention, the name of the stack and of the sub-layer."""
FIGURE_COLOURS = {
    "paper": ("#fcfcfa", "#0e1116"),
    "ink": ("#14181f", "#f0f2f5"),
    "ink2": ("#454d5a", "#bcc3cd"),
    "ink3": ("#5f6773", "#929ba8"),
    "strand": ("#c3c8d0", "#46505d"),
    "src": ("#0b5cad", "#74b8ff"),
    "tgt": ("#b4430a", "#ffa366"),
    "att": ("#fdf1e3", "#291e13"),
    "att-l": ("#ecd3b2", "#634a2b"),
}
"""The explorer's colours in the light and in the dark scheme, by their names in the style sheet."""
_FONT = "-apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"
_LETTER, _ROW, _COLUMN, _MARGIN, _GAP, _KNOT = 7.4, 24, 28, 20, 14, 8
"""Sizes in px: the width of a letter at font size 13, the height of a row, the minimum width of a column, the margin of
the picture, the gap at labels, and the radius of the circle of a weight of 1."""


def head_figure(
    translator: Translator, shown: Mapping[str, Any], translation: str, family: AttentionFamily, layer: int, head: int
) -> Picture:
    """Return a picture of one head's weights for the sentence of a page's payload.

    Each column is a word that attends, each row is a word that is attended to, and the area of the circle in a cell is
    the weight. Cells that the mask hides are hatched.

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
    said = strings()["en"]
    special = {"<bos>": said["stage.start"], "<eos>": said["stage.end"]}
    words = {
        side: [special.get(one, one) for one in getattr(translator.bundle, f"{side}_tokenizer").tokens(found)]
        for side, found in (("source", ids["source_ids"]), ("target", ids["target_ids"]))
    }
    drawing = _Drawing(
        weights=trace[name][0, head].tolist(),
        read=words["target" if family == "decoder" else "source"],
        reading=words["source" if family == "encoder" else "target"],
        # A column of the decoder stands for the word that is read and for the next word, which is written.
        written=[] if family == "encoder" else [*words["target"][1:], special["<eos>"]],
        colours=("tgt" if family == "decoder" else "src", "src" if family == "encoder" else "tgt"),
        masked=family == "decoder",
    )
    title = said["zoom.place"].format(said[f"family.{family}"], layer % layers, head)
    sentences = f"{shown['sentence']} → {translation}"
    return Picture(drawing.svg(title, sentences, f"glassformer · {shown['name']}"), f"{title}: {sentences}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawing:
    """The weights of a head, (columns, rows), and the words of columns and rows."""

    weights: Sequence[Sequence[float]]
    read: Sequence[str]
    reading: Sequence[str]
    written: Sequence[str]
    """The words that the columns write; empty for the encoder."""
    colours: tuple[str, str]
    """The colours of the words that are attended to, and of the words that attend."""
    masked: bool
    """Whether each column only attends to rows up to its own row."""

    def svg(self, title: str, sentences: str, name: str) -> str:
        """Return one <svg> element with the drawing, its title and its caption."""
        above, below = self.written or self.reading, self.reading if self.written else []
        left = _MARGIN + max(map(_width, self.read)) + _GAP
        widths = [max(_COLUMN, _GAP + max(map(_width, both))) for both in zip(above, below or above, strict=True)]
        edges = list(accumulate(widths, initial=left))
        top = _MARGIN + 64
        bottom = top + _ROW * len(self.read)
        width = max(edges[-1] + _MARGIN, 400)
        caption = [*wrap(sentences, int((width - 2 * _MARGIN) / (_LETTER * 12 / 13))), name]
        last = bottom + (28 if below else 4)
        places = [(start + end) / 2 for start, end in pairwise(edges)]
        parts = [
            _text(_MARGIN, _MARGIN + 14, title, "ink", size=15, weight=650, anchor="start"),
            *(_text(place, top - 10, word, self.colours[1]) for place, word in zip(places, above, strict=True)),
            _box(left, top, edges[-1] - left, bottom - top, "att-l", radius=5),
            _box(left + 1, top + 1, edges[-1] - left - 2, bottom - top - 2, "att", radius=4),
            *self._rows(left, top, edges),
            *self._knots(places, top),
            *(_text(place, bottom + 20, word, "ink3") for place, word in zip(places, below, strict=False)),
            *(
                _text(_MARGIN, last + 20 + 18 * at, line, "ink2", size=12, anchor="start")
                for at, line in enumerate(caption)
            ),
        ]
        return _assembled(parts, width, last + 20 + 18 * len(caption), f"{title}: {sentences}")

    def _rows(self, left: float, top: float, edges: Sequence[float]) -> Iterable[str]:
        """Yield the words of the rows, the lines of rows and columns, and the hatched cells that the mask hides."""
        middle = [top + _ROW * (row + 0.5) for row in range(len(self.read))]
        for row, word in enumerate(self.read):
            yield _text(left - 10, middle[row] + 4.5, word, self.colours[0], anchor="end")
            yield _box(left + 1, middle[row] - 0.5, edges[-1] - left - 2, 1, "strand")
        for column, (start, end) in enumerate(pairwise(edges)):
            yield _box((start + end - 1) / 2, top + 1, 1, _ROW * len(self.read) - 2, "strand")
            if self.masked and column + 1 < len(self.read):
                hidden = top + _ROW * (column + 1)
                yield _box(start, hidden, end - start, top + _ROW * len(self.read) - hidden - 1, "hidden")

    def _knots(self, places: Sequence[float], top: float) -> Iterable[str]:
        """Yield a circle for each weight; its title, shown on hovering, has both words and the number."""
        for column, row in ((column, row) for column in range(len(places)) for row in range(len(self.read))):
            if self.masked and row > column:
                continue
            weight, fill = self.weights[column][row], _fill(self.colours[0])
            told = f"{self.reading[column]} reads {self.read[row]}: {weight:.3f}"
            place = f'cx="{places[column]:.1f}" cy="{top + _ROW * (row + 0.5):.1f}" r="{_KNOT * sqrt(weight):.2f}"'
            yield f"<circle {place} {fill}><title>{escape(told)}</title></circle>"


def _width(text: str) -> float:
    """Return the approximate width, in px, of a text with font size 13."""
    return sum(13 if east_asian_width(one) in "WF" else _LETTER for one in text)


def _fill(colour: str) -> str:
    """Return the attributes for a colour: its light value, and a class by which the style sheet sets its dark value."""
    return f'class="{colour}" fill="{FIGURE_COLOURS.get(colour, FIGURE_COLOURS["att"])[0]}"'


def _text(
    x: float, y: float, words: str, colour: str, *, size: int = 13, weight: int = 400, anchor: str = "middle"
) -> str:
    looks = f'{_fill(colour)} font-size="{size}" font-weight="{weight}" text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {looks}>{escape(words)}</text>'


def _box(x: float, y: float, width: float, height: float, colour: str, *, radius: int = 0) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius}" {_fill(colour)}/>'


def _assembled(parts: Sequence[str], width: float, height: float, alt: str) -> str:
    """Return an <svg> element with a background; its ids and styles do not affect other pictures of a page."""
    body = "".join(parts)
    own = f"gf{crc32(body.encode()):x}"
    dark = "".join(f"#{own} .{name} {{ fill: {colour} }} " for name, (_, colour) in FIGURE_COLOURS.items())
    stripes = _box(0, 0, 7, 7, "att") + _box(0, 0, 2, 7, "att-l")
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" id="{own}" role="img" aria-label="{escape(alt)}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{_FONT}" '
        f'style="width: {width:.0f}px; max-width: max(100%, {0.7 * width:.0f}px); height: auto">'
        f"<title>{escape(alt)}</title><style>#{own} .hidden {{ fill: url(#{own}-hatch) }} "
        f"@media (prefers-color-scheme: dark) {{ {dark}}}</style>"
        f'<defs><pattern id="{own}-hatch" width="7" height="7" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)">{stripes}</pattern></defs>'
        f"{_box(0, 0, width, height, 'paper', radius=10)}{body}</svg>"
    )
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "\ufffd", svg)  # control characters are not allowed in XML
