"""`glassformer translate`."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from glassformer.cli.arguments import (
    BeamSize,
    GlossaryFile,
    RunOrCombination,
    SearchAgain,
)
from glassformer.cli.option_groups import ChosenModels, Computing
from glassformer.cli.streams import arriving_lines, is_terminal
from glassformer.errors import ConfigError, counted

if TYPE_CHECKING:
    from glassformer.translating.translation import Translation
    from glassformer.translator import Translator

    Printed = tuple[str, Translation]

__all__ = ["print_untranslated", "translate_command"]


def translate_command(
    run: RunOrCombination,
    *,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="Text, one sentence per line, plain or compressed; or a document.  [default: stdin]",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Translate a document, and write it to FILE."),
    ] = None,
    models: ChosenModels,
    beam_size: BeamSize = None,
    retry: SearchAgain = False,
    n_best: Annotated[
        int,
        typer.Option(
            "--n-best", metavar="N", help="Print the N best outputs per line, as line number, score and text."
        ),
    ] = 1,
    prefix: Annotated[str, typer.Option("--prefix", metavar="TEXT", help="Begin each output with this text.")] = "",
    sample: Annotated[
        bool,
        typer.Option(
            "--sample", help="Sample outputs at random; set the temperature by --set decoding.temperature=0.8."
        ),
    ] = False,
    glossary: GlossaryFile = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="SECTION.NAME=VALUE",
            help="Change a decoding setting of the run, such as decoding.length_penalty=1; or read a document with one "
            "sentence per line, by documents.lines=true. Repeatable.",
        ),
    ] = None,
    computing: Computing,
    status: Annotated[
        Path | None, typer.Option("--status", metavar="FILE", help="Write each line's status to FILE, as JSONL.")
    ] = None,
    links: Annotated[
        Path | None, typer.Option("--links", metavar="FILE", help="Write each line's aligned words to FILE, as JSONL.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the confidence, cross-attention and beam of each line.")
    ] = False,
) -> None:
    """Translate text, line by line, or a document.

    Each input line gives one output line, which is empty if the input line cannot be translated. The number of
    untranslated lines is printed on stderr, by reason.

    Documents are .html files and, with --output, .txt files; all bytes outside their text are kept.
    """
    from glassformer.cli.documents import document_of, translate_document
    from glassformer.corpus.files import raw_lines
    from glassformer.recipes.toml import decoding_changes
    from glassformer.text.glossary import Glossary

    if explain:
        _check_explained(sample, n_best, links, glossary)
    of_lines = {"--explain": explain, "--n-best": n_best > 1, "--prefix": bool(prefix)}
    files = {"--status": status is not None, "--links": links is not None}
    document, of_decoding = None, list[str]()
    # Without these options, there is no document, and one line from stdin is translated without loading the formats.
    if file or output or overrides:
        document, of_decoding = document_of(file, output, overrides or (), of_lines | files)
    raw = arriving_lines() if file is None else raw_lines(file)
    terms = Glossary.load(glossary) if glossary else None
    settings = decoding_changes(of_decoding, beam_size=beam_size, retry=retry, sampling=sample)
    asked = {"sampling": sample, "prefix": prefix, "explanation": explain}
    needs: list[Any] = [need for need, wanted in asked.items() if wanted]
    translator = models.load(run, computing, settings=settings, needs=needs)
    models.say_if_untuned(run)
    if document and output:
        how = {"sample": sample, "glossary": terms, "log_probs": False}
        translate_document(translator, document, output, how)
        return
    if file is None and is_terminal():
        typer.echo("Type a sentence and press Enter; Ctrl-D ends.", err=True)
    lines = _lines(raw, str(file or "stdin"))
    if explain:
        outputs = _explanations(translator, lines, prefix)
    else:
        options: dict[str, Any] = {"n_best": n_best, "prefix": prefix, "sample": sample, "log_probs": n_best > 1}
        options |= {"links": links is not None, "glossary": terms}
        # the translator rejects these settings together with sampling, so they are passed only if the user gave them
        if sample:
            options |= {name: settings[name] for name in ("beam_size", "retry") if name in settings}
        results = translator.stream(lines, **options)
        outputs = _translations(_logged(results, links) if links else results, n_best)
    with status.open("w", encoding="utf-8") if status else nullcontext() as log:
        counts = _print(outputs, log, at_once=file is None)
    print_untranslated(counts, f"{status or '--status FILE'} says", _limit(translator))


def _lines(raw: Iterable[bytes | None], name: str) -> Iterator[str | None]:
    """Yield each line as text, also after the last line end; and None when no further line has arrived yet."""
    from glassformer.corpus.files import text_of
    from glassformer.system.files import check_width

    first = True
    for line in raw:
        if first and line:
            check_width(name, line)
        text = None if line is None else text_of(line, first=first)
        if line is None or text is not None:
            yield text
        first = first and line is None


def _check_explained(sample: bool, n_best: int, links: Path | None, glossary: Path | None) -> None:
    if sample:
        raise ConfigError("--explain shows a search, and --sample draws at random; leave one of them out")
    if n_best != 1:
        raise ConfigError("--explain shows all finished outputs of the beam; leave out --n-best")
    if links:
        raise ConfigError("--explain shows the attention of tokens, and --links aligns words; leave one of them out")
    if glossary:
        raise ConfigError("--explain shows the run's own search, without a glossary; leave out --glossary")


def _logged(results: "Iterable[Translation]", file: Path) -> "Iterator[Translation]":
    """Yield the results, and write the links of each result to a file, as JSONL."""
    with file.open("w", encoding="utf-8") as log:
        for number, result in enumerate(results, start=1):
            links = [[*link.source, *link.target] for link in result.links]
            log.write(f"{json.dumps({'line': number, 'links': links})}\n")
            yield result


def _translations(results: "Iterable[Translation]", n_best: int) -> "Iterator[Printed]":
    """Yield the text to print for each result, and the result itself."""
    for number, result in enumerate(results, start=1):
        if n_best == 1:
            yield f"{result.text}\n", result
        else:
            several = (result, *result.alternatives)
            yield "".join(f"{number}\t{one.score:.4f}\t{one.text}\n" for one in several), result


def _explanations(translator: "Translator", lines: Iterable[str | None], prefix: str) -> "Iterator[Printed]":
    """Yield the explanation of each line as text for the terminal, and the line's translation."""
    from rich.console import Console

    from glassformer.cli.explanation import layout

    console = Console(highlight=False, markup=False, emoji=False)
    for number, line in enumerate((line for line in lines if line is not None), start=1):
        explanation = translator.explain(line, prefix=prefix)
        with console.capture() as captured:
            console.print(layout(number, explanation, console.width))
        yield captured.get(), explanation.translation


