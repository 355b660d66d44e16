"""`glassformer prepare`."""

import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli.arguments import Json, OptionalConfigName
from glassformer.cli.option_groups import ChangedSettings
from glassformer.errors import ConfigError, counted, quoted

if TYPE_CHECKING:
    from rich.console import Console

    from glassformer.corpus.doctor.examination import Findings
    from glassformer.corpus.readers import Corpus
    from glassformer.jobs.prepared.reading import Prepared
    from glassformer.recipes.configuration import Configuration
    from glassformer.system.pools import Pool

__all__ = ["prepare_command", "print_findings"]

_LINES_SHOWN = 5
_EXAMPLES_SHOWN = 2
_LETTERS_SHOWN = 80


def prepare_command(
    config: OptionalConfigName = None,
    *,
    changes: ChangedSettings,
    check: Annotated[bool, typer.Option("--check", help="Only report problems of the corpus; write nothing.")] = False,
    ray: Annotated[
        str | None,
        typer.Option(
            "--ray",
            metavar="[ADDRESS]",
            help="Check and encode on a Ray cluster, at ADDRESS or on this machine.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Clean a corpus, train its tokenizer, and encode it.

    `glassformer train` also does all this. Use `prepare` for a large corpus, or for a corpus that several runs share.
    With --check, CONFIG may be left out if --source is given.
    """
    if check:
        with _pool(ray) as pool:
            _check(_configuration(config, changes), pool, as_json)
        return
    if config is None:
        raise ConfigError(
            "CONFIG: expected a TOML file or the name of a recipe, got nothing; give one, or --check with --source"
        )
    configuration = changes.load(config)
    with _pool(ray) as pool:
        _prepare_and_print(configuration, pool, as_json)
    if not as_json:
        typer.echo(f"train on it:  {shlex.join(['glassformer', 'train', config, *changes.words()])}")


@contextmanager
def _pool(ray: str | None) -> "Iterator[Pool | None]":
    """Yield a pool of the nodes of a Ray cluster, or None if `ray` is None."""
    if ray is None:
        yield None
        return
    from glassformer.jobs.ray_cluster import ray_nodes

    with ray_nodes(ray) as nodes:
        yield nodes


def _prepare_and_print(configuration: "Configuration", pool: "Pool | None", as_json: bool) -> None:
    """Prepare a corpus, with progress on stderr; then print the corpus doctor's findings and the result."""
    from glassformer.cli.progress import TrainingProgress, stop_on_signal
    from glassformer.jobs.preparation import prepare
    from glassformer.jobs.run_reports import ExaminedReport, ProgressReport

    examined: list[ExaminedReport] = []

    def on_report(report: ProgressReport | ExaminedReport) -> None:
        if isinstance(report, ExaminedReport):
            examined.append(report)
        else:
            show(report)

    with TrainingProgress() as show, stop_on_signal(show):
        prepared = prepare(configuration, on_report, pool=pool)
    if as_json:
        typer.echo(json.dumps({**(prepared.findings or {}), **_summary(prepared)}, ensure_ascii=False))
        return
    for report in examined:
        print_findings(report.findings, report.corpus)
    if prepared.chosen:
        typer.echo(f"chosen for {prepared.chosen}")
    typer.echo(_in_words(prepared))


def _summary(prepared: "Prepared") -> dict[str, Any]:
    return {
        "folder": str(prepared.folder),
        "train_pairs": len(prepared.train),
        "valid_pairs": len(prepared.valid),
        "left_out": prepared.dropped,
        "source_vocabulary": len(prepared.source_tokenizer),
        "target_vocabulary": len(prepared.target_tokenizer),
    }


def _in_words(prepared: "Prepared") -> str:
    from glassformer.cli.progress import vocabulary_sizes

    left_out = "".join(
        f", {count:,} left out ({reason.replace('_', ' ')})" for reason, count in prepared.dropped.items()
    )
    vocabularies = vocabulary_sizes(len(prepared.source_tokenizer), len(prepared.target_tokenizer))
    where = f"written to {prepared.folder}" if prepared.made else f"{prepared.folder} was already complete"
    return (
        f"{counted(len(prepared.train), 'training pair')}{left_out}, {len(prepared.valid):,} for validation; "
        f"{vocabularies}: {where}"
    )


def _configuration(config: str | None, changes: ChangedSettings) -> "Configuration":
    """Return the configuration to check: the one in CONFIG, or a configuration whose corpus is the given files."""
    from glassformer.recipes.toml import from_dict, set_values

    if config is not None:
        return changes.load(config)
    if changes.source is None:
        raise ConfigError("give a CONFIG, or --source and --target")
    values: dict[str, Any] = {"data": {"directory": str(changes.data or ""), "valid_lines": 1}}
    for override in changes.settings():
        set_values(values, override)
    return from_dict(values)


def _check(configuration: "Configuration", pool: "Pool | None", as_json: bool) -> None:
    """Print the corpus doctor's findings. Invalid lines are counted like other problems, and do not stop the check."""
    from glassformer.corpus.doctor.examine import examine
    from glassformer.corpus.pool import processes_for
    from glassformer.recipes.corpora import corpora_of

    if configuration.data.task:
        raise ConfigError(
            f"--check: expected a corpus in files, got the built-in task {quoted(configuration.data.task)}, whose "
            "examples are generated; leave out --check"
        )
    held_out = corpora_of(configuration.data)
    corpus, cleaning = held_out.pop("train"), configuration.cleaning
    pool = pool or processes_for(corpus, cleaning.workers)
    with _progress() as on_progress:
        cleaning_all, languages = replace(cleaning, on_invalid="skip"), configuration.data.languages
        findings = examine(corpus, cleaning_all, held_out, on_progress, pool, languages).findings
    if "invalid_utf8" in findings.dropped and cleaning.on_invalid == "error":
        warning = 'invalid UTF-8: prepare and train stop at an invalid line, unless cleaning.on_invalid = "skip"'
        findings = replace(findings, warnings=(*findings.warnings, warning))
    if as_json:
        typer.echo(json.dumps(findings.to_dict(), ensure_ascii=False))
    else:
        print_findings(findings, corpus)
    if not findings.kept:
        raise typer.Exit(1)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Show on stderr, if it is a terminal, a progress bar of the bytes that have been read."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("reading"), BarColumn(24), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)


def print_findings(findings: "Findings", corpus: "Corpus") -> None:
    """Print the findings in a corpus: dropped pairs by reason with examples, warnings, and a verdict."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False, emoji=False)
    table = Table("left out", "pairs", "share", "first lines", box=None, pad_edge=False)
    for column in table.columns[1:3]:
        column.justify = "right"
    for reason, finding in findings.dropped.items():
        share = f"{100 * finding.count / findings.pairs:.2f} %"
        more = " …" if finding.count > _LINES_SHOWN else ""
        lines = ", ".join(map(str, finding.lines[:_LINES_SHOWN]))
        table.add_row(reason.replace("_", " "), f"{finding.count:,}", share, lines + more)
    if findings.dropped:
        console.print(table, end="\n\n")
        _print_examples(findings, corpus, console)
    for warning in findings.warnings:
        console.print(f"warning: {warning}", soft_wrap=True)
    share = f" ({100 * findings.kept / findings.pairs:.2f} %)" if findings.pairs else ""
    kept = f"{findings.kept:,} kept{share}"
    console.print(f"{counted(findings.pairs, 'pair')}, {kept}. {_verdict(findings)}", soft_wrap=True)


def _print_examples(findings: "Findings", corpus: "Corpus", console: "Console") -> None:
    """Print the first dropped pairs for each reason."""
    from glassformer.corpus.readers import pairs_at

    shown = [
        (reason, place, pair)
        for reason, finding in findings.dropped.items()
        for place, pair in zip(finding.places[:_EXAMPLES_SHOWN], finding.pairs, strict=False)
    ]
    texts = pairs_at(corpus, [pair for *_, pair in shown])
    for (reason, place, _), (source, target) in zip(shown, texts, strict=True):
        console.print(f"{place}  {reason.replace('_', ' ')}", soft_wrap=True)
        console.print(f"    {_shown(source)}\n    {_shown(target)}", soft_wrap=True)
    console.print()


def _shown(line: bytes) -> str:
    """Return a shortened line, with unprintable characters escaped."""
    text = line[: 4 * _LETTERS_SHOWN + 4].decode(errors="backslashreplace")
    letters = (letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
    return "".join(letters) if len(text) <= _LETTERS_SHOWN else f"{''.join(islice(letters, _LETTERS_SHOWN))}…"


def _verdict(findings: "Findings") -> str:
    if not findings.kept:
        return "Nothing to train on."
    if findings.warnings:
        return "Look at the warnings before training."
    from glassformer.cli.progress import FEW_PAIRS, few_pairs

    return "Ready to train on." if findings.kept >= FEW_PAIRS else f"{few_pairs(findings.kept).capitalize()}."
