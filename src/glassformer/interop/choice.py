"""Choose an engine: the requested one, or the fastest one that supports all needs and gives the run's own outputs."""

import logging
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path

from glassformer.bundle import WEIGHTS, Bundle
from glassformer.decoding.engine import Engine, Need
from glassformer.decoding.options import EngineName, Quantization
from glassformer.errors import CheckpointError, ConfigError, GlassformerError, install_command
from glassformer.interop.ctranslate2_engine import CTranslate2Engine
from glassformer.interop.ctranslate2_export import check_export, converted, is_export, read_export
from glassformer.interop.ctranslate2_model import check_convertible, import_ctranslate2
from glassformer.system.files import remove

__all__ = ["load_engine"]

_log = logging.getLogger(__name__)


def load_engine(
    bundle: Bundle,
    engine: EngineName,
    quantization: Quantization | None = None,
    workers: int = 0,
    needs: Collection[Need] = (),
) -> Engine:
    """Return the engine for a run or an export; `workers` = 0 means one per core (CTranslate2), or one (torch).

    "auto" chooses CTranslate2 if it supports all needs and gives the outputs of the run's own search, torch otherwise.

    Raises:
        CheckpointError: the folder is damaged, or the converted model gives different answers.
        ConfigError: the engine does not support this model or one of the needs.
        MissingDependencyError: CTranslate2 was asked for and is not installed.
    """
    exported = is_export(bundle.folder)
    if exported or engine == "ctranslate2":
        _check_needs(bundle, engine, needs, exported)
        how = _from_export if exported else _from_run
        return how(bundle, quantization, workers, needs)
    if engine == "auto" and (reason := _why_not(bundle, quantization, needs)):
        _log.info("engine torch: %s", reason)
    elif engine == "auto":
        try:
            return _from_run(bundle, quantization, workers, needs)
        except GlassformerError as error:
            _log.warning("engine torch, because CTranslate2 cannot be used: %s", error)
    return _torch(bundle, quantization, workers)


def _check_needs(bundle: Bundle, engine: EngineName, needs: Collection[Need], exported: bool) -> None:
    """Refuse an export for the engine torch, and needs that CTranslate2 does not support."""
    if exported and engine == "torch":
        raise ConfigError(
            f"{bundle.folder} is an export for CTranslate2, without weights for the engine torch; give the exported "
            "run itself, or leave out --engine"
        )
    for need in needs:
        if reason := CTranslate2Engine.cannot.get(need):
            remedy = f"{bundle.folder} is an export: give the run itself" if exported else "choose the engine torch"
            raise ConfigError(f"engine ctranslate2: {reason}; {remedy}, or leave out {need}")


def _from_export(bundle: Bundle, quantization: Quantization | None, workers: int, needs: Collection[Need]) -> Engine:
    export = read_export(bundle.folder)
    if quantization not in (None, export.quantization):
        raise ConfigError(
            f"{bundle.folder} was exported with {export.quantization}, not {quantization}; leave out --quantization, "
            "or export the run again"
        )
    check_export(bundle)
    return _engine(bundle, bundle.folder, workers, needs)


def _from_run(bundle: Bundle, quantization: Quantization | None, workers: int, needs: Collection[Need]) -> Engine:
    folder = converted(bundle, quantization or "float32")
    try:
        return _engine(bundle, folder, workers, needs)
    except CheckpointError as error:  # a damaged conversion is only a copy of the run's weights: convert them again
        _log.warning("%s", error)
        remove(folder)
        return _engine(bundle, converted(bundle, quantization or "float32"), workers, needs)


def _engine(bundle: Bundle, folder: Path, workers: int, needs: Collection[Need]) -> Engine:
    engine = CTranslate2Engine(folder, bundle, positions=read_export(folder).positions, workers=workers)
    _log.info("engine ctranslate2 (%s), %d workers", engine.quantization, engine.workers)
    if bundle.configuration.decoding.beam_size > 1:
        _log.info("CTranslate2's beam ends as soon as beam_size hypotheses have ended (docs/decisions/engines.md)")
    for difference in CTranslate2Engine.differences(bundle.configuration.decoding, needs):
        _log.info("outputs can differ from the engine torch: %s", difference)
    return engine


def _torch(bundle: Bundle, quantization: Quantization | None, workers: int) -> Engine:
    from glassformer.decoding.quantisation import quantise
    from glassformer.decoding.torch_engine import TorchEngine

    return TorchEngine(quantise(bundle.model(), quantization or "float32"), workers=workers or 1)


def _why_not(bundle: Bundle, quantization: Quantization | None, needs: Collection[Need]) -> str:
    """Return why CTranslate2 cannot be used for this run's own outputs; "" if it can."""
    lacking = [CTranslate2Engine.cannot[need] for need in needs if need in CTranslate2Engine.cannot]
    for reason in (*lacking, *CTranslate2Engine.differences(bundle.configuration.decoding, needs)):
        return reason
    if not find_spec("ctranslate2"):
        return f"CTranslate2 is not installed; {install_command('ctranslate2')}"
    try:
        check_convertible(bundle.model_config)
    except ConfigError as error:
        return str(error)
    if quantization not in (None, *import_ctranslate2().get_supported_compute_types("cpu")):
        return f"CTranslate2 does not support {quantization} on this processor"
    return "" if (bundle.folder / WEIGHTS).is_file() else "the run has no weights yet"
