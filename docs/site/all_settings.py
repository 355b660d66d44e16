"""All settings of a configuration, as its reference lists them."""

from dataclasses import fields, is_dataclass

from glassformer.model.config import PRESETS, ModelConfig
from glassformer.recipes.configuration import MODEL_FACTS, Configuration
from glassformer.settings import Setting, settings_of

_PRESET = Setting(
    section="model",
    name="preset",
    type=f"one of auto, {', '.join(PRESETS)}",
    range=None,
    default='"auto"',
    explanation="Sizes to start from, which the other fields of the section override; "
    '"auto" = chosen from the corpus, unless the section gives a size.',
)


def all_settings() -> list[Setting]:
    """Return every setting of a configuration, section by section, in the order of the fields."""
    found = []
    for section in fields(Configuration):
        if section.name == "model":
            found += [_PRESET, *(one for one in settings_of(section.name, ModelConfig) if one.name not in MODEL_FACTS)]
        else:
            assert is_dataclass(section.type)
            assert isinstance(section.type, type)
            found += settings_of(section.name, section.type)
    return found
