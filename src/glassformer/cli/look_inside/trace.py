"""`glassformer trace`: every step of one translation, with shapes and numbers."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.arguments import Json, RunFolder
from glassformer.errors import ConfigError, DataError, nearest, quoted
from glassformer.text.vocabulary import PAD_ID

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from torch import Tensor

    from glassformer.model.points import Point
    from glassformer.model.taps import Trace
    from glassformer.text.tokenizer import Tokenizer
    from glassformer.translator import Translator

__all__ = ["trace_command"]

MASKS = {
    "encoder": "each position sees all positions (no padding)",
    "self_attention": "each position sees itself and earlier positions",
    "cross_attention": "each position sees the whole source",
}
LABEL_WIDTH, NUMBER_WIDTH = 12, 7


@dataclass(frozen=True, slots=True)
class _Traced:
    source: list[str]
    """The tokens that the encoder reads."""
    target: list[str]
    """The tokens that the decoder reads: `<bos>` and the target so far."""
    output: list[str]
    """The token to predict at each of these positions: the target and `<eos>`."""
    source_ids: list[int]
    target_ids: list[int]
    output_ids: list[int]
    points: "Trace"
    tokenizer: "Tokenizer"
    described: Mapping[str, "Point"]

    def values(self, name: str) -> "Tensor":
        """Return the recorded value of a point, without the batch axis (position tables have no batch axis)."""
        tensor = self.points[name]
        return tensor if tensor.dim() == 2 else tensor[0]

    def word(self, token: int) -> str:
        """Return the readable form of a target token."""
        return self.tokenizer.tokens([token])[0]

    def labels(self, name: str, tensor: "Tensor") -> tuple[Sequence[str], Sequence[str]]:
        """Return the names of a point's rows (tokens) and columns (tokens, the vocabulary's tokens, or dimensions)."""
        names = {"S": self.source, "T": self.target}
        *_, rows, columns = self.described[name].shape.split()
        if columns == "V":
            return names[rows], self.tokenizer.tokens(range(tensor.shape[-1]))
        return names[rows], names.get(columns) or [str(dimension) for dimension in range(tensor.shape[-1])]


def trace_command(
    run: RunFolder,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Source sentence.")],
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="TEXT", help="Trace this target instead of the model's own output."),
    ] = None,
    point: Annotated[
        list[str] | None,
        typer.Option(
            "--point", metavar="NAME", help="Print these points in full; * and ? work as in file names. Repeatable."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print each step of one translation, with shapes and numbers.

    Each named point of the model has its own line: shape, meaning, and the first numbers.
    """
    from rich.console import Console

    from glassformer.translator import Translator

    traced = _trace(Translator.load(run), text, target)
    _check_points(point or [], list(traced.points))
    chosen = [name for name in traced.points if any(fnmatchcase(name, pattern) for pattern in point or ["*"])]
    if as_json:
        typer.echo(json.dumps(_as_json(traced, chosen), ensure_ascii=False))
        return
    console = Console(highlight=False, markup=False, emoji=False)
    if point:
        for name in chosen:
            _print_point(console, traced, name)
    else:
        _print_all(console, traced)


def _trace(translator: "Translator", text: str, target: str | None) -> _Traced:
    """Return the values of all points for a source and a target, which by default is the model's translation."""
    import torch

    from glassformer.cli.explanation import read_instead
    from glassformer.decoding.transformer_step import padded
    from glassformer.model.points import named_points
    from glassformer.model.taps import record
    from glassformer.translating.translation import TRANSLATED

    explanation = translator.explain(text)
    translation = explanation.translation
    if translation.status not in (*TRANSLATED, "empty"):
        raise DataError(f"the text has no translation: {translation.status.replace('_', ' ')}")
    if explanation.rewritten is not None:
        typer.echo(read_instead(explanation.rewritten), err=True)
    followed = translation.text if target is None else target
    bundle, config = translator.bundle, translator.bundle.model_config
    source_ids = [*bundle.source_tokenizer.encode(text), bundle.source_tokenizer.eos_id]
    target_ids = [config.bos_id, *bundle.target_tokenizer.encode(followed)]
    with torch.no_grad(), record(translator.model) as points:
        translator.model(padded(translator.model, [source_ids]), padded(translator.model, [target_ids]))
    output_ids = [*target_ids[1:], config.eos_id]
    return _Traced(
        source=bundle.source_tokenizer.tokens(source_ids),
        target=bundle.target_tokenizer.tokens(target_ids),
        output=bundle.target_tokenizer.tokens(output_ids),
        source_ids=source_ids,
        target_ids=target_ids,
        output_ids=output_ids,
        points=points,
        tokenizer=bundle.target_tokenizer,
        described=named_points(config),
    )


