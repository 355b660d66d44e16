"""A picture: SVG that inherits the text colour of its page, with a text alternative for readers who cannot see it."""

import re
from dataclasses import dataclass, field
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any
from warnings import catch_warnings, filterwarnings
from zlib import crc32

from matplotlib import rc_context
from matplotlib.figure import Figure

from glassformer.errors import ConfigError, quoted, remedy

__all__ = ["BLUE", "GREEN", "GREY", "ORANGE", "PALETTE", "PURPLE", "RED", "Picture", "canvas", "picture"]

BLUE, ORANGE, GREEN, PURPLE, RED, GREY = "#2f81c7", "#cf6a1b", "#3b9150", "#8f6ac8", "#d1495b", "#808080"
"""Colours with a contrast ratio of at least 3:1 to white and to black, so that a picture suits both backgrounds."""
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, RED, GREY)


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawn picture, which notebooks display."""

    svg: str = field(repr=False)
    """One <svg> element; parts drawn in black take the colour of the surrounding text."""
    alt: str
    """The text alternative: what the picture shows."""

    def _repr_html_(self) -> str:
        return f'<div class="gf-picture" style="overflow-x: auto">{self.svg}</div>'

    def save(self, path: str | Path) -> Path:
        """Write the picture as an SVG file, and return its path.

        Raises:
            ConfigError: the name does not end with .svg, or the file cannot be written.
        """
        path = Path(path)
        if path.suffix != ".svg":
            raise ConfigError(f"{path}: expected a name that ends with .svg, got {quoted(path.name)}")
        try:
            path.write_text(self.svg, encoding="utf-8")
        except OSError as error:
            advice = remedy(error, "choose another path")
            raise ConfigError(f"{path} cannot be written: {error.strerror}; {advice}") from error
        return path


def canvas(width: float = 6.4, height: float = 3.2, **grid: Any) -> tuple[Figure, Any]:
    """Return a matplotlib figure of this size in inches, and its axes; `grid` are arguments of `subplots`.

    Parts drawn in black take the colour of the text around the picture. For other colours, use `PALETTE`.

    >>> figure, axes = canvas(4, 2)
    >>> line = axes.plot([0, 1], [0, 1], color=BLUE)
    >>> picture(figure, "a line that rises").alt
    'a line that rises'
    """
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(**grid)
    for one in figure.axes:
        one.set_facecolor("none")
        one.spines[["top", "right"]].set_visible(False)
        one.tick_params(labelsize=9)
    return figure, axes


def picture(figure: Figure, alt: str) -> Picture:
    """Return a figure as a picture; `alt` describes the picture in a sentence for readers who cannot see it.

    Raises:
        ValueError: `alt` is blank.
    """
    if not alt.strip():
        raise ValueError("alt: expected a sentence that says what the picture shows, got a blank text")
    file = StringIO()
    with rc_context({"svg.fonttype": "none", "image.composite_image": False, "svg.hashsalt": alt}), catch_warnings():
        # the reader's browser chooses the font, so glyphs that are missing here do not matter
        filterwarnings("ignore", "Glyph .* missing")
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return Picture(_adapted(file.getvalue(), figure.get_figwidth(), figure.get_figheight(), alt), alt)


def _adapted(svg: str, width: float, height: float, alt: str) -> str:
    """Return the <svg> element without its preamble, in the colour of the surrounding text, with a text alternative."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"(fill|stroke): #000000\b", r"\1: currentColor", svg)
    svg = re.sub(r"font-family: [^;\"]*", "font-family: system-ui, sans-serif", svg)
    svg = svg.replace(' target="_blank"', "")
    # Ids must be unique in the whole page, which may contain several pictures.
    names = dict.fromkeys(re.findall(r'\bid="([^"]+)"', svg))
    prefix = f"gf{crc32(svg.encode()):x}-"
    for name in names:
        svg = re.sub(rf'(\bid="|href="#|url\(#){re.escape(name)}(?=["\)])', rf"\g<1>{prefix}{name}", svg)
    view = re.search(r'viewBox="[^"]*"', svg)
    assert view is not None
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
        f'aria-label="{escape(alt)}" {view.group()} fill="currentColor" '
        # On a narrow screen, the picture shrinks as long as it is readable; on a still narrower screen, it scrolls.
        f'style="width: {96 * width:.0f}px; max-width: max(100%, {60 * width:.0f}px); height: auto; '
        f'aspect-ratio: {width:.2f} / {height:.2f}">'
        f"<title>{escape(alt)}</title>"
    )
    svg = re.sub(r"<svg[^>]*>", lambda _: head, svg, count=1).strip()
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "\ufffd", svg)  # control characters are not allowed in XML
