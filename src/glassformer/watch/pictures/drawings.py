"""Reusable drawings: heat maps, attention as lines, curves, bars, and flow diagrams of boxes and arrows.

Values may be tensors, arrays or nested lists.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Text
from matplotlib.ticker import LogLocator, NullLocator
from numpy.typing import NDArray

from glassformer.errors import ShapeError
from glassformer.watch.pictures.picture import BLUE, GREY, ORANGE, PALETTE, Picture, canvas, picture

__all__ = ["Box", "attention_lines", "bars", "curves", "flow", "heat_map"]

Values = Any
"""A tensor, an array or nested lists of numbers."""


def heat_map(
    values: Values,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    *,
    alt: str,
    title: str = "",
    row_label: str = "",
    column_label: str = "",
    numbers: str | None = None,
    limit: float | None = None,
    width: float | None = None,
) -> Picture:
    """Return a heat map of a matrix: blue for values above 0, orange below 0, stronger for larger magnitudes.

    Cells with NaN stay empty. `numbers` is the format, such as ".2f", of the numbers in the cells; by default, small
    matrices show two decimals, and large matrices show no numbers. `limit` is the magnitude that has the full colour
    (default: the largest magnitude).

    Raises:
        ShapeError: the values are not a matrix, or the numbers of its rows or columns differ from the numbers of names.
    """
    matrix = _array(values, 2)
    for what, names, size in (("rows", rows, matrix.shape[0]), ("columns", columns, matrix.shape[1])):
        if names is not None and len(names) != size:
            raise ShapeError(f"{what}: expected {size} names, one each, got {len(names)}")
    height, breadth = matrix.shape
    small = matrix.size <= 150 and breadth <= 14
    cell = 0.52 if small else min(0.34, 7.2 / breadth, 6 / height)
    longest = max((len(name) for name in rows or ()), default=0)
    wide = width or min(7.6, max(2.4, breadth * cell + 0.09 * longest + 0.5))
    figure, axes = canvas(wide, max(1.2, height * cell * (0.62 if small else 1) + (0.9 if columns else 0.6)))
    full = limit or float(np.nanmax(np.abs(matrix), initial=0.0)) or 1.0
    axes.imshow(_coloured(matrix / full), aspect="auto", interpolation="nearest")
    _named(axes, rows, columns, matrix.shape)
    axes.set(title=title, xlabel=column_label, ylabel=row_label)
    axes.spines[:].set_visible(False)
    shape = numbers if numbers is not None else ".2f" if small else ""
    for row, column in np.ndindex(*matrix.shape) if shape else ():
        if not np.isnan(matrix[row, column]):
            text = _minus(format(matrix[row, column], shape))
            axes.text(column, row, text, ha="center", va="center", fontsize=9)
    for words in figure.findobj(Text):
        words.set_parse_math(False)  # a "$" in a sentence does not begin a formula
    return picture(figure, alt)


def attention_lines(
    weights: Values,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    alt: str,
    query: int | None = None,
    names: Sequence[str] | None = None,
    title: str = "",
) -> Picture:
    """Return a picture of attention: lines from queries, above, to keys, below, thicker for larger weights.

    `weights` has the shape (T, S), or (heads, T, S) with a colour per head; `names` are the heads' names in the legend.
    If `query` is given, only the lines of the query with this index are drawn.

    Raises:
        ShapeError: the shape of the weights does not fit the words.
    """
    matrix = _array(weights, 2, 3)
    heads = matrix if matrix.ndim == 3 else matrix[None]
    if heads.shape[1:] != (len(queries), len(keys)):
        raise ShapeError(f"weights: expected shape {(len(queries), len(keys))}, got {heads.shape[1:]}")
    most = max(len(queries), len(keys))
    longest = max(map(len, (*queries, *keys)))
    figure, axes = canvas(min(7.6, max(3.2, most * max(0.5, 0.085 * longest))), 2.4 if names is None else 2.7)
    above, below = (np.linspace(0, 1, 2 * n + 1)[1::2] for n in (len(queries), len(keys)))
    turned = 35 if most * longest > 85 else 0
    for place, word in enumerate(queries):
        faint = query is not None and place != query
        axes.text(
            above[place],
            1.04,
            word,
            ha="left" if turned else "center",
            va="bottom",
            rotation=turned,
            alpha=0.45 if faint else 1,
            weight="bold" if place == query else "normal",
            fontsize=10,
        )
    for place, word in enumerate(keys):
        axes.text(below[place], -0.04, word, ha="right" if turned else "center", va="top", rotation=turned, fontsize=10)
    shift = 0.012 * (np.arange(len(heads)) - (len(heads) - 1) / 2)
    for head, matrix in enumerate(heads):
        for row, column in np.ndindex(*matrix.shape):
            weight = matrix[row, column]
            if weight >= 0.01 and query in (None, row):
                ends = ([above[row] + shift[head], below[column] + shift[head]], [1, 0])
                axes.plot(
                    *ends,
                    color=PALETTE[head % len(PALETTE)],
                    linewidth=6 * weight,
                    alpha=0.25 + 0.75 * weight,
                    solid_capstyle="round",
                )
    if names is not None:
        proxies = [Line2D([], [], color=PALETTE[head % len(PALETTE)], linewidth=4) for head in range(len(heads))]
        figure.legend(proxies, names, loc="outside lower center", ncols=min(4, len(names)), frameon=False, fontsize=9)
    axes.set(xlim=(0, 1), ylim=(-0.3, 1.3), title=title)
    axes.axis("off")
    return picture(figure, alt)


def curves(
    series: Mapping[str, Sequence[Values]],
    *,
    alt: str,
    x_label: str,
    y_label: str,
    title: str = "",
    log: bool = False,
    from_zero: bool = False,
    mark: tuple[float, float, str] | None = None,
    level: tuple[float, str] | None = None,
    width: float = 6.4,
    height: float = 3.2,
) -> Picture:
    """Return a picture of named curves: each is (x, y), or (x, y, spread) for a band y ± spread around the curve.

    With `log`, the y axis is logarithmic; with `from_zero`, it starts at 0. `mark` is (x, y, label) of a point to mark;
    `level` is (y, label) of a horizontal line.
    """
    figure, axes = canvas(width, height)
    for colour, style, (name, (x, y, *spread)) in zip(cycle(PALETTE), cycle(_STYLES), series.items(), strict=False):
        xs, ys = _array(x, 1), _array(y, 1)
        axes.plot(xs, ys, style, color=colour, label=name, linewidth=1.8)
        if spread:
            band = _array(spread[0], 1)
            axes.fill_between(xs, ys - band, ys + band, color=colour, alpha=0.18, linewidth=0)
    if level:
        axes.axhline(level[0], color=GREY, linestyle=(0, (1, 1.5)), linewidth=1.6, label=level[1])
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_locator(NullLocator())
    if from_zero:
        axes.set_ylim(bottom=0)
    if mark:
        x, y, words = mark
        axes.plot([x], [y], "o", color="black", fillstyle="none", markersize=9, markeredgewidth=1.6)
        to_screen, (left, right) = axes.transScale, axes.get_xlim()
        (_, height_of), (_, bottom), (_, top) = to_screen.transform([(x, y), *((x, end) for end in axes.get_ylim())])
        low, late = height_of < (bottom + top) / 2, x > (left + right) / 2
        if low:  # leave room for the label below the point
            lowest = min(bottom, height_of - 0.16 * (top - bottom))
            axes.set_ylim(bottom=to_screen.inverted().transform((x, lowest))[1])
        place = {"ha": "right" if late else "left", "va": "top" if low else "bottom", "fontsize": 9}
        axes.annotate(words, (x, y), (-6 if late else 6, -7 if low else 7), textcoords="offset points", **place)
    axes.set(xlabel=x_label, ylabel=y_label, title=title)
    axes.grid(color=GREY, alpha=0.25, linewidth=0.6)
    if len(series) > 1 or level:
        axes.legend(frameon=False, fontsize=9)
    return picture(figure, alt)


def bars(
    values: Mapping[str, float | tuple[float, float]],
    *,
    alt: str,
    x_label: str,
    title: str = "",
    numbers: str = ".1f",
    points: Mapping[str, Sequence[float]] | None = None,
    width: float = 6.4,
) -> Picture:
    """Return a picture of named horizontal bars: each is a value, or (value, spread) for an error bar.

    `points` are single measurements for each bar, drawn as dots.
    """
    figure, axes = canvas(width, 0.34 * len(values) + 0.8)
    names = list(values)
    both = [value if isinstance(value, tuple) else (value, 0.0) for value in values.values()]
    places = range(len(names))
    for place, (value, spread) in zip(places, both, strict=True):
        colour = ORANGE if value < 0 else BLUE
        axes.barh(place, value, color=colour, alpha=0.75, height=0.68, xerr=spread or None, error_kw={"linewidth": 1.2})
        ends = [value + spread, value - spread, *(points or {}).get(names[place], ())]
        axes.annotate(
            _minus(format(value, numbers)),
            (max(ends) if value >= 0 else min(ends), place),  # the label is outside all bars
            (4 if value >= 0 else -4, 0),
            textcoords="offset points",
            va="center",
            ha="left" if value >= 0 else "right",
            fontsize=9,
        )
    for name, several in (points or {}).items():
        axes.plot(_array(several, 1), [names.index(name)] * len(several), "o", color="black", markersize=3, alpha=0.6)
    axes.set_yticks(list(places), names)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set(xlabel=x_label, title=title)
    return picture(figure, alt)


@dataclass(frozen=True, slots=True)
class Box:
    """A box of a flow diagram: text, position (column, row; row 0 is at the bottom) and style."""

    text: str
    column: float
    row: float
    colour: str = GREY
    link: str = ""
    """Link to open on a click, such as the chapter "attention.py"."""
    width: float = 1.0
    """Width of the box, in columns."""
    more: Mapping[str, str] = field(default_factory=dict)
    """Words of a second line, each with its link."""


def flow(
    boxes: Mapping[str, Box],
    arrows: Sequence[tuple[str, str] | tuple[str, str, str]],
    *,
    alt: str,
    title: str = "",
    column: float = 1.9,
    row: float = 0.62,
) -> Picture:
    """Return a flow diagram of named boxes and of arrows (from, to) or (from, to, label).

    `column` and `row` are the distances between columns and rows, in inches.
    """
    columns, rows = [box.column for box in boxes.values()], [box.row for box in boxes.values()]
    margin = max((box.width for box in boxes.values()), default=1) / 2
    left, right = min(columns) - margin, max(columns) + margin
    figure, axes = canvas((right - left) * column + 0.2, (max(rows) - min(rows) + 1) * row + (0.5 if title else 0.2))
    placed = {name: _box(axes, box) for name, box in boxes.items()}
    for start, end, *label in arrows:
        bend = abs(boxes[start].column - boxes[end].column) > 0.01 and abs(boxes[start].row - boxes[end].row) > 0.01
        axes.annotate(
            "",
            xy=(boxes[end].column, boxes[end].row),
            xytext=(boxes[start].column, boxes[start].row),
            arrowprops={
                "arrowstyle": "-|>",
                "color": "black",
                "linewidth": 1.1,
                "alpha": 0.75,
                "patchA": placed[start],
                "patchB": placed[end],
                "shrinkA": 1,
                "shrinkB": 1,
                "connectionstyle": "angle3,angleA=0,angleB=90" if bend else "arc3",
            },
        )
        if label:
            middle = ((boxes[start].column + boxes[end].column) / 2, (boxes[start].row + boxes[end].row) / 2)
            upright = abs(boxes[start].column - boxes[end].column) < 0.01
            axes.annotate(
                label[0],
                middle,
                (5, 0) if upright else (0, 4),
                textcoords="offset points",
                fontsize=8,
                ha="left" if upright else "center",
                va="center" if upright else "bottom",
                alpha=0.85,
            )
    axes.set(xlim=(left - 0.02, right + 0.02), ylim=(min(rows) - 0.5, max(rows) + 0.5), title=title)
    axes.axis("off")
    return picture(figure, alt)


def _box(axes: Any, box: Box) -> Any:
    width, height = 0.86 * box.width, 0.56
    patch = FancyBboxPatch(
        (box.column - width / 2, box.row - height / 2),
        width,
        height,
        linewidth=1.2,
        boxstyle="round,pad=0,rounding_size=0.08",
        edgecolor=box.colour,
        facecolor=(*to_rgb(box.colour), 0.16),
        url=box.link or None,
    )
    axes.add_patch(patch)
    lift = 0.12 if box.more else 0.0
    axes.text(box.column, box.row + lift, box.text, ha="center", va="center", fontsize=9, url=box.link or None)
    for place, (word, link) in enumerate(box.more.items()):
        aside = (place - (len(box.more) - 1) / 2) * 0.36
        axes.text(box.column + aside, box.row - 0.14, word, ha="center", va="center", fontsize=7.5, url=link)
    return patch


_STYLES = ("-", "--", "-.", ":", "-", "--")
"""Line styles that differ in addition to the colours, for readers who cannot distinguish colours."""


def _array(values: Values, *dimensions: int) -> NDArray[np.float64]:
    """Return values as an array; raise an error for an unexpected number of dimensions."""
    array = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values, dtype=np.float64)
    if array.ndim not in dimensions:
        wanted = " or ".join(map(str, dimensions))
        raise ShapeError(f"values: expected {wanted} dimensions, got shape {array.shape}")
    return array


def _coloured(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return colours of shape (rows, columns, RGBA): a value's sign sets the colour, and its magnitude the opacity."""
    image = np.empty((*shares.shape, 4))
    image[..., :3] = np.where(shares[..., None] >= 0, to_rgb(BLUE), to_rgb(ORANGE))
    image[..., 3] = np.nan_to_num(np.clip(np.abs(shares), 0, 1)) * 0.9
    return image


def _named(axes: Any, rows: Sequence[str] | None, columns: Sequence[str] | None, shape: tuple[int, ...]) -> None:
    """Write names along both axes, with long column names rotated; an axis without names keeps its numbers."""
    if rows is not None:
        axes.set_yticks(range(shape[0]), rows)
    if columns is not None:
        turned = sum(map(len, columns)) > 60 or max(map(len, columns)) * shape[1] > 90
        axes.xaxis.tick_top()
        axes.set_xticks(range(shape[1]), columns, rotation=45 if turned else 0, ha="left" if turned else "center")
    axes.tick_params(length=0)


def _minus(text: str) -> str:
    return text.replace("-", "−")
