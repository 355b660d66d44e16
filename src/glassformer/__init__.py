"""glassformer: the Transformer of "Attention Is All You Need" that you can read, watch, train and use.

Importing glassformer is quick, because each public name is imported only when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glassformer import training
    from glassformer.errors import (
        CheckpointError,
        CheckpointVersionError,
        ConfigError,
        DataError,
        DecodingError,
        DivergenceError,
        GlassformerError,
        MissingDependencyError,
        ShapeError,
        VocabularyError,
    )
    from glassformer.interop.torch.state_dicts import import_module
    from glassformer.jobs import train
    from glassformer.model.attention import attention
    from glassformer.model.config import ModelConfig
    from glassformer.model.positions import sinusoids
    from glassformer.model.taps import intervene, points, record
    from glassformer.model.transformer import Transformer
    from glassformer.translator import Translator
    from glassformer.watch import inspection
    from glassformer.watch.explorer.widget import explore
    from glassformer.watch.inspection.check import check

__version__ = "0.1.0"

__all__ = [
    "CheckpointError",
    "CheckpointVersionError",
    "ConfigError",
    "DataError",
    "DecodingError",
    "DivergenceError",
    "GlassformerError",
    "MissingDependencyError",
    "ModelConfig",
    "ShapeError",
    "Transformer",
    "Translator",
    "VocabularyError",
    "attention",
    "check",
    "explore",
    "import_module",
    "inspection",
    "intervene",
    "points",
    "record",
    "sinusoids",
    "train",
    "training",
]

_PACKAGES = {"inspection": "glassformer.watch.inspection", "training": "glassformer.training"}
_MODULES = {
    "glassformer.watch.explorer.widget": ("explore",),
    "glassformer.watch.inspection.check": ("check",),
    "glassformer.model.attention": ("attention",),
    "glassformer.model.config": ("ModelConfig",),
    "glassformer.model.positions": ("sinusoids",),
    "glassformer.model.taps": ("intervene", "points", "record"),
    "glassformer.model.transformer": ("Transformer",),
    "glassformer.interop.torch.state_dicts": ("import_module",),
    "glassformer.jobs": ("train",),
    "glassformer.translator": ("Translator",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Return a public name, importing its module now."""
    if name in _PACKAGES:
        return importlib.import_module(_PACKAGES[name])
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in __all__:
        return getattr(importlib.import_module("glassformer.errors"), name)
    raise AttributeError(f"module 'glassformer' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
