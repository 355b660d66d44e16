"""The charts of a training report, each with a description in words."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.model.alignment import Alignment
from glassformer.translating.translation import Explanation
from glassformer.watch.pictures import BLUE, GREY, ORANGE, Picture, attention_lines, canvas, curves, heat_map, picture
from glassformer.watch.report.content import Lengths
from glassformer.watch.report.history import History, Series
from glassformer.watch.report.outputs import Outputs

__all__ = [
    "Chart",
    "attention_charts",
    "errors_by_length",
    "health_curves",
    "length_chart",
    "length_ranges",
    "shown_heads",
    "training_curves",
]

WIDTH, HEIGHT = 5.0, 2.5
"""Size of a chart in inches. The text of a chart is readable both at half the width of a page and on a phone."""
_WIDE = 5.0
"""Minimum ratio of the largest to the smallest loss for which the axis is logarithmic."""
POINTS = 600
"""Maximum number of points per curve; more points would only enlarge the page."""
MOST_BARS = 24
MOST_ROWS = 30
"""Maximum number of output tokens whose attention is drawn, because an undertrained model may write hundreds of
tokens."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture with a title and a caption."""

    title: str
    picture: Picture
    caption: str = ""


def training_curves(history: History, smoothing: float = 0.0, vocabulary: int = 1) -> Iterator[Chart]:
    """Yield the curves that show how much the model has learned: loss and metric.

    Args:
        history: the history of the run, read from its log.
        smoothing: the label smoothing ε of the training loss.
        vocabulary: the number of target tokens over which ε is spread.
    """
    if history.series("loss")[0] or history.validations:
        yield _loss(history, _floor(smoothing, vocabulary))
    if history.metric and history.validations:
        yield _metric(history)


def _floor(smoothing: float, vocabulary: int) -> float:
    """Return the lowest possible cross-entropy against a smoothed target, in nats: the entropy of the target."""
    if not smoothing or vocabulary < 2:
        return 0.0
    shared = smoothing / vocabulary
    right = 1 - smoothing + shared
    return -right * math.log(right) - (vocabulary - 1) * shared * math.log(shared)


def health_curves(history: History) -> Iterator[Chart]:
    """Yield the curves that show a developer whether training was stable and fast."""
    single = (
        ("Learning rate", "learning rate", history.series("learning_rate"), ""),
        ("Gradient norm", "norm", history.series("gradient_norm"), "Before clipping."),
        ("Speed", "target tokens per second", history.series("tokens_per_second"), "Padding is not counted."),
        (
            "Waiting for data",
            "% of the time",
            history.waited(),
            "Share of the time that updates waited for their batches.",
        ),
        (
            "Padding",
            "% of the positions",
            history.padding(),
            "Share of padding in the batches, source and target together.",
        ),
    )
    for title, label, series, caption in single:
        if series[0]:
            yield Chart(title, _step_curves({label: series}, _told(title, series), label, from_zero=True), caption)


def _loss(history: History, floor: float) -> Chart:
    training, validation = history.loss(), history.validation_loss()
    series = {name: one for name, one in (("training", training), ("validation", validation)) if one[0]}
    best = history.best
    mark = (float(best["step"]), float(best["loss"]), f"kept: {best['loss']:.3f}") if best else None
    told = "; ".join(_told(f"{name} loss", one) for name, one in series.items())
    if best:
        told += f"; the kept weights have {best['loss']:.3f}, at step {best['step']:,}"
    caption = "Training: moving average, with label smoothing and dropout. Validation: without smoothing and dropout."
    level = (floor, f"lowest possible in training: {floor:.3f}") if floor and training[0] else None
    if level:
        told += f"; with label smoothing, the training loss cannot fall below {floor:.3f}"
        caption += f" With label smoothing, no model has a training loss below the dotted line, {floor:.3f}."
    values = [value for _, several in series.values() for value in several]
    log = min(values) > 0 and max(values) > _WIDE * min(values)
    how: dict[str, Any] = {"mark": mark, "level": level, "log": log}
    return Chart("Loss per target token", _step_curves(series, told, "loss, nats", **how), caption)


