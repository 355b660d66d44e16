"""`glassformer export`."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.built_in import is_built_in
from glassformer.cli.arguments import Json, RunFolder
from glassformer.decoding.options import Quantization
from glassformer.errors import ConfigError, DataError, shortened

if TYPE_CHECKING:
    from glassformer.bundle import Bundle
    from glassformer.interop.exporting import ExportOptions
    from glassformer.interop.formats import ExportFormat
    from glassformer.interop.verification import Verification

__all__ = ["export_command"]

PROBE_LINES = 100
"""Default number of validation texts with which an export is verified."""
CHANGEABLE = ("source_language", "target_language")
"""The settings of a run that can be changed when it is exported."""
OPTIONS = {
    "verified": "--unverified",
    "python": "--python",
    "licence": "--license",
    "scores": "--scores",
    "page": "--page",
}
"""The options that only some formats use, by the field of `ExportOptions`."""


def export_command(
    run: RunFolder,
    target: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="Folder or file to write.  [default: RUN-FORMAT, beside the run]"),
    ] = None,
    to: Annotated[
        str,
        typer.Option("--to", metavar="FORMAT", help="Export to this format: ctranslate2, huggingface, argos or onnx."),
    ] = "ctranslate2",
    quantization: Annotated[
        Quantization | None,
        typer.Option(
            "--quantization",
            metavar="TYPE",
            help="Store the weights as float32, bfloat16, float16, int16 or int8.  [default: int8 for ctranslate2 "
            "and argos, else float32]",
        ),
    ] = None,
    probe: Annotated[
        str | None,
        typer.Option(
            "--probe",
            metavar="FILE|N",
            help="Verify the export on the lines of FILE, or on N validation texts of the run.  [default: 100; random "
            "tokens if the run has no validation texts]",
        ),
    ] = None,
    python: Annotated[
        str,
        typer.Option(
            "--python",
            metavar="FILE",
            help="Verify with the packages of this Python interpreter.  [default: glassformer's interpreter]",
        ),
    ] = "",
    unverified: Annotated[bool, typer.Option("--unverified", help="Do not verify the export.")] = False,
    licence: Annotated[
        str, typer.Option("--license", metavar="NAME", help="Name this licence in the model card, such as cc-by-4.0.")
    ] = "",
    scores: Annotated[
        Path | None,
        typer.Option(
            "--scores", metavar="FILE", help="Put these scores, printed by `evaluate --json`, into the model card."
        ),
    ] = None,
    page: Annotated[
        str,
        typer.Option(
            "--page",
            metavar="RUNTIME",
            help="With --to onnx: also write a web page that translates. RUNTIME is a node_modules folder in which you "
            "ran `npm i @huggingface/transformers@4.3.1 --ignore-scripts`.",
        ),
    ] = "",
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="data.NAME=VALUE", help="Set data.source_language or data.target_language. Repeatable."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a model in another program's format, and verify it.

    The command fails if the exported model gives log probabilities that differ by more than quantization explains.
    """
    from glassformer.bundle import Bundle
    from glassformer.interop.exporting import ExportOptions
    from glassformer.interop.formats import export_format

    row = export_format(to)
    options = ExportOptions(
        quantization=quantization or row.quantizations[0],
        verified=not unverified,
        python=python,
        licence=licence,
        scores=_scores(scores),
        page=page,
        validation=_validation(run),
    )
    _check_effect(to, row, options)
    bundle = _with_languages(Bundle.load(run), overrides or ())
    named = f"-{options.quantization}" * (len(row.quantizations) > 1)
    beside = Path() if is_built_in(bundle.folder) else bundle.folder.parent
    target = target or beside / f"{bundle.folder.name}-{to}{named}{row.suffix}"
    options = replace(options, probes=_probes(bundle, probe))
    found = row.export(bundle, target, options)
    if as_json:
        facts = {"folder": str(target), "quantization": options.quantization}
        remarks = {"remarks": list(row.remarks(bundle))}
        typer.echo(json.dumps({**facts, **(asdict(found) if found else {"verified": False}), **remarks}))
    else:
        _report(target, row, found)
        for remark in row.remarks(bundle):
            typer.echo(f"note: {remark}", err=True)


