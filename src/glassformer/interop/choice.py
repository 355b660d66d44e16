"""Choose an engine: the requested one, or the fastest engine with all needed abilities and the run's own outputs."""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

from glassformer.bundle import WEIGHTS, Bundle
from glassformer.decoding.engine import Engine, Need
from glassformer.decoding.options import EngineName, Quantization
from glassformer.errors import CheckpointError, ConfigError, GlassformerError, install_command, quoted
from glassformer.interop.ctranslate2.engine import CTranslate2Engine, device_and_index
from glassformer.interop.ctranslate2.model import check_convertible, import_ctranslate2
from glassformer.interop.ctranslate2.writer import check_export, converted, is_export, read_export
from glassformer.system.files import remove
from glassformer.system.machine import device_of

__all__ = ["EngineRequest", "load_engine"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """The engine that a translator requests, its settings, and the abilities that it needs."""

    engine: EngineName | None = None
    """None = torch for a run, and CTranslate2 for an export, which has no weights for torch."""
    quantization: Quantization | None = None
    """Number format of the weight matrices; None = as trained or exported."""
    workers: int = 0
    """Number of batches decoded in parallel; 0 = one per core for CTranslate2 on the CPU, and otherwise one batch."""
    device: str = "auto"
    """Where to compute: "cpu", "cuda", "cuda:1" or another device of PyTorch; "auto" = a GPU if there is one."""
    needs: Collection[Need] = ()
    """Abilities that the engine must have."""


def load_engine(bundle: Bundle, request: EngineRequest) -> Engine:
    """Return the engine for a run or an export.

    "auto" chooses CTranslate2 if it supports all needs and gives the same outputs as the run's own search, and torch
    otherwise. Since CTranslate2 is verified only on the CPU, "auto" does not choose it on a GPU.

    Raises:
        CheckpointError: the folder is damaged, or the converted model gives other log probabilities than the run.
        ConfigError: the engine is unknown, or does not support this model, this device or one of the needs.
        MissingDependencyError: CTranslate2 was requested and is not installed.
    """
    if is_export(bundle.folder):
        _check_needs(bundle, request, exported=True)
        return _from_export(bundle, request)
    match request.engine:
        case "ctranslate2":
            _check_needs(bundle, request, exported=False)
            return _from_run(bundle, request)
        case "torch" | None:
            return _torch(bundle, request)
        case "auto":
            return _fastest(bundle, request)
    raise ConfigError(f"engine: expected one of {', '.join(get_args(EngineName))}, got {quoted(request.engine)}")


def _fastest(bundle: Bundle, request: EngineRequest) -> Engine:
    """Return CTranslate2 if it can give the outputs of the run's own search, and torch otherwise."""
    if reason := _why_not(bundle, request):
        _log.info("engine torch: %s", reason)
        return _torch(bundle, request)
    try:
        return _from_run(bundle, request)
    except GlassformerError as error:
        _log.warning("engine torch, because CTranslate2 cannot be used: %s", error)
        return _torch(bundle, request)


def _check_needs(bundle: Bundle, request: EngineRequest, *, exported: bool) -> None:
    """Refuse an export for the engine torch, and needs that CTranslate2 does not support."""
    if exported and request.engine == "torch":
        raise ConfigError(
            f"{bundle.folder} is an export for CTranslate2, without weights for the engine torch; give the exported "
            "run itself"
        )
    for need in request.needs:
        if reason := CTranslate2Engine.cannot.get(need):
            remedy = f"{bundle.folder} is an export: give the run itself" if exported else "choose the engine torch"
            raise ConfigError(f"engine ctranslate2: {reason}; {remedy}, or leave out {need}")


def _from_export(bundle: Bundle, request: EngineRequest) -> Engine:
    export = read_export(bundle.folder)
    if request.quantization not in (None, export.quantization):
        raise ConfigError(
            f"{bundle.folder} was exported with {export.quantization}, not {request.quantization}; leave out "
            "the quantization, or export the run again"
        )
    check_export(bundle)
    return _engine(bundle, bundle.folder, request)


def _from_run(bundle: Bundle, request: EngineRequest) -> Engine:
    quantization = request.quantization or "float32"
    folder = converted(bundle, quantization)
    try:
        return _engine(bundle, folder, request)
    except CheckpointError as error:  # a conversion only copies the run's weights, so a damaged conversion is replaced
        _log.warning("%s", error)
        remove(folder)
        return _engine(bundle, converted(bundle, quantization), request)


def _engine(bundle: Bundle, folder: Path, request: EngineRequest) -> Engine:
    export = read_export(folder)
    how: dict[str, Any] = {"positions": export.positions, "shortlist": export.shortlist}
    engine = CTranslate2Engine(folder, bundle, workers=request.workers, device=request.device, **how)
    _log.info("engine ctranslate2 (%s) on %s, %d workers", engine.quantization, engine.device, engine.workers)
    if bundle.configuration.decoding.beam_size > 1:
        _log.info(
            "CTranslate2's beam search ends as soon as beam_size hypotheses have ended (docs/decisions/engines.md)"
        )
    for difference in CTranslate2Engine.differences(bundle.configuration.decoding, request.needs):
        _log.info("outputs can differ from the engine torch: %s", difference)
    return engine


def _torch(bundle: Bundle, request: EngineRequest) -> Engine:
    from glassformer.decoding.torch_engine import TorchEngine

    device = device_of(request.device)
    model = bundle.model().to(device)
    if request.quantization:
        from glassformer.decoding.quantisation import quantise

        model = quantise(model, request.quantization)
    workers = request.workers or 1 if device.type == "cpu" else 1
    return TorchEngine(model, workers=workers, alignment=bundle.alignment)


def _why_not(bundle: Bundle, request: EngineRequest) -> str:
    """Return why CTranslate2 cannot give the outputs of this run's own search; "" if it can."""
    lacking = [CTranslate2Engine.cannot[need] for need in request.needs if need in CTranslate2Engine.cannot]
    for reason in (*lacking, *CTranslate2Engine.differences(bundle.configuration.decoding, request.needs)):
        return reason
    if not find_spec("ctranslate2"):
        return f"CTranslate2 is not installed; {install_command('ctranslate2')}"
    try:
        check_convertible(bundle.model_config)
        device, _ = device_and_index(request.device)
    except ConfigError as error:
        return str(error)
    if device != "cpu":
        return f"CTranslate2 is verified on the CPU, not on {device}"
    if request.quantization not in (None, *import_ctranslate2().get_supported_compute_types("cpu")):
        return f"CTranslate2 does not support {request.quantization} on this processor"
    return "" if (bundle.folder / WEIGHTS).is_file() else "the run has no weights yet"
