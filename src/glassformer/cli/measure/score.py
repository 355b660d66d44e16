"""`glassformer score`."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from glassformer.cli.arguments import DecodingOverrides, Device, Ensemble, Json, RunOrCombination
from glassformer.cli.parts import Parts
from glassformer.errors import ConfigError, quoted

__all__ = ["score_command"]


def score_command(
    run: RunOrCombination,
    *,
    source: Annotated[
        str,
        typer.Argument(
            metavar="SRC",
            help="Source text, one sentence per line; or a .tsv, .jsonl or .parquet file with sources and targets.",
        ),
    ],
    target: Annotated[
        str | None,
        typer.Argument(metavar="TGT", help="Targets to score, line by line; omit TGT if SRC contains them."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns",
            metavar="SOURCE,TARGET",
            help="Read these columns or fields of SRC.  [default: source,target; for .tsv: 0,1]",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", metavar="DIR", help="Score SRC (a file, glob or URL) in parts, and write the parts to DIR."
        ),
    ] = None,
    parts: Parts,
    ensemble: Ensemble = None,
    overrides: DecodingOverrides = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Print the log probability that a model gives to each target.

    Each output line has the log probability, the score and the number of tokens; it is empty if the pair cannot be
    scored. With --output, the lines are written in parts, like the translations of `bulk`; run the same command to
    resume.
    """
    from glassformer.recipes.toml import decoding_changes

    settings = decoding_changes(overrides or ())
    if output is None:
        _refuse({"--part": parts.part, "--ray": parts.ray, "--finish": parts.finish})
        _print_scores([run, *(ensemble or ())], source, target, columns, settings, device, as_json=as_json)
        return
    if as_json:
        raise ConfigError("--output writes scores as text; leave out --json")
    if target is not None:
        raise ConfigError(
            "--output: expected one file with sources and targets (.tsv, .jsonl, .parquet), got SRC and TGT; join them "
            "by `paste SRC TGT > pairs.tsv`"
        )
    from glassformer.jobs.bulk import BulkJob

    first, second = _columns(source, columns)
    how = {"column": first, "target_column": second, "engine": "torch", "part_bytes": parts.part_bytes}
    how |= {"settings": settings, "device": device}
    parts.run(lambda: BulkJob.of([run, *(ensemble or ())], [source], output, **how))


def _refuse(given: "dict[str, object]") -> None:
    for name, value in given.items():
        if value:
            raise ConfigError(
                f"{name} has no effect without --output; name a folder for the parts, or leave out {name}"
            )


def _columns(source: str, columns: str | None) -> tuple[str, str]:
    """Return the columns of sources and targets in a file that has both."""
    from glassformer.corpus.files import format_of, unread
    from glassformer.corpus.ranges import has_columns

    if not has_columns(source):
        advice = unread(source) or "give TGT as well, or join them by `paste SRC TGT > pairs.tsv`"
        raise ConfigError(
            "expected SRC and TGT, or one file with sources and targets (.tsv, .jsonl, .parquet), got only "
            f"{quoted(source)}; {advice}"
        )
    found = (columns or ("0,1" if format_of(source) == "tsv" else "source,target")).split(",")
    if len(found) != 2:
        raise ConfigError(f"--columns: expected SOURCE,TARGET, such as en,fr, got {quoted(columns)}")
    return found[0], found[1]


def _print_scores(
    runs: Sequence[Path],
    source: str,
    target: str | None,
    columns: str | None,
    settings: "dict[str, object]",
    device: str,
    *,
    as_json: bool,
) -> None:
    from glassformer.translating.translation import score_line
    from glassformer.translator import Translator

    pairs = _pairs(source, target, columns)
    for one in Translator.load(*runs, settings=settings, device=device).score(pairs):
        typer.echo(json.dumps(asdict(one), ensure_ascii=False) if as_json else score_line(one))


def _pairs(source: str, target: str | None, columns: str | None) -> list[tuple[str, str]]:
    from glassformer.corpus.files import stored_bytes
    from glassformer.corpus.ranges import FileRange
    from glassformer.corpus.readers import read_parallel_lines

    if target is None:
        rows = FileRange(source, 0, stored_bytes(source)).rows(*_columns(source, columns))
        return [(one, other) for one, other in rows]
    if columns is not None:
        raise ConfigError("--columns names columns of one file with sources and targets; leave out TGT or --columns")
    return list(zip(*read_parallel_lines(source, target), strict=True))
