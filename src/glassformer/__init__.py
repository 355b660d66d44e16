"""glassformer: the Transformer of "Attention Is All You Need" that you can read, watch, train and use.

Importing glassformer is quick, because each public name is imported only when it is first used.
"""

from typing import TYPE_CHECKING

from glassformer.system.lazy import lazy_names

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
        RankError,
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
__released__ = "2026-11-29"

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
    "RankError",
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

_MODULES = {
    "glassformer.errors": (
        "CheckpointError",
        "CheckpointVersionError",
        "ConfigError",
        "DataError",
        "DecodingError",
        "DivergenceError",
        "GlassformerError",
        "MissingDependencyError",
        "RankError",
        "ShapeError",
        "VocabularyError",
    ),
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
    "glassformer.training": (),
    "glassformer.watch.inspection": (),
}

__getattr__ = lazy_names(__name__, _MODULES)


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
