"""`glassformer evaluate`."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.built_in import run_folder
from glassformer.cli.arguments import Json
from glassformer.cli.option_groups import ChosenModels, Computing, SearchOptions, TestSet
from glassformer.errors import ConfigError

if TYPE_CHECKING:
    from glassformer.evaluation.items import Items
    from glassformer.evaluation.metrics import Score
    from glassformer.jobs import SplitResult
    from glassformer.recipes.configuration import Configuration
    from glassformer.translating.translation import Translation
    from glassformer.translator import Translator

__all__ = ["evaluate_command", "print_splits"]


_OF_TASK = "on the splits of a built-in task; give SRC and REF, or leave it out"


def evaluate_command(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            parser=run_folder,
            help="Run directory; demo, the model in the package; a file written by `tune`; or a finished folder of "
            "`bulk`.",
        ),
    ],
    *,
    test: TestSet,
    more: Annotated[
        list[Path] | None,
        typer.Option("--reference", metavar="FILE", help="Also score against the references in FILE. Repeatable."),
    ] = None,
    models: ChosenModels,
    search: SearchOptions,
    computing: Computing,
    bootstrap: Annotated[bool, typer.Option("--bootstrap", help="Print the 95 % interval of each score.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write the translations, one per line of SRC, to FILE."),
    ] = None,
    variants: Annotated[
        bool,
        typer.Option("--variants", help="Score the sources as other people write them, such as in capitals."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Score a model's translations against references.

    Without SRC, score the run on the test (or validation) files of its configuration, or on the splits of its task.
    """
    from glassformer.bundle import Bundle
    from glassformer.evaluation.metrics import metrics_named
    from glassformer.jobs import evaluate
    from glassformer.jobs.bulk import BULK
    from glassformer.translating.combination import Combination

    if (run / BULK).exists():
        given: dict[str, Any] = {"--set": search.overrides, "--beam-size": search.beam_size, "--output": output}
        given |= {"--engine": computing.engine != "auto", "--device": computing.device != "auto"}
        given |= {"--ensemble": models.ensemble, "--rescore": models.rescore, "--lexicon": models.lexicon}
        given |= {"--quantization": computing.quantization, "--variants": variants}
        _refuse(given, "on finished translations; leave it out")
        _evaluate_finished(run, test, more or [], bootstrap=bootstrap, as_json=as_json)
        return
    configuration = Bundle.load(Combination.load(run).run if run.is_file() else run).configuration
    if test.source is None and configuration.data.task:
        given = {"--metric": test.metric, "--reference": more, "--output": output, "--bootstrap": bootstrap}
        given |= {"--variants": variants}
        _refuse({**given, "--group": test.group is not None}, _OF_TASK)
        _evaluate_task(models.load(run, computing, settings=search.settings()), as_json)
        return
    items = _items(configuration, test, more or [])
    metrics = test.metrics(items)
    metrics_named(metrics)
    translator = models.load(run, computing, settings=search.settings())
    models.say_if_untuned(run)
    if variants:
        _refuse({"--bootstrap": bootstrap, "--output": output}, "with --variants; leave it out")
        _print_variants(translator, items, metrics[0], as_json)
        return
    scores, translations = evaluate(translator, items.sources, items.references, metrics, intervals=bootstrap)
    _warn_of_empty(translations)
    if output:
        lines = items.to_lines([one.text for one in translations])
        output.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    _print(scores, items, as_json)


def print_splits(results: "Iterable[SplitResult]", beside: Mapping[str, Mapping[str, Any]] | None = None) -> None:
    """Print a table of scores, one line per split; `beside` has the scores of the model in the package, by split."""
    from rich.console import Console
    from rich.table import Table

    columns = ("split", "sentences", "exact", "BLEU", *(("package: exact", "BLEU") if beside else ()))
    table = Table(*columns, "both of a pair exact", box=None, pad_edge=False)
    for column in table.columns[1:-1]:
        column.justify = "right"
    for result in results:
        told = beside.get(result.name) if beside else None
        cells = (f"{told['exact']:.1f} %", f"{told['bleu']:.1f}") if told else ("",) * (len(columns) - 4)
        exact, bleu = f"{result.exact:.1f} %", f"{result.bleu:.1f}"
        table.add_row(result.name, f"{result.sentences:,}", exact, bleu, *cells, _pairs(result))
    Console(highlight=False).print(table)


