"""The table of the formats to which `glassformer export` can export a run."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from glassformer.bundle import Bundle
from glassformer.decoding.options import Quantization
from glassformer.errors import ConfigError, nearest, quoted
from glassformer.interop.argos.writer import argos_remarks, export_argos
from glassformer.interop.ctranslate2.writer import export_ctranslate2
from glassformer.interop.exporting import ExportOptions
from glassformer.interop.huggingface.writer import HUGGING_FACE_QUANTIZATIONS, export_hugging_face
from glassformer.interop.onnx.writer import ONNX_QUANTIZATIONS, export_onnx, onnx_remarks
from glassformer.interop.verification import Verification

__all__ = ["FORMATS", "ExportFormat", "export_format"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFormat:
    """An export format, which another program reads."""

    export: Callable[[Bundle, Path, ExportOptions], Verification | None]
    """Writes and verifies an export; returns None if the export was not verified. Raises the errors of
    `export_ctranslate2`."""
    quantizations: tuple[Quantization, ...]
    """The number formats that the weight matrices can have; the first is the default."""
    remarks: Callable[[Bundle], Iterable[str]] = lambda _: ()
    """Yields remarks for the user of the export."""
    ignored: tuple[str, ...] = ()
    """The fields of `ExportOptions` that have no effect on this format."""
    suffix: str = ""
    """The file name's suffix if an export is one file; "" if an export is a folder."""
    use: str = ""
    """The glassformer command that uses the export, with "{path}" for the export's name; "" if there is none."""


def _ctranslate2(bundle: Bundle, folder: Path, options: ExportOptions) -> Verification:
    return export_ctranslate2(bundle, folder, options.quantization, options.probes)


def _ctranslate2_remarks(bundle: Bundle) -> Iterator[str]:
    """Yield remarks for the user of the exported folder."""
    if bundle.configuration.data.reverse_target:
        yield (
            "the model writes from right to left (data.reverse_target = true): `glassformer translate` puts its "
            "outputs into the normal order, but CTranslate2's own package does not"
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
        export=export_hugging_face, quantizations=HUGGING_FACE_QUANTIZATIONS, ignored=("page",)
    ),
    "argos": ExportFormat(
        export=export_argos, quantizations=_CTRANSLATE2S, remarks=argos_remarks, ignored=("page",), suffix=".argosmodel"
    ),
    "onnx": ExportFormat(
        export=export_onnx,
        quantizations=ONNX_QUANTIZATIONS,
        remarks=onnx_remarks,
        ignored=("licence", "scores"),
    ),
}
"""The export formats by name."""


def export_format(name: str) -> ExportFormat:
    """Return the export format with this name.

    Raises:
        ConfigError: the format is unknown.
    """
    if name not in FORMATS:
        raise ConfigError(f"--to: expected {', '.join(FORMATS)}, got {quoted(name)}{nearest(name, FORMATS)}")
    return FORMATS[name]
