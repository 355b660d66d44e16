"""`glassformer export`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.arguments import Json, RunFolder
from glassformer.decoding.options import Quantization
from glassformer.errors import ConfigError, DataError, quoted

if TYPE_CHECKING:
    from glassformer.interop.verification import Verification

__all__ = ["export_command"]

PROBE_LINES = 100
"""Number of validation texts that verify an export by default."""


def export_command(
    run: RunFolder,
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="Folder to write.  [default: RUN-FORMAT-QUANTIZATION, beside the run]"),
    ] = None,
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="Write this format: ctranslate2.")] = "ctranslate2",
    quantization: Annotated[
        Quantization,
        typer.Option(
            "--quantization", metavar="TYPE", help="Store the matrices as float32, bfloat16, float16, int16 or int8."
        ),
    ] = "int8",
    probe: Annotated[
        str | None,
        typer.Option(
            "--probe",
            metavar="FILE|N",
            help="Verify the export on the lines of FILE, or on N validation texts of the run.  [default: 100; random "
            "tokens if the run has none]",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a model in another program's format, and verify it.

    The command fails if the log probabilities differ by more than quantization explains.
    """
    from glassformer.bundle import Bundle
    from glassformer.interop.export import export_ctranslate2

    if to != "ctranslate2":
        raise ConfigError(f"--to: expected ctranslate2, got {quoted(to)}")
    bundle = Bundle.load(run)
    folder = folder or bundle.folder.with_name(f"{bundle.folder.name}-{to}-{quantization}")
    found = export_ctranslate2(bundle, folder, quantization, _probes(run, probe))
    if as_json:
        typer.echo(json.dumps({"folder": str(folder), "quantization": quantization, **asdict(found)}))
    else:
        _report(folder, found)


def _probes(run: Path, probe: str | None) -> list[str] | None:
    """Return the texts of a file, or N validation texts of the run; None if the run has none and N is not given."""
    from glassformer.corpus.readers import read_lines
    from glassformer.jobs.preparation import PREPARED, read_valid_pairs

    if probe is not None and not probe.isdecimal():
        return list(read_lines(Path(probe)))
    pairs = read_valid_pairs(run / PREPARED)
    if pairs:
        return [source for source, _ in pairs[: PROBE_LINES if probe is None else int(probe)]]
    if probe is None:
        return None
    raise DataError(f"{run / PREPARED} holds no validation texts: give --probe a file of texts")


def _report(folder: Path, found: "Verification") -> None:
    share = f"{found.equal} of {found.outputs} outputs equal the run's"
    typer.echo(
        f"verified: {share}; a token's log probability differs by {found.mean:.2g} on average, {found.largest:.2g} at "
        f"most ({found.tokens} tokens)",
        err=True,
    )
    typer.echo(f"the model is in {folder}:  glassformer translate {folder}")