def _print_all(console: "Console", traced: _Traced) -> None:
    _print_tokens(console, "source", traced.source, traced.source_ids)
    _print_tokens(console, "target", traced.target, traced.target_ids)
    console.print("\neach point: its shape (heads × tokens × width), what it is, its first numbers")
    block = ""
    for name in traced.points:
        path, _, point = name.rpartition(".")
        if path != block:
            console.print(_heading(path, point), style="bold")
            block = path
        tensor = traced.values(name)
        shape = "×".join(map(str, tensor.shape))
        numbers = "".join(f"{number:9.4f}" for number in tensor.flatten()[:3].tolist())
        console.print(f"  {point:<10} {shape:>8}  {traced.described[name].formula:<29}{numbers}")
        if point == "scores":
            console.print(f"  {'mask':<10} {shape.partition('×')[2]:>8}  {_mask(path, traced)}")
    last = [name for name in traced.points if name.endswith("cross_attention.weights")][-1]
    console.print(f"\n{last}, mean of the heads: where the decoder looks while each word is chosen")
    _print_grid(console, traced.values(last).mean(0), traced.output, traced.source)
    console.print("\nthe next word, step by step, with its best rivals")
    console.print(_next_words(traced))
    console.print("\n--point NAME prints one point in full, --json all points")


def _print_tokens(console: "Console", side: str, tokens: Sequence[str], ids: Sequence[int]) -> None:
    """Print the tokens of the source or of the target, and their ids."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_row(side, " ".join(tokens))
    grid.add_row("  ids", " ".join(map(str, ids)))
    console.print(grid)


def _heading(path: str, point: str) -> str:
    if path.endswith("cross_attention") and point == "key":
        return f"{path}: keys and values, x = encoder.output (once for all words)"
    return path or "output"


def _mask(path: str, traced: _Traced) -> str:
    """Return a description of an attention's mask."""
    attention = "encoder" if path.startswith("encoder") else path.rpartition(".")[2]
    if attention != "self_attention" and PAD_ID in traced.source_ids:
        return "each position sees the whole source, but not <pad>"
    return MASKS[attention]


def _next_words(traced: _Traced) -> "Table":
    from rich.table import Table

    table = Table("after", "comes", "log p", "p", "the likeliest words", box=None, pad_edge=False)
    log_probs = traced.values("log_probs")  # (T, V)
    for position, (before, after) in enumerate(zip(traced.target, traced.output, strict=True)):
        own = log_probs[position, traced.output_ids[position]]
        best = log_probs[position].topk(3)
        rivals = (
            f"{traced.word(token)} {math.exp(log_prob):.4f}"
            for token, log_prob in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        )
        table.add_row(before, after, f"{own:.4f}", f"{own.exp():.4f}", "  ".join(rivals))
    return table


def _print_point(console: "Console", traced: _Traced, name: str) -> None:
    """Print all numbers of one point: a grid for each head, or one grid."""
    tensor = traced.values(name)
    rows, columns = traced.labels(name, tensor)
    console.print(f"\n{name}  {' × '.join(map(str, tensor.shape))}: {traced.described[name].formula}")
    for head, grid in enumerate(tensor if tensor.dim() == 3 else [tensor]):
        if tensor.dim() == 3:
            console.print(f"head {head}")
        _print_grid(console, grid, rows, columns)


def _print_grid(console: "Console", grid: "Tensor", rows: Sequence[str], columns: Sequence[str]) -> None:
    """Print numbers with row and column names, in blocks of columns that fit; each row's largest number is bold."""
    from rich.table import Table
    from rich.text import Text

    numbers, rows, columns = grid.tolist(), [_cut(name) for name in rows], [_cut(name) for name in columns]
    for block in _blocks(rows, columns, console.width):
        table = Table("", box=None, pad_edge=False)
        for name in columns[block]:
            table.add_column(Text(name), justify="right", no_wrap=True)
        for name, row in zip(rows, numbers, strict=True):
            cells = (Text(f"{number:.3f}", style="bold" if number == max(row) else "") for number in row[block])
            table.add_row(Text(name), *cells)
        console.print(table)


def _blocks(rows: Sequence[str], columns: Sequence[str], width: int) -> Iterator[slice]:
    """Yield blocks of columns that fit into the width to the right of the row names."""
    from rich.cells import cell_len

    room = width - max(map(cell_len, rows))
    first, taken = 0, 0
    for place, name in enumerate(columns):
        needed = 2 + max(NUMBER_WIDTH, cell_len(name))
        if taken + needed > room and place > first:
            yield slice(first, place)
            first, taken = place, 0
        taken += needed
    yield slice(first, len(columns))


def _cut(name: str) -> str:
    return name if len(name) <= LABEL_WIDTH else name[: LABEL_WIDTH - 1] + "…"


def _as_json(traced: _Traced, chosen: Sequence[str]) -> dict[str, object]:
    tensors = {name: traced.values(name) for name in chosen}
    points = {name: {"shape": list(tensor.shape), "values": tensor.tolist()} for name, tensor in tensors.items()}
    return {"source": traced.source, "target": traced.target, "output": traced.output, "points": points}


def _check_points(patterns: Sequence[str], names: Sequence[str]) -> None:
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ConfigError(
                f"--point: expected a pattern that matches a point, got {quoted(pattern)}{nearest(pattern, names)}"
            )
