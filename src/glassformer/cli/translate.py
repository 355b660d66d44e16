"""`glassformer translate`."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from glassformer.cli.arguments import (
    BeamSize,
    EngineChoice,
    Ensemble,
    LengthPenalty,
    MaxSource,
    QuantizationChoice,
    RunFolder,
)
from glassformer.errors import ConfigError

if TYPE_CHECKING:
    from glassformer.translator import Sampling, Translation, Translator

__all__ = ["translate"]


def translate(
    run: RunFolder,
    file: Annotated[
        Path | None, typer.Argument(help="Text, one sentence a line, plain or .gz.  [default: stdin]")
    ] = None,
    ensemble: Ensemble = None,
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
    engine: EngineChoice = "auto",
    quantization: QuantizationChoice = None,
    status: Annotated[Path | None, typer.Option("--status", help="Write each line's status here, as JSONL.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show confidence, cross-attention and the beam of each line.")
    ] = False,
) -> None:
    """Translate text: as many lines out as in. A line that cannot be translated gives an empty one."""
    from glassformer.machine import cores
    from glassformer.translator import WINDOW, Translator

    options: dict[str, Any] = {
        "beam_size": beam_size,
        "length_penalty": length_penalty,
        "prefix": prefix,
        "max_source": max_source,
    }
    sampling = _sampling(sample, temperature, top_k, top_p, seed)
    if explain:
        _check_explained(sample, n_best)
    if isinstance(
        sys.stdout, TextIOWrapper
    ):  # what comes in is UTF-8, whatever the terminal speaks: so is what goes out
        sys.stdout.reconfigure(encoding="utf-8")
    if engine == "auto" and (sample or explain or prefix):  # which CTranslate2 has not, or not quite as we have them
        engine = "torch"
    how: dict[str, Any] = {"engine": engine, "quantization": quantization, "workers": cores()}
    translator = Translator.load(run, *ensemble or [], **how)
    lines = _lines(file)
    if explain:
        results = _explanations(translator, lines, options)
    else:
        window = 1 if file is None and sys.stdin.isatty() else WINDOW
        options |= {"n_best": n_best, "sampling": sampling, "log_probs": n_best > 1}
        stream = translator.stream(lines, window=window, **options)
        results = _translations(stream, n_best)
    with status.open("w", encoding="utf-8") if status else nullcontext() as log:
        counts = _follow(results, log)
    _summarise(counts)


def _sampling(sample: bool, temperature: float, top_k: int, top_p: float, seed: int) -> "Sampling | None":
    from glassformer.translator import Sampling

    wanted = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    if not sample and wanted != Sampling():
        raise ConfigError("--temperature, --top-k, --top-p and --seed have no effect without --sample")
    return wanted if sample else None


def _lines(file: Path | None) -> Iterator[str]:
    """Return the lines of a file or of stdin, a byte order mark left out; bytes that are no UTF-8 become surrogates.

    Nothing else becomes one. What stands after the last line end is a line, unless it is empty.
    """
    from glassformer.text.files import BYTE_ORDER_MARK, raw_lines

    if file is None and sys.stdin.isatty():
        typer.echo("type a sentence and Enter; Ctrl-D ends", err=True)
    raw = iter(sys.stdin.buffer if file is None else raw_lines(file))
    first = next(raw, b"").removeprefix(BYTE_ORDER_MARK)
    lines = chain([first] if first else [], raw)
    return (line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "surrogateescape") for line in lines)


def _check_explained(sample: bool, n_best: int) -> None:
    if sample:
        raise ConfigError("--explain shows a search, and --sample draws at random: leave one of them out")
    if n_best != 1:
        raise ConfigError("--explain shows all outputs that the beam finished: leave out --n-best")


def _translations(results: "Iterable[Translation]", n_best: int) -> "Iterator[Translation]":
    """Print each result, and hand it on."""
    for number, result in enumerate(results, start=1):
        if n_best == 1:
            print(result.text)
        else:
            for one in (result, *result.alternatives):
                print(f"{number}\t{one.score:.4f}\t{one.text}")
        yield result


def _explanations(translator: "Translator", lines: Iterable[str], options: dict[str, Any]) -> "Iterator[Translation]":
    """Print how each line is translated, and hand its translation on."""
    from rich.console import Console

    from glassformer.cli.explanation import layout

    console = Console(highlight=False, markup=False, emoji=False)
    for number, line in enumerate(lines, start=1):
        explanation = translator.explain(line, **options)
        console.print(layout(number, explanation, console.width))
        yield explanation.translation


def _follow(results: "Iterable[Translation]", log: TextIO | None) -> Counter[str]:
    """Return how many results have which status, each of them written to the log."""
    counts: Counter[str] = Counter()
    for number, result in enumerate(results, start=1):
        counts[result.status] += 1
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
        typer.echo(f"no translation of {sum(empty.values())} of {counts.total()} lines: {reasons}", err=True)
    if counts["max_length"]:
        cut = "1 translation was" if counts["max_length"] == 1 else f"{counts['max_length']} translations were"
        typer.echo(f"{cut} cut at the maximal length (source + 50)", err=True)
