"""`glassformer bulk`."""

from typing import Annotated, Any

import typer

from glassformer.cli.arguments import (
    BeamSize,
    DecodingOverrides,
    Device,
    EngineChoice,
    Ensemble,
    Finish,
    GlossaryFile,
    PartBytes,
    QuantizationChoice,
    Ray,
    RunOrSystem,
    SearchAgain,
    Share,
)
from glassformer.jobs.options import PART_BYTES

__all__ = ["bulk_command"]


def bulk_command(
    run: RunOrSystem,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...", help="Files, globs or URLs with one text per line or row, plain or compressed."
        ),
    ],
    output: Annotated[str, typer.Option("--output", metavar="DIR", help="Write the parts to DIR, a folder or a URL.")],
    part: Share = None,
    ray: Ray = None,
    finish: Finish = False,
    column: Annotated[
        str | None,
        typer.Option(
            "--column",
            metavar="NAME",
            help="Translate this column of .tsv or .parquet files, or field of .jsonl files.",
        ),
    ] = None,
    part_bytes: PartBytes = PART_BYTES,
    ensemble: Ensemble = None,
    beam_size: BeamSize = None,
    retry: SearchAgain = False,
    glossary: GlossaryFile = None,
    overrides: DecodingOverrides = None,
    engine: EngineChoice = "auto",
    quantization: QuantizationChoice = None,
    device: Device = "auto",
) -> None:
    """Translate a large corpus in parts, by many processes.

    Each part is written once, under a name that holds its file and byte range. Run the same command to resume, on any
    machine; complete parts are not translated again.
    """
    from glassformer.cli.parts import run_job
    from glassformer.jobs.bulk import BulkJob
    from glassformer.recipes.toml import decoding_changes
    from glassformer.text.glossary import Glossary

    settings = decoding_changes(overrides or (), beam_size=beam_size, retry=retry)
    how: dict[str, Any] = {"engine": engine, "quantization": quantization, "device": device, "settings": settings}
    how |= {"column": column, "part_bytes": part_bytes, "glossary": Glossary.load(glossary) if glossary else None}
    run_job(lambda: BulkJob.of([run, *(ensemble or ())], inputs, output, **how), part, ray, finish=finish)
