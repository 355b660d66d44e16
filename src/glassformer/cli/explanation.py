"""Print an explained translation to a terminal: confidence, attention and beam."""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import exp
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from glassformer.cli.bar import bar
from glassformer.decoding.hypothesis import score_text
from glassformer.errors import quoted
from glassformer.translating.translation import Explanation

if TYPE_CHECKING:
    from glassformer.decoding.search_trace import Node

__all__ = ["layout", "read_instead"]

STATUS = {
    "blank": "blank: there is nothing to translate",
    "too_long": "too long: it has more tokens than decoding.max_source or the model allows; split it",
    "undecodable": "undecodable: its bytes are not UTF-8",
    "empty": "empty: the model wrote nothing",
    "max_length": "cut at its maximum length (decoding.extra_length): the last <eos> was forced",
}
CHOSEN = "→"
MARKS = {"kept": "•", "finished": "✓", "pruned": "×"}
NODE_STYLES = {"kept": "", "finished": "green", "pruned": "dim"}
BAR_WIDTH = 8
NUMBER_COLUMNS = 15
"""Total width of the columns before the words of a hypothesis: step, mark and log p."""
SHOWN_WEIGHT = 0.1
"""Minimum attention weight of a source token that is printed; the token with the largest weight is always printed."""


def layout(number: int, explanation: Explanation, width: int) -> RenderableType:
    """Return the explanation of line `number`, laid out for a terminal of `width` columns."""
    status = explanation.translation.status
    heading = Text(f"line {number}", style="bold")
    if status in STATUS:
        heading.append(f"  {STATUS[status]}", style="yellow")
    if explanation.translation.reasons:
        heading.append(f"  suspicious: {', '.join(explanation.translation.reasons)}", style="yellow")
    if not explanation.source:
        return heading
    parts = (_sentences, _tokens, _sums, lambda one: _beam(one, width), _hypotheses)
    return Group(heading, *(renderable for part in parts for renderable in (*part(explanation), "")))


def read_instead(texts: Sequence[str]) -> str:
    """Say what the model reads instead of a line when `translate` gets the line."""
    if not texts:
        return "this is the line as it is; `translate` copies it"
    return f"this is the line as it is; `translate` lets the model read {' and '.join(map(quoted, texts))}"


def _sentences(explanation: Explanation) -> Iterator[RenderableType]:
    grid = Table.grid(padding=(0, 2))
    grid.add_row("source", Text(" ".join(_distinct(explanation.source))))
    if explanation.unknown:
        unknown = ", ".join(map(_printable, explanation.unknown))
        grid.add_row("", Text(f"<unk> stands for what is not in the vocabulary: {unknown}", style="yellow"))
    if explanation.rewritten is not None:
        grid.add_row("", Text(read_instead(explanation.rewritten), style="yellow"))
    grid.add_row("output", Text(_printable(explanation.translation.text), style="bold"))
    if confidence := explanation.translation.confidence:
        parts = {"exactly right": confidence.exact, "close to the reference": confidence.close}
        told = ", ".join(f"{name} {value:.0%}" for name, value in parts.items() if value is not None)
        grid.add_row("", f"confidence: {told}")
    yield grid


def _tokens(explanation: Explanation) -> Iterator[RenderableType]:
    """Yield a table of the output's tokens, each with its probability and its largest attention weights."""
    translation, source = explanation.translation, _distinct(explanation.source)
    least = min(translation.token_log_probs)
    table = Table("token", "p", "", "cross-attention looks at", box=None, pad_edge=False, header_style="dim")
    table.columns[0].no_wrap, table.columns[1].justify = True, "right"
    rows = zip(translation.tokens, translation.token_log_probs, explanation.attention, strict=True)
    for token, log_prob, weights in rows:
        style, note = ("yellow", "   ← least sure") if log_prob == least else ("", "")
        p = exp(log_prob)
        cells = (_printable(token), _probability(p), bar(p, BAR_WIDTH), _looks_at(weights, source) + note)
        table.add_row(*(Text(cell, style=style) for cell in cells))
    yield table


def _sums(explanation: Explanation) -> Iterator[RenderableType]:
    one = explanation.translation
    yield f"log p  {one.log_prob:.4f}: the sum of the tokens' log p; the output has p {_probability(exp(one.log_prob))}"
    score = score_text(f"{one.log_prob:.4f}", str(len(one.tokens)), explanation.settings)
    yield f"score  {one.score:.4f} = {score}"
    yield Text(
        f"p: the model's probability of a token, given the tokens before it. Attention: {explanation.attention_layer}, "
        f"{_heads(explanation)}. It hints at what influenced the token, but proves nothing.",
        style="dim",
    )


def _heads(explanation: Explanation) -> str:
    """Return a description of the heads whose attention is shown, and of the step from which the attention comes."""
    alignment = explanation.alignment
    assert alignment  # an explanation with a table always has an alignment
    step = "after the token is chosen" if alignment.shift else "while the token is chosen"
    if not alignment.pairs:
        return f"the mean of its heads, {step}"
    several = "heads" if len(alignment.heads) > 1 else "head"
    return f"{several} {', '.join(map(str, alignment.heads))}, which align words best, {step}"


