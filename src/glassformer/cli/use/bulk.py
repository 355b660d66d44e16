"""`glassformer bulk`."""

import re
from typing import Annotated, Any

import typer

from glassformer.cli.arguments import (
    BeamSize,
    DecodingOverrides,
    Device,
    EngineChoice,
    Ensemble,
    QuantizationChoice,
    RunFolder,
)
from glassformer.errors import ConfigError, quoted

__all__ = ["bulk_command"]


def bulk_command(
    run: RunFolder,
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="INPUT...", help="Files, globs or URLs with one text per line, plain or compressed."),
    ],
    output: Annotated[str, typer.Option("--output", metavar="DIR", help="Write the parts to DIR, a folder or a URL.")],
    part: Annotated[
        str | None,
        typer.Option("--part", metavar="I/N", help="Translate the I-th of N shares of the parts.  [default: 1/1]"),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            "--ray", metavar="[ADDRESS]", help="Translate on a Ray cluster.  [ADDRESS: local, this machine alone]"
        ),
    ] = None,
    finish: Annotated[
        bool,
        typer.Option("--finish", help="Only check that the parts hold each line once; then write manifest.json."),
    ] = False,
    column: Annotated[
        str | None,
        typer.Option("--column", metavar="NAME", help="Translate this column of .tsv or field of .jsonl files."),
    ] = None,
    part_bytes: Annotated[
        int, typer.Option("--part-bytes", metavar="N", help="Make parts of N bytes; a compressed file is one part.")
    ] = 1_000_000,
    ensemble: Ensemble = None,
    beam_size: BeamSize = None,
    overrides: DecodingOverrides = None,
    engine: EngineChoice = "auto",
    quantization: QuantizationChoice = None,
    device: Device = "auto",
) -> None:
    """Translate a large corpus in parts, by many processes.

    Each part is written once, under a name that holds its file and byte range. Run the same command to resume, on any
    machine; complete parts are not translated again.
    """
    if finish and (part is not None or ray is not None):
        raise ConfigError(f"--finish checks all parts: leave out {'--ray' if part is None else '--part'}")
    if part is not None and ray is not None:
        raise ConfigError("--ray translates all parts: leave out --part, or leave out --ray")
    share, shares = _share(part or "1/1")
    from glassformer.cli.progress import TrainingProgress, stop_on_signal
    from glassformer.cli.use.translate import print_untranslated
    from glassformer.jobs.bulk import BulkJob, bulk, finish_bulk
    from glassformer.recipes.toml import decoding_changes

    settings = decoding_changes(overrides or (), beam_size=beam_size)
    how: dict[str, Any] = {"engine": engine, "quantization": quantization, "device": device, "settings": settings}
    with TrainingProgress() as show, stop_on_signal(show):
        job = BulkJob.of([run, *(ensemble or ())], inputs, output, column=column, part_bytes=part_bytes, **how)
        if finish:
            manifest = finish_bulk(job, on_progress=show)
        elif ray is not None:
            from glassformer.jobs.ray_pool import bulk_with_ray

            summary = bulk_with_ray(job, ray, on_progress=show)
        else:
            summary = bulk(job, share, shares, on_progress=show)
    if finish:
        parts = sum(len(file["parts"]) for file in manifest["files"])
        typer.echo(
            f"each line translated once (files: {len(job.files):,}, parts: {parts:,}, lines: {manifest['lines']:,}); "
            f"manifest: {output}/manifest.json"
        )
        return
    print_untranslated(summary.statuses)
    typer.echo(f"parts: {summary.parts:,}, translated now: {summary.made:,}; folder: {output}")


def _share(part: str) -> tuple[int, int]:
    """Return the number of a share, from 1, and the number of shares."""
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", part)
    if not found:
        raise ConfigError(f"--part: expected I/N with 1 ≤ I ≤ N, such as 1/4, got {quoted(part)}")
    return int(found[1]), int(found[2])