def _print(outputs: "Iterable[Printed]", log: TextIO | None, *, at_once: bool) -> Counter[str]:
    """Print each output and log its status; return the number of outputs by status.

    If `at_once`, each output is flushed before more input is read, because the writer of the input may wait for the
    output.
    """
    from glassformer.translating.translation import status_entry

    counts: Counter[str] = Counter()
    for number, (text, one) in enumerate(outputs, start=1):
        print(text, end="", flush=at_once)
        counts[one.status] += 1
        if log:
            log.write(status_entry(number, one))
    return counts


def _limit(translator: "Translator") -> str:
    """Return the maximum length of a text in words, with the reason for this limit."""
    asked, possible = translator.bundle.configuration.decoding.max_source, translator.engine.longest
    return f"{asked:,} tokens (decoding.max_source)" if asked <= possible else f"the model's {possible:,} positions"


def print_untranslated(counts: Counter[str], statuses_say: str, limit: str, what: str = "translation") -> None:
    """Print on stderr the number of lines without a translation (or score) by reason, and of doubtful outputs.

    `statuses_say` names the files with the statuses and the verb, such as "status.jsonl says"; `limit` is the maximum
    length of a text.
    """
    from glassformer.translating.translation import TRANSLATED

    empty = {status: count for status, count in counts.items() if status not in TRANSLATED}
    if empty:
        reasons = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in empty.items())
        typer.echo(f"no {what} of {sum(empty.values()):,} of {counted(counts.total(), 'line')}: {reasons}", err=True)
    if counts["too_long"]:
        typer.echo(f"split texts of more than {limit}, for example into sentences", err=True)
    if counts["suspicious"]:
        some = "1 translation is" if counts["suspicious"] == 1 else f"{counts['suspicious']} translations are"
        typer.echo(f"{some} suspicious; {statuses_say} which and why", err=True)
    if counts["max_length"]:
        cut = "1 translation was" if counts["max_length"] == 1 else f"{counts['max_length']} translations were"
        typer.echo(f"{cut} cut at the maximum length (decoding.extra_length)", err=True)
