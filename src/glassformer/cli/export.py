"""`glassformer export`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.arguments import Json, RunFolder
from glassformer.decoding.engine import Quantization
from glassformer.errors import ConfigError, DataError

if TYPE_CHECKING:
    from glassformer.interop.verification import Verification

__all__ = ["export"]

PLANNED = ("marian", "onnx", "argos")
PROBES = 100
"""Validation texts with which an export is verified unless told otherwise."""


def export(
    run: RunFolder,
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="Where to.  [default: beside the run, as RUN-ctranslate2-QUANTIZATION]"),
    ] = None,
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="The format: ctranslate2.")] = "ctranslate2",
    quantization: Annotated[Quantization, typer.Option("--quantization", help="How the matrices are held.")] = "int8",
    probe: Annotated[
        str | None,
        typer.Option(
            "--probe",
            metavar="FILE|N",
            help="Texts to verify the export with, one a line; or so many of the run's validation texts.  [default: "
            "100; random tokens where it has none]",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a run's model for another program, and verify that it gives the run's answers."""
    from glassformer.bundle import Bundle
    from glassformer.interop.export import export_ctranslate2

    if to != "ctranslate2":
        planned = "is planned, but does not exist yet" if to in PLANNED else "is no format that is known"
        raise ConfigError(f"--to {to} {planned}: choose ctranslate2")
    bundle = Bundle.load(run)
    folder = folder or bundle.folder.with_name(f"{bundle.folder.name}-{to}-{quantization}")
    found = export_ctranslate2(bundle, folder, quantization, _probes(run, probe))
    if as_json:
        typer.echo(json.dumps({"folder": str(folder), "quantization": quantization, **asdict(found)}))
    else:
        _report(folder, found)


def _probes(run: Path, probe: str | None) -> list[str] | None:
    """Return the texts of a file, or so many of the run's validation texts; None if it has none and need not."""
    from glassformer.run.corpus import PREPARED, read_valid_pairs
    from glassformer.text.corpus import read_lines

    if probe is not None and not probe.isdecimal():
        return list(read_lines(Path(probe)))
    pairs = read_valid_pairs(run / PREPARED)
    if pairs:
        return [source for source, _ in pairs[: PROBES if probe is None else int(probe)]]
    if probe is None:
        return None
    raise DataError(f"{run / PREPARED} holds no validation texts: give --probe a file of texts")


def _report(folder: Path, found: "Verification") -> None:
    share = f"{found.equal} of {found.outputs} outputs are the run's own"
    typer.echo(
        f"verified: {share}; a token's log probability differs by {found.mean:.2g} on average, {found.largest:.2g} at "
        f"most ({found.tokens} tokens)",
        err=True,
    )
    typer.echo(f"the model is in {folder}:  glassformer translate {folder}")