def _check_effect(to: str, row: "ExportFormat", options: "ExportOptions") -> None:
    """Refuse options that have no effect on a format."""
    from glassformer.interop.exporting import ExportOptions

    for name, option in OPTIONS.items():
        if name in row.ignored and getattr(options, name) != getattr(ExportOptions(), name):
            raise ConfigError(f"{option} has no effect with --to {to}; leave it out")


def _with_languages(bundle: "Bundle", overrides: Sequence[str]) -> "Bundle":
    from glassformer.recipes.toml import section_changes

    changes = section_changes("data", overrides, "data.source_language=en")
    for name in changes:
        if name not in CHANGEABLE:
            allowed = " or ".join(f"data.{one}" for one in CHANGEABLE)
            raise ConfigError(f"--set: expected {allowed}, got data.{shortened(name)}")
    configuration = bundle.configuration
    return replace(bundle, configuration=replace(configuration, data=replace(configuration.data, **changes)))


def _scores(path: Path | None) -> Sequence[dict[str, Any]]:
    """Return the scores in a file that `evaluate --json` printed."""
    if path is None:
        return ()
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read: {shortened(str(error))}; give a file of `evaluate --json`") from error
    if not isinstance(rows, list) or not all(map(_is_score, rows)):
        raise DataError(f"{path}: expected the scores that `glassformer evaluate --json` prints; give such a file")
    return rows


def _is_score(row: object) -> bool:
    match row:
        case {"name": str(), "value": int() | float(), "signature": str()}:
            return True
        case _:
            return False


def _validation(run: Path) -> str:
    """Return the loss and the score of the exported weights on the validation texts; "" if none were measured."""
    from glassformer.jobs.log import METRICS_FILE, best

    loss, measured = best(run / METRICS_FILE)
    return ", ".join(filter(None, ["" if loss is None else f"loss {loss:.3f}", str(measured or "")]))


def _probes(bundle: "Bundle", probe: str | None) -> list[str] | None:
    """Return the texts of a file, or N validation texts of the run; None if the run has none and `probe` is None."""
    from glassformer.corpus.readers import read_lines
    from glassformer.jobs.prepared.folder import valid_pairs_of_run

    if probe is not None and not probe.isdecimal():
        return list(read_lines(Path(probe)))
    pairs = valid_pairs_of_run(bundle.folder, bundle.configuration)
    if pairs:
        return [source for source, _ in pairs[: PROBE_LINES if probe is None else int(probe)]]
    if probe is None:
        return None
    raise DataError(f"{bundle.folder} holds no validation texts; give --probe a file of texts")


def _report(target: Path, row: "ExportFormat", found: "Verification | None") -> None:
    from glassformer.interop.verification import NEAR_TIE

    if found is None:
        typer.echo("not verified, because of --unverified", err=True)
    else:
        share = f"{found.equal} of {found.outputs} outputs equal the run's"
        typer.echo(
            f"verified: {share}; a token's log probability differs by {found.mean:.2g} on average, {found.largest:.2g} "
            f"at most ({found.tokens} tokens)",
            err=True,
        )
        if found.equal < found.outputs:
            typer.echo(
                "any number of outputs may differ at near ties: where an output first differs, the log probability "
                f"of its token in the run may be {NEAR_TIE:g} below that of the run's own token; here, it is at most "
                f"{max(0.0, found.preference):.2g} below",
                err=True,
            )
        if found.cut_differently:
            typer.echo(
                f"{found.cut_differently} further texts are cut into different tokens, because the other program does "
                "not normalise them as glassformer does; their outputs were not compared",
                err=True,
            )
    typer.echo(f"the model is in {target}{row.use and f':  {row.use.format(path=shlex.quote(str(target)))}'}")