def _metric(history: History) -> Chart:
    name, series, best = history.metric, history.validation_metric(), history.best
    measured = best and best.get("metric")
    mark = (float(best["step"]), float(measured[1]), f"kept: {measured[1]:.1f}") if best and measured else None
    caption = "Greedy translations of validation sentences; evaluate searches with the run's beam."
    curve = _step_curves({name: series}, _told(f"validation {name}", series), name, mark=mark)
    return Chart(name.replace("greedy", "Greedy"), curve, caption)


def _told(name: str, series: Series) -> str:
    steps, values = series
    if len(steps) == 1:
        return f"{name}: {values[0]:.3g} at step {steps[0]:,.0f}"
    between = f"between {min(values):.3g} and {max(values):.3g}"
    return (
        f"{name} from {values[0]:.3g} at step {steps[0]:,.0f} to {values[-1]:.3g} at step {steps[-1]:,.0f}, {between}"
    )


def _step_curves(series: dict[str, Series], told: str, label: str, **more: Any) -> Picture:
    drawn = {name: _thinned(one) for name, one in series.items()}
    return curves(drawn, alt=told, x_label="step", y_label=label, width=WIDTH, height=HEIGHT, **more)


def _thinned(series: Series) -> Series:
    """Return every n-th point and the last point, at most about `POINTS` points."""
    steps, values = series
    every = max(len(steps) // POINTS, 1)
    places = sorted({*range(0, len(steps), every), len(steps) - 1})
    return [steps[place] for place in places], [values[place] for place in places]


def length_chart(both: Lengths, what: str) -> Chart:
    """Return a histogram of the lengths of sources and targets, in tokens."""
    figure, axes = canvas(WIDTH, HEIGHT)
    longest = int(max(side.max() for side in both))
    # The last bar counts all very long sentences.
    shown = min(longest, max(int(np.percentile(np.concatenate(both), 99.5)), 5))
    width = max(-(-shown // MOST_BARS), 1)
    edges = np.arange(0.5, shown + width + 0.5, width)
    for side, name, colour in zip(both, ("source", "target"), (BLUE, ORANGE), strict=True):
        counts, _ = np.histogram(np.minimum(side, edges[-1] - 0.5), edges)
        axes.stairs(counts, edges, color=colour, fill=True, alpha=0.25)
        axes.stairs(counts, edges, color=colour, linewidth=1.6, linestyle="-" if name == "source" else "--", label=name)
    axes.set(xlabel="tokens, <eos> included", ylabel=what)
    axes.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
    axes.legend(frameon=False, fontsize=9)
    means = [float(side.mean()) for side in both]
    caption = f"On average {means[0]:.1f} tokens in the source, {means[1]:.1f} in the target, at most {longest}."
    more = f" The last bars count lengths of {edges[-2] + 0.5:.0f} and more." if longest >= edges[-1] else ""
    return Chart("Sentence lengths", picture(figure, f"{what} by length. {caption}"), caption + more)


def errors_by_length(outputs: Outputs, tokens: Sequence[int]) -> Chart:
    """Return a chart of the translations' quality by the length of the source, in tokens."""
    sizes, values, right = np.array(tokens), np.array(outputs.values), np.array(outputs.right, dtype=float)
    bins = list(length_ranges(sizes))
    names = [f"{low}" if low == high else f"{low}–{high}" for low, high, _ in bins]
    means = [float(values[rows].mean()) for *_, rows in bins]
    exact = [float(100 * right[rows].mean()) for *_, rows in bins]
    figure, axes = canvas(WIDTH, HEIGHT + 0.3)
    places = np.arange(len(bins))
    axes.bar(places - 0.19, means, 0.38, color=BLUE, alpha=0.75, label=outputs.measure)
    axes.bar(places + 0.19, exact, 0.38, color=ORANGE, alpha=0.75, label="exactly right, %")
    for place, both in enumerate(zip(means, exact, strict=True)):
        for aside, value in zip((-0.19, 0.19), both, strict=True):
            axes.text(place + aside, value, f"{value:.0f}", ha="center", va="bottom", fontsize=8)
    axes.set_xticks(places, [f"{name}\n({rows.sum()})" for name, (*_, rows) in zip(names, bins, strict=True)])
    axes.set(xlabel="tokens of the source (and how many sentences)", ylim=(0, 1.12 * max(*means, *exact, 1)))
    if max(*means, *exact) <= 100:  # no ticks above 100, where the numbers of the bars are drawn
        axes.set_yticks([tick for tick in axes.get_yticks() if tick <= 100])
    figure.legend(loc="outside upper right", ncols=2, frameon=False, fontsize=9)
    told = zip(names, means, exact, strict=True)
    alt = f"{outputs.measure} and share of exact outputs by source length: " + ", ".join(
        f"{name} tokens {mean:.0f} and {share:.0f} %" for name, mean, share in told
    )
    kind = "higher is better" if outputs.higher_is_better else "lower is better"
    return Chart("Quality by length", picture(figure, alt), f"Means over sentences; {outputs.measure}: {kind}.")


def length_ranges(sizes: NDArray[np.int64]) -> Iterator[tuple[int, int, NDArray[np.bool_]]]:
    """Yield up to six ranges of lengths, in tokens, with about equal numbers of sentences.

    A range is a shortest length, a longest length, and a mask of its sentences. Each sentence is in exactly one range.
    `sizes` must not be empty.
    """
    edges = np.unique(np.quantile(sizes, np.linspace(0, 1, 7), method="nearest"))
    for low, high in pairwise(edges):
        last = high == edges[-1]
        rows = (sizes >= low) & ((sizes <= high) if last else (sizes < high))
        yield int(low), int(high if last else high - 1), rows
    if len(edges) == 1:
        yield int(edges[0]), int(edges[0]), np.ones(len(sizes), bool)


def shown_heads(alignment: Alignment) -> str:
    """Return a sentence that says which heads the attention charts show."""
    heads = ", ".join(map(str, alignment.heads))
    named = f"head {heads}" if len(alignment.heads) == 1 else f"the mean of heads {heads}"
    where = f"Cross-attention of decoder layer {alignment.layer}, {named} (both counted from 0)"
    if not alignment.pairs:
        return f"{where}. The heads have not been compared, so these are all heads of the last layer."
    step = ", at the step that reads the word" if alignment.shift else ""
    return (
        f"{where}{step}. They align words best: for {100 * alignment.agreement:.0f} % of the words in "
        f"{alignment.pairs:,} validation pairs, they point to the word that a word aligner finds."
    )


def attention_charts(explanation: Explanation) -> Iterator[Chart]:
    """Yield two charts of the cross-attention that aligns the words of a translation: a heat map, and lines."""
    weights, source = explanation.attention[:MOST_ROWS], explanation.source
    target = explanation.translation.tokens[:MOST_ROWS]
    told = ", ".join(
        f"{word} looks at {source[max(range(len(row)), key=row.__getitem__)]}"
        for word, row in zip(target, weights, strict=True)
    )
    layer = explanation.attention_layer.replace("decoder.layers.", "decoder layer ").replace(".", ", ")
    alt = f"Attention of {layer.replace('_', '-')}: {told}"
    all_of_it = len(target) == len(explanation.translation.tokens)
    cut = "" if all_of_it else f" The first {MOST_ROWS} of {len(explanation.translation.tokens)} tokens."
    grid = heat_map(weights, target, source, alt=alt, numbers="", width=min(WIDTH, 1.6 + 0.42 * len(source)))
    caption = "Rows: the output. Columns: the source. A stronger colour means more attention."
    yield Chart("Attention as a heat map", grid, caption + cut)
    lines = attention_lines(weights, target, source, alt=alt)
    yield Chart("The same attention as lines", lines, f"Above: the output. Below: the source.{cut}")
