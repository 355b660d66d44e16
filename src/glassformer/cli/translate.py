"""`glassformer translate`."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from glassformer.cli.arguments import BeamSize, LengthPenalty, MaxSource, RunFolder
from glassformer.errors import ConfigError

if TYPE_CHECKING:
    from glassformer.translator import Sampling, Translation

__all__ = ["translate"]


def translate(
    run: RunFolder,
    file: Annotated[
        Path | None, typer.Argument(help="Text, one sentence a line, plain or .gz.  [default: stdin]")
    ] = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    n_best: Annotated[int, typer.Option("--n-best", help="Print so many outputs a line: number, score, text.")] = 1,
    prefix: Annotated[str, typer.Option("--prefix", help="What each output has to begin with.")] = "",
    sample: Annotated[bool, typer.Option("--sample", help="Draw outputs at random instead of searching.")] = False,
    temperature: Annotated[float, typer.Option(help="With --sample: below 1 bolder, above 1 more varied.")] = 1.0,
    top_k: Annotated[int, typer.Option(help="With --sample: draw among so many tokens; 0 = all.")] = 0,
    top_p: Annotated[float, typer.Option(help="With --sample: draw among tokens of this total probability.")] = 1.0,
    seed: Annotated[int, typer.Option(help="With --sample: seed of the draws.")] = 1,
    max_source: MaxSource = 1024,
    status: Annotated[Path | None, typer.Option("--status", help="Write each line's status here, as JSONL.")] = None,
) -> None:
    """Translate text: as many lines out as in. A line that cannot be translated gives an empty one."""
    from glassformer.translator import WINDOW, Translator

    options: dict[str, Any] = {
        "beam_size": beam_size,
        "length_penalty": length_penalty,
        "n_best": n_best,
        "prefix": prefix,
        "sampling": _sampling(sample, temperature, top_k, top_p, seed),
        "max_source": max_source,
    }
    translator = Translator.load(run)
    typing = file is None and sys.stdin.isatty()
    results = translator.stream(_lines(file), window=1 if typing else WINDOW, **options)
    with status.open("w", encoding="utf-8") if status else nullcontext() as log:
        counts = _write(results, n_best, log)
    _summarise(counts)


def _sampling(sample: bool, temperature: float, top_k: int, top_p: float, seed: int) -> "Sampling | None":
    from glassformer.translator import Sampling

    wanted = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    if not sample and wanted != Sampling():
        raise ConfigError("--temperature, --top-k, --top-p and --seed have no effect without --sample")
    return wanted if sample else None


def _lines(file: Path | None) -> Iterator[str]:
    """Return the lines of a file or of stdin; bytes that are no UTF-8 become surrogates, which nothing else is."""
    from glassformer.text.corpus import raw_lines

    if file is None and sys.stdin.isatty():
        typer.echo("type a sentence and Enter; Ctrl-D ends", err=True)
    stream = sys.stdin.buffer if file is None else raw_lines(file)
    return (raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "surrogateescape") for raw in stream)


def _write(results: "Iterable[Translation]", n_best: int, log: TextIO | None) -> Counter[str]:
    counts: Counter[str] = Counter()
    for number, result in enumerate(results, start=1):
        counts[result.status] += 1
        if n_best == 1:
            print(result.text)
        else:
            for one in (result, *result.alternatives):
                print(f"{number}\t{one.score:.4f}\t{one.text}")
        if log:
            log.write(json.dumps({"line": number, "status": result.status}) + "\n")
        if sys.stdin.isatty():
            sys.stdout.flush()
    return counts


def _summarise(counts: Counter[str]) -> None:
    """Say on stderr how many lines have no translation, or a cut one, and why."""
    empty = {status: count for status, count in counts.items() if status not in ("ok", "max_length")}
    if empty:
        reasons = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in empty.items())
        typer.echo(f"{sum(empty.values())} of {counts.total()} lines have no translation: {reasons}", err=True)
    if counts["max_length"]:
        typer.echo(f"{counts['max_length']} translations were cut at their maximal length (source + 50)", err=True)
