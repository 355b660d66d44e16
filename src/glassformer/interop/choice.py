"""Which engine translates: the one that was asked for, or the fastest that gives the same answers."""

import logging
from importlib.util import find_spec
from pathlib import Path

from glassformer.bundle import WEIGHTS, Bundle
from glassformer.decoding.engine import Engine, EngineName, Quantization
from glassformer.errors import CheckpointError, ConfigError, GlassformerError
from glassformer.interop.ctranslate2_model import check_convertible, import_ctranslate2
from glassformer.interop.export import converted, is_export, read_export
from glassformer.text.storage import remove

__all__ = ["load_engine"]

_log = logging.getLogger(__name__)


def load_engine(
    bundle: Bundle, engine: EngineName, quantization: Quantization | None = None, workers: int = 0
) -> Engine:
    """Return the engine of a run, or of an export; with 0 workers, it has as many as need no further process.

    Raises:
        CheckpointError: the folder is damaged, or its model cannot be verified.
        ConfigError: the engine cannot translate with this model.
        MissingDependencyError: CTranslate2 is asked for and not installed.
    """
    if is_export(bundle.folder):
        return _exported(bundle, engine, quantization, workers)
    if engine == "ctranslate2":
        return _converted(bundle, quantization or "float32", workers)
    if engine == "auto" and (reason := _why_not(bundle, quantization)):
        _log.info("engine torch: %s", reason)
    elif engine == "auto":
        try:
            return _converted(bundle, quantization or "float32", workers)
        except GlassformerError as error:
            _log.warning("engine torch, because CTranslate2 cannot take its place: %s", error)
    return _torch(bundle, quantization, workers)


def _exported(bundle: Bundle, engine: EngineName, quantization: Quantization | None, workers: int) -> Engine:
    export = read_export(bundle.folder)
    if engine == "torch":
        raise ConfigError(
            f"{bundle.folder} is an export for CTranslate2 and has no weights for the engine torch: give the run that "
            "it comes from, or leave --engine out"
        )
    if quantization not in (None, export.quantization):
        raise ConfigError(
            f"{bundle.folder} was exported with {export.quantization}, not {quantization}: leave --quantization out, "
            "or export the run again"
        )
    return _engine(bundle, bundle.folder, workers)


def _converted(bundle: Bundle, quantization: Quantization, workers: int) -> Engine:
    folder = converted(bundle, quantization)
    try:
        return _engine(bundle, folder, workers)
    except CheckpointError as error:  # cut short since: it is but a copy of the run's weights
        _log.warning("%s", error)
        remove(folder)
        return _engine(bundle, converted(bundle, quantization), workers)


def _engine(bundle: Bundle, folder: Path, workers: int) -> Engine:
    from glassformer.interop.ctranslate2_engine import CTranslate2Engine

    engine = CTranslate2Engine(folder, bundle, positions=read_export(folder).positions, workers=workers)
    _log.info("engine ctranslate2 (%s), %d workers", engine.quantization, engine.workers)
    return engine


def _torch(bundle: Bundle, quantization: Quantization | None, workers: int) -> Engine:
    from glassformer.decoding.quantisation import quantise
    from glassformer.decoding.torch_engine import TorchEngine

    return TorchEngine(quantise(bundle.model(), quantization or "float32"), workers=workers or 1)


def _why_not(bundle: Bundle, quantization: Quantization | None) -> str:
    """Return why CTranslate2 cannot translate with this run's model; "" if it can."""
    if not find_spec("ctranslate2"):
        return "CTranslate2 is not installed (pip install 'glassformer[ctranslate2]')"
    try:
        check_convertible(bundle.model_config)
    except ConfigError as error:
        return str(error)
    if quantization not in (None, *import_ctranslate2().get_supported_compute_types("cpu")):
        return f"CTranslate2 has no {quantization} on this processor"
    return "" if (bundle.folder / WEIGHTS).is_file() else "the run has no weights yet"
