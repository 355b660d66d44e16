"""`glassformer trace`: every step of one translation, with shapes and numbers."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.arguments import Json, RunFolder
from glassformer.errors import ConfigError, DataError, nearest

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from torch import Tensor

    from glassformer.model.taps import Trace
    from glassformer.text.tokenizer import Tokenizer
    from glassformer.translator import Translator

__all__ = ["trace"]

MEANING = {
    "embedding": "rows of the matrix × √d_model",
    "positions": "each position's pattern",
    "input": "what enters",
    "query": "x W_Q: what is looked for",
    "key": "x W_K: what is offered",
    "value": "x W_V: what is handed over",
    "scores": "query · key / √d_k",
    "weights": "softmax of allowed scores",
    "heads": "weights · values, per head",
    "joined": "the heads side by side",
    "hidden": "x W_1 + b_1",
    "activated": "after the activation",
    "output": "what the block gives",
    "added": "residual: input + output",
    "normed": "layer norm",
    "logits": "scores of all words",
    "log_probs": "log softmax of the logits",
}


@dataclass(frozen=True, slots=True)
class _Traced:
    source: list[str]
    """What the encoder reads."""
    target: list[str]
    """What the decoder reads: `<bos>` and the target so far."""
    output: list[str]
    """What it shall say at each of these positions: the target and `<eos>`."""
    output_ids: list[int]
    points: "Trace"
    tokenizer: "Tokenizer"

    def values(self, name: str) -> "Tensor":
        """Return the latest value of a point, without the axis of the batch (positions have none)."""
        tensor = self.points[name]
        return tensor if tensor.dim() == 2 else tensor[0]

    def word(self, token: int) -> str:
        """Return the readable form of a target token."""
        return self.tokenizer.tokens([token])[0]

    def labels(self, name: str, tensor: "Tensor") -> tuple[Sequence[str], Sequence[str]]:
        """Return the names of a point's rows (tokens) and columns (tokens, words or dimensions)."""
        rows = self.source if name.startswith(("source", "encoder")) else self.target
        if name.endswith(("cross_attention.key", "cross_attention.value")):
            rows = self.source
        if name.endswith((".scores", ".weights")):
            return rows, self.source if "cross_attention" in name else rows
        if name in ("logits", "log_probs"):
            return rows, self.tokenizer.tokens(range(tensor.shape[-1]))
        return rows, [str(dimension) for dimension in range(tensor.shape[-1])]


def trace(
    run: RunFolder,
    text: Annotated[str, typer.Argument(help="A source sentence.")],
    target: Annotated[
        str | None, typer.Option("--target", help="Follow this target instead of the model's own.")
    ] = None,
    point: Annotated[
        list[str] | None, typer.Option("--point", help="Print these points in full; * and ? as in file names.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Follow one sentence through the model: each named point with its shape and numbers, step by step."""
    from rich.console import Console

    from glassformer.translator import Translator

    traced = _trace(Translator.load(run), text, target)
    _check_points(point or [], list(traced.points))
    chosen = [name for name in traced.points if any(fnmatchcase(name, pattern) for pattern in point or ["*"])]
    if as_json:
        typer.echo(json.dumps(_as_json(traced, chosen), ensure_ascii=False))
        return
    console = Console(highlight=False)
    if point:
        for name in chosen:
            _print_point(console, traced, name)
    else:
        _print_all(console, traced)


def _trace(translator: "Translator", text: str, target: str | None) -> _Traced:
    """Translate the text (unless the target is given), then run source and target through the model, recording all."""
    import torch

    from glassformer.model.taps import record

    [translation] = translator.translate([text])
    if translation.status not in ("ok", "max_length"):
        raise DataError(f"the text has no translation: {translation.status.replace('_', ' ')}")
    followed = translation.text if target is None else target
    bundle, config = translator.bundle, translator.bundle.model_config
    source_ids = [*bundle.source_tokenizer.encode(text), config.eos_id]
    target_ids = [config.bos_id, *bundle.target_tokenizer.encode(followed)]
    with torch.no_grad(), record(translator.model) as points:
        translator.model(torch.tensor([source_ids]), torch.tensor([target_ids]))
    output_ids = [*target_ids[1:], config.eos_id]
    return _Traced(
        source=bundle.source_tokenizer.tokens(source_ids),
        target=bundle.target_tokenizer.tokens(target_ids),
        output=bundle.target_tokenizer.tokens(output_ids),
        output_ids=output_ids,
        points=points,
        tokenizer=bundle.target_tokenizer,
    )


def _print_all(console: "Console", traced: _Traced) -> None:
    console.print(f"source  {' '.join(traced.source)}\ntarget  {' '.join(traced.target)}\n")
    block = ""
    for name in traced.points:
        path, _, point = name.rpartition(".")
        if path != block:
            console.print(f"[bold]{path or 'output'}[/bold]")
            block = path
        tensor = traced.values(name)
        shape = "×".join(map(str, tensor.shape))
        numbers = "".join(f"{number:9.4f}" for number in tensor.flatten()[:3].tolist())
        console.print(f"  {point:<10} {shape:>8}  {MEANING[point]:<29}{numbers}")
    last = max(name for name in traced.points if name.endswith("cross_attention.weights"))
    console.print(f"\n{last}, mean of the heads: where each word of the target looks")
    console.print(_grid(traced.values(last).mean(0), traced.target, traced.source))
    console.print("\nthe next word, step by step, with its best rivals")
    console.print(_next_words(traced))
    console.print("\n--point NAME prints one of them in full, --json all of them")


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
    console.print(f"\n{name}  {' × '.join(map(str, tensor.shape))}: {MEANING[name.rpartition('.')[2]]}")
    for head, grid in enumerate(tensor if tensor.dim() == 3 else [tensor]):
        if tensor.dim() == 3:
            console.print(f"head {head}")
        console.print(_grid(grid, rows, columns))


def _grid(grid: "Tensor", rows: Sequence[str], columns: Sequence[str]) -> "Table":
    """Return a table of numbers between its row and column names; the largest of a row stands out."""
    from rich.table import Table
    from rich.text import Text

    table = Table("", box=None, pad_edge=False)
    for name in columns:
        table.add_column(Text(name), justify="right")
    for name, numbers in zip(rows, grid.tolist(), strict=True):
        largest = max(numbers)
        cells = (Text(f"{number:.3f}", style="bold" if number == largest else "") for number in numbers)
        table.add_row(Text(name), *cells)
    return table


def _as_json(traced: _Traced, chosen: Sequence[str]) -> dict[str, object]:
    tensors = {name: traced.values(name) for name in chosen}
    points = {name: {"shape": list(tensor.shape), "values": tensor.tolist()} for name, tensor in tensors.items()}
    return {"source": traced.source, "target": traced.target, "output": traced.output, "points": points}


def _check_points(patterns: Sequence[str], names: Sequence[str]) -> None:
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ConfigError(f"--point {pattern!r} fits no point{nearest(pattern, names)}")
