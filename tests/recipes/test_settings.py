"""The list of settings is complete, and matches what configurations accept."""

from dataclasses import fields

import pytest
from all_settings import all_settings

from glassformer.errors import ConfigError
from glassformer.model.config import ModelConfig
from glassformer.recipes.configuration import MODEL_FACTS, Configuration
from glassformer.recipes.toml import from_dict

SETTINGS = {f"{one.section}.{one.name}": one for one in all_settings()}


def test_every_field_of_every_section_is_listed_once_and_in_order():
    kinds = {field.name: ModelConfig if field.name == "model" else field.type for field in fields(Configuration)}
    names = [f"{section}.{field.name}" for section, kind in kinds.items() for field in fields(kind)]
    facts = {f"model.{name}" for name in MODEL_FACTS}
    assert [name for name in SETTINGS if name != "model.preset"] == [name for name in names if name not in facts]
    assert len(all_settings()) == len(SETTINGS)


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_has_an_explanation_a_type_and_a_number_its_range(name):
    setting = SETTINGS[name]
    assert setting.explanation.endswith((".", ".)"))
    assert setting.type
    assert ("integer" in setting.type or "number" in setting.type) == (setting.range is not None)


def test_a_setting_is_listed_with_its_default():
    smoothing = SETTINGS["training.label_smoothing"]
    assert (smoothing.type, str(smoothing.range), smoothing.default) == ("number", "from 0 to 0.999", "0.1")
    assert smoothing.explanation.startswith("Share ε of the correct token's probability")
    assert SETTINGS["model.norm"].type == "one of post, pre"
    assert SETTINGS["model.d_k"].default == ""


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", [name for name, setting in SETTINGS.items() if setting.range])
def test_a_value_out_of_range_or_not_a_number_is_refused(name):
    section, field = name.split(".")
    limits = SETTINGS[name].range
    for value in (limits.minimum - 1, limits.maximum + 1, float("nan"), float("inf"), True):
        values = {"data": {"task": "copy"}}
        values.setdefault(section, {})[field] = value
        with pytest.raises(ConfigError, match=rf"^{section}\.{field}: expected "):
            from_dict(values)
