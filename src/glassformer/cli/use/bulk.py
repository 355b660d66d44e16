"""`glassformer bulk`."""

from typing import Annotated, Any

import typer

from glassformer.cli.arguments import Ensemble, GlossaryFile, RunOrCombination, SearchAgain
from glassformer.cli.option_groups import Computing, SearchOptions
from glassformer.cli.parts import Parts

__all__ = ["bulk_command"]


def bulk_command(
    run: RunOrCombination,
    *,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...", help="Files, globs or URLs with one text per line or row, plain or compressed."
        ),
    ],
    output: Annotated[str, typer.Option("--output", metavar="DIR", help="Write the parts to DIR, a folder or a URL.")],
    parts: Parts,
    column: Annotated[
        str | None,
        typer.Option(
            "--column",
            metavar="NAME",
            help="Translate this column of .tsv and .parquet files, or this field of .jsonl files.",
        ),
    ] = None,
    ensemble: Ensemble = None,
    retry: SearchAgain = False,
    glossary: GlossaryFile = None,
    search: SearchOptions,
    computing: Computing,
) -> None:
    """Translate a large corpus in parts, by many processes.

    Each part is written once, under a name with its input file and byte range. To resume, run the same command on any
    machine; complete parts are not translated again.
    """
    from glassformer.jobs.bulk import BulkJob
    from glassformer.text.glossary import Glossary

    how: dict[str, Any] = {**computing._asdict(), "settings": search.settings(retry=retry), "column": column}
    how |= {"part_bytes": parts.part_bytes, "glossary": Glossary.load(glossary) if glossary else None}
    parts.run(lambda: BulkJob.of([run, *(ensemble or ())], inputs, output, **how))