def _pairs(result: "SplitResult") -> str:
    """Return the share of minimal pairs with two right outputs: for each kind, or for all kinds and the hardest.

    If there are more than two kinds, only the total and the kind with the lowest share are given.
    """
    if len(result.pairs) <= 2:
        return ", ".join(f"{kind} {share:.1f} %" for kind, (share, _) in result.pairs.items())
    total = sum(count for _, count in result.pairs.values())
    right = sum(share * count for share, count in result.pairs.values()) / total
    hardest = min(result.pairs, key=lambda kind: result.pairs[kind][0])
    return f"{right:.1f} % ({hardest}: {result.pairs[hardest][0]:.0f} %)"


def _refuse(given: Mapping[str, object], why: str) -> None:
    for name, value in given.items():
        if value:
            raise ConfigError(f"{name} has no effect {why}")


def _evaluate_finished(folder: Path, test: TestSet, more: Sequence[Path], *, bootstrap: bool, as_json: bool) -> None:
    """Score the translations that `bulk` wrote, without a model."""
    from glassformer.evaluation.metrics import metrics_named
    from glassformer.jobs.bulk import finished_translations
    from glassformer.jobs.evaluation import score_outputs

    if test.source is None:
        raise ConfigError(f"{folder} holds translations; give the file that was translated as SRC, and REF")
    items = test.items(more=more)
    metrics = test.metrics(items)
    metrics_named(metrics)
    translations = list(finished_translations(str(folder)))
    outputs = items.from_lines([one.text for one in translations])
    _warn_of_empty(translations)
    _print(score_outputs(outputs, items.references, metrics, intervals=bootstrap), items, as_json)


def _evaluate_task(translator: "Translator", as_json: bool) -> None:
    from dataclasses import asdict

    from glassformer.jobs import evaluate_splits

    results = list(evaluate_splits(translator))
    if as_json:
        typer.echo(json.dumps([asdict(result) for result in results]))
    else:
        print_splits(results)


def _print_variants(translator: "Translator", items: "Items", metric: str, as_json: bool) -> None:
    """Print a table of the scores of each variant, as soon as it is translated."""
    from dataclasses import asdict

    from glassformer.jobs.variants import evaluate_variants

    results = evaluate_variants(translator, items, metric)
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in results]))
        return
    typer.echo(f"{'variant':<30} {'lines':>6} {metric:>8} {'as it is':>9}   {'suspicious':>10} {'as it is':>9}")
    for one in results:
        shares = f"{one.suspicious:>10.1%} {one.ordinary_suspicious:>9.1%}"
        typer.echo(f"{one.name:<30} {one.lines:>6,} {one.score:>8.2f} {one.ordinary:>9.2f}   {shares}")


def _items(configuration: "Configuration", test: TestSet, more: Sequence[Path]) -> "Items":
    from glassformer.jobs.evaluation import held_out

    if test.source is not None:
        return test.items(configuration, more)
    _refuse({"--reference": more, "--group": test.group is not None}, _OF_TASK)
    [(name, items)] = held_out(configuration).items()
    typer.echo(f"the run's own {name} files:", err=True)
    return items


def _warn_of_empty(translations: "Sequence[Translation]") -> None:
    """Print the number of sources without a translation on stderr, by reason."""
    from glassformer.translating.translation import TRANSLATED

    reasons = Counter(one.status for one in translations if one.status not in TRANSLATED)
    if reasons:
        listed = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in reasons.items())
        typer.echo(
            f"no translation of {reasons.total()} of {len(translations)} sources ({listed}); empty texts are scored "
            "instead",
            err=True,
        )


def _print(scores: "Sequence[Score]", items: "Items", as_json: bool) -> None:
    if as_json:
        counts = {"lines": len(items.places), "sources": len(items.sources)}
        rows = [{"name": s.name, "value": s.value, "interval": s.interval, "signature": s.signature} for s in scores]
        typer.echo(json.dumps([{**row, **counts} for row in rows]))
        return
    for score in scores:
        interval = f" [{score.interval[0]:.2f}, {score.interval[1]:.2f}]" if score.interval else ""
        typer.echo(f"{score.name} {score.value:.2f}{interval}   {score.signature}")