def _beam(explanation: Explanation, width: int) -> Iterator[RenderableType]:
    """Yield the steps of the search: a line per kept or finished hypothesis, and one line for all pruned candidates."""
    size = explanation.settings.beam_size
    yield Text(f"the beam, of size {size}: the best {2 * size} candidates of each step, with their log p so far")
    yield Text(f"{CHOSEN} kept, becomes the output   • kept   ✓ finished   × pruned", style="dim")
    grid = Table.grid(padding=(0, 1))
    for column in range(4):
        grid.add_column(no_wrap=True, justify="right" if column in (0, 2) else "left")
    chosen = _chosen(explanation)
    for position, nodes in enumerate(explanation.tree.steps(), start=1):
        rows = [_row(explanation, node, node.id in chosen, width) for node in nodes if node.state != "pruned"]
        pruned = [node for node in nodes if node.state == "pruned"]
        rows += [_pruned_row(explanation, pruned, width)] if pruned else []
        for place, row in enumerate(rows):
            grid.add_row(Text("" if place else str(position), style="dim"), *row)
    yield grid


def _row(explanation: Explanation, node: "Node", chosen: bool, width: int) -> tuple[Text, ...]:
    """Return the cells of a hypothesis: its mark, its log p, and its words, of which the first are cut if necessary."""
    score = f"  (score {node.score:.4f})" if node.score is not None else ""
    mark = CHOSEN if chosen and node.state == "kept" else MARKS[node.state]
    words = _end(_printed(explanation, node), width - NUMBER_COLUMNS - len(score))
    style = "bold" if chosen else NODE_STYLES[node.state]
    return Text(mark, style=style), Text(f"{node.log_prob:.3f}", style=style), Text(words + score, style=style)


def _pruned_row(explanation: Explanation, nodes: Sequence["Node"], width: int) -> tuple[Text, ...]:
    """Return the cells of the pruned candidates: the last two tokens and the log p of each."""
    words = (f"{' '.join(_printed(explanation, node)[-2:])} {node.log_prob:.2f}" for node in nodes)
    text = Text(", ".join(words), style="dim")
    text.truncate(width - NUMBER_COLUMNS, overflow="ellipsis")
    return Text(MARKS["pruned"], style="dim"), Text(), text


def _hypotheses(explanation: Explanation) -> Iterator[RenderableType]:
    one = explanation.translation
    score = score_text("log p", "tokens", explanation.settings)
    yield Text(f"the best finished hypotheses, by score = {score}")
    table = Table("score", "log p", "tokens", "text", box=None, pad_edge=False, header_style="dim")
    for column in table.columns[:3]:
        column.justify = "right"
    for hypothesis in (one, *one.alternatives):
        numbers = (f"{hypothesis.score:.4f}", f"{hypothesis.log_prob:.4f}", str(len(hypothesis.tokens)))
        table.add_row(*numbers, Text(_printable(hypothesis.text), style="bold" if hypothesis is one else ""))
    yield table


def _chosen(explanation: Explanation) -> set[int]:
    """Return the ids of the nodes on the path to the output."""
    tree, tokens = explanation.tree, explanation.translation.tokens
    ends = (tree.path(node.id) for node in tree.nodes if node.state == "finished")
    return {node.id for path in ends if _words(explanation, path) == tokens for node in path}


def _words(explanation: Explanation, path: Sequence["Node"]) -> tuple[str, ...]:
    return tuple(explanation.tree_tokens[node.id] for node in path)


def _printed(explanation: Explanation, node: "Node") -> list[str]:
    """Return the tokens of the hypothesis that ends with this node, in printable form."""
    return [_printable(word) for word in _words(explanation, explanation.tree.path(node.id))]


def _looks_at(weights: Sequence[float], source: Sequence[str]) -> str:
    """Return the source tokens with the largest attention weights in a row of weights, and these weights."""
    first, *others = sorted(zip(weights, source, strict=True), reverse=True)
    named = [first, *(other for other in others[:2] if other[0] >= SHOWN_WEIGHT)]
    return "   ".join(f"{token} {weight:.2f}" for weight, token in named)


def _distinct(tokens: Sequence[str]) -> list[str]:
    """Return the tokens in printable form; repeated tokens are numbered, such as the#1, the#2."""
    total, seen = Counter(tokens), Counter[str]()
    distinct = []
    for token in tokens:
        seen[token] += 1
        distinct.append(_printable(token) + (f"#{seen[token]}" if total[token] > 1 else ""))
    return distinct


def _end(words: Sequence[str], width: int) -> str:
    """Return as many of the last words as fit into `width` columns."""
    whole = Text(" ".join(words))
    for first in range(1, len(words)):
        if whole.cell_len <= width:
            break
        whole = Text(" ".join(("…", *words[first:])))
    whole.truncate(width, overflow="ellipsis")
    return whole.plain


def _probability(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else f"{p:.0e}"


def _printable(text: str) -> str:
    """Return the text without control characters and halves of surrogate pairs, which could disturb a terminal."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)
