"""The formats that a run can be exported to: one row for each, used by `glassformer export`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from glassformer.bundle import Bundle
from glassformer.decoding.options import Quantization
from glassformer.errors import ConfigError, nearest, quoted
from glassformer.interop.argos.writer import argos_remarks, export_argos
from glassformer.interop.ctranslate2.writer import export_ctranslate2
from glassformer.interop.exporting import ExportOptions, placeholder_remarks
from glassformer.interop.huggingface.writer import export_hugging_face
from glassformer.interop.onnx.writer import export_onnx, onnx_remarks
from glassformer.interop.verification import Verification

__all__ = ["FORMATS", "ExportFormat", "export_format"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFormat:
    """A format that another program reads."""

    export: Callable[[Bundle, Path, ExportOptions], Verification | None]
    """Writes and verifies an export; returns None if it was not verified. The errors of `export_ctranslate2`."""
    quantizations: tuple[Quantization, ...]
    """The number formats of its matrices; the first is the default."""
    remarks: Callable[[Bundle], Iterable[str]] = lambda _: ()
    """Yields what a user of the export must know."""
    ignored: tuple[str, ...] = ()
    """The fields of `ExportOptions` that have no effect."""
    suffix: str = ""
    """The end of the name of a format that is one file; "" for a folder."""
    use: str = ""
    """The command that uses the export, with "{path}" for its name, if it is one of glassformer's."""


def _ctranslate2(bundle: Bundle, folder: Path, options: ExportOptions) -> Verification:
    return export_ctranslate2(bundle, folder, options.quantization, options.probes)


def _ctranslate2_remarks(bundle: Bundle) -> Iterator[str]:
    """Yield what a user of the folder must know."""
    if bundle.configuration.data.reverse_target:
        yield (
            "the model writes from right to left (data.reverse_target = true): `glassformer translate` puts its "
            "outputs into order, CTranslate2's own package does not"
        )


_CTRANSLATE2S: tuple[Quantization, ...] = ("int8", *(one for one in get_args(Quantization) if one != "int8"))

FORMATS: Mapping[str, ExportFormat] = {
    "ctranslate2": ExportFormat(
        export=_ctranslate2,
        quantizations=_CTRANSLATE2S,
        remarks=_ctranslate2_remarks,
        ignored=("verified", "python", "licence", "page", "scores"),
        use="glassformer translate {path}",
    ),
    "huggingface": ExportFormat(
        export=export_hugging_face, quantizations=("float32",), remarks=placeholder_remarks, ignored=("page",)
    ),
    "argos": ExportFormat(
        export=export_argos, quantizations=_CTRANSLATE2S, remarks=argos_remarks, ignored=("page",), suffix=".argosmodel"
    ),
    "onnx": ExportFormat(
        export=export_onnx,
        quantizations=("float32", "int8"),
        remarks=onnx_remarks,
        ignored=("licence", "scores"),
    ),
}
"""The formats by name."""


def export_format(name: str) -> ExportFormat:
    """Return the row of a format.

    Raises:
        ConfigError: the format is unknown.
    """
    if name not in FORMATS:
        raise ConfigError(f"--to: expected {', '.join(FORMATS)}, got {quoted(name)}{nearest(name, FORMATS)}")
    return FORMATS[name]
