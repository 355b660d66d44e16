"""Read, check and write configurations as TOML."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from glassformer.errors import CheckpointVersionError, ConfigError, nearest, quoted, shortened
from glassformer.model.config import ModelConfig, preset_fields
from glassformer.recipes.configuration import IMPORT_FACTS, OF_SAMPLING, TOKENIZER_FACTS, Configuration
from glassformer.recipes.files import read
from glassformer.settings import has_type, is_number, refused
from glassformer.system.files import parse_toml

__all__ = [
    "changed_settings",
    "decoding_changes",
    "from_dict",
    "load",
    "load_stored",
    "model_config",
    "model_section",
    "section_changes",
    "set_values",
    "to_toml",
    "without_none",
]

CONFIG_VERSION = 1

T = TypeVar("T")

_SECTIONS: Mapping[str, Any] = {field.name: field.type for field in fields(Configuration)}
"""The type of each section, by name."""
_LAST_SECTION = [*_SECTIONS][-1]
"""The name of the last section. A run's configuration has all sections, so a file without it is cut short."""

_REMOVED: Mapping[str, Mapping[str, Any]] = {"tokenizer": {"placeholders": 0.0}}
"""Fields that earlier versions wrote into each run's configuration, by section, each with the value without effect."""

_SMOOTHING_OF_PRESET = {"table3-D-smoothing0.0": 0.0, "table3-D-smoothing0.2": 0.2}


def load(name_or_path: str | Path, overrides: Iterable[str] = (), data: str | Path | None = None) -> Configuration:
    """Load and check the configuration of a built-in recipe (by name) or of a TOML file (by path).

    Each override is "section.field=value", with the value as in TOML (quotes around text are optional). `data` is the
    corpus's folder.

    Raises:
        ConfigError: the file or recipe does not exist, the file is not TOML, a setting is unknown or impossible, or no
            corpus is named; the message names the field, its value, and the nearest right name.
    """
    values = read(name_or_path)
    if data is not None:
        _section(values, "data")["directory"] = str(data)
    for override in overrides:
        set_values(values, override)
    _section(values, "run").setdefault("directory", f"runs/{Path(name_or_path).stem}")
    configuration = from_dict(values)
    configuration.data.check_corpus()
    _refuse_facts(configuration.model, IMPORT_FACTS, "an imported model brings it")
    return configuration


def load_stored(content: bytes, source_size: int, target_size: int) -> tuple[Configuration, ModelConfig]:
    """Return the configuration in a run's file, and the configuration of the model.

    `source_size` and `target_size` are the sizes of the vocabularies. `to_toml` wrote the file, so the file has every
    setting, with the right type, and no preset. The file of an imported run names no corpus.

    Raises:
        ConfigError: the file is not TOML or is cut short, or a setting is unknown or impossible.
        CheckpointVersionError: the configuration was written by a newer glassformer.
    """
    try:
        values: dict[str, Any] = {"data": {}, **parse_toml(content)}
    except ValueError as error:  # invalid TOML, a file that is not UTF-8, or a number with thousands of digits
        raise ConfigError(f"it cannot be read as TOML: {shortened(str(error))}") from error
    _check_version(values.pop("format_version", CONFIG_VERSION))
    values = _without_removed(values, stored=True)
    _check_sections(values)
    if _LAST_SECTION not in values:
        raise ConfigError(f"[{_LAST_SECTION}] is missing, so the file is cut short")
    sections: dict[str, Any] = {}
    for name, section in values.items():
        given = {field: tuple(value) if isinstance(value, list) else value for field, value in section.items()}
        sections[name] = given if name == "model" else _SECTIONS[name](**given)
    configuration = Configuration(**sections)
    sizes = _vocabulary_sizes(configuration, source_size, target_size)
    return configuration, ModelConfig(**configuration.model, **sizes)


def from_dict(values: Mapping[str, Any]) -> Configuration:
    """Check the sections of a configuration, and return the configuration.

    Raises:
        ConfigError: a setting is unknown or impossible.
        CheckpointVersionError: the configuration was written by a newer glassformer.
    """
    values = {"data": {}, **_without_removed(values)}
    _check_version(values.pop("format_version", CONFIG_VERSION))
    _check_sections(values, "preset")
    sections: dict[str, Any] = {
        name: _parsed(name, kind, values[name]) if is_dataclass(kind) else dict(values[name])
        for name, kind in _SECTIONS.items()
        if name in values
    }
    configuration = Configuration(**sections)
    smoothing = _SMOOTHING_OF_PRESET.get(str(configuration.model.get("preset")))
    if smoothing is not None and "label_smoothing" not in values.get("training", {}):
        training = replace(configuration.training, label_smoothing=smoothing)
        configuration = replace(configuration, training=training)
    model_config(configuration, 8, 8)  # rejects impossible model sizes before the corpus is read
    return configuration


def model_config(configuration: Configuration, source_size: int, target_size: int) -> ModelConfig:
    """Return the [model] section as a ModelConfig, for vocabularies of these sizes.

    Missing fields get the values of the paper's base model. If `fit` has not replaced the preset "auto", all fields
    get these values.

    Raises:
        ConfigError: a field is unknown, of the wrong type, or impossible.
    """
    _check_sections({"model": configuration.model}, "preset")
    values = dict(configuration.model)
    preset = str(values.pop("preset", "auto"))
    sizes = _vocabulary_sizes(configuration, source_size, target_size)
    of_preset = {} if preset == "auto" else preset_fields(preset)
    model: ModelConfig = _parsed("model", ModelConfig, {**of_preset, **values, **sizes})
    longest = configuration.data.max_length
    if model.longest < longest:
        raise ConfigError(
            f"model.max_length: expected at least data.max_length = {longest} for learned positions, got "
            f"{model.max_length}; make both lengths equal"
        )
    return model


def _vocabulary_sizes(configuration: Configuration, source: int, target: int) -> dict[str, Any]:
    """Return the fields of a ModelConfig that the sizes of the vocabularies decide."""
    joint = {"vocab_size": source} if configuration.tokenizer.joint else {}
    return {"source_vocab_size": source, "target_vocab_size": target, **joint}


def model_section(model: ModelConfig) -> dict[str, Any]:
    """Return the section [model] for a model, with all defaults, but without the fields that the tokenizers decide.

    Fields that only an import can change are included if an import has changed them.
    """
    values = model.to_dict()
    usual = ModelConfig(**{name: value for name, value in values.items() if name not in IMPORT_FACTS}).to_dict()
    facts = {*TOKENIZER_FACTS, *(name for name in IMPORT_FACTS if values[name] == usual[name])}
    return {name: value for name, value in without_none(values).items() if name not in facts}


def to_toml(configuration: Configuration, model: ModelConfig) -> str:
    """Return the complete configuration, including all defaults, as TOML text that `load` can read."""
    import tomli_w

    sections = {field.name: getattr(configuration, field.name) for field in fields(configuration)}
    values: dict[str, Any] = {"format_version": CONFIG_VERSION}
    for name, section in sections.items():
        values[name] = model_section(model) if name == "model" else without_none(asdict(section))
    return tomli_w.dumps(values)


def set_values(values: dict[str, Any], override: str) -> None:
    """Set a field of nested sections from an override, "section.field=value".

    Raises:
        ConfigError: the override has a different form.
    """
    name, equals, text = override.partition("=")
    section, dot, field = name.strip().partition(".")
    if not (equals and dot and section and field):
        fix = "" if equals else f"; join the name and its value with '=': --set {name.strip()}=VALUE"
        raise ConfigError(
            f"--set: expected section.field=value, such as training.steps=60, got {quoted(override)}{fix}"
        )
    try:
        value = parse_toml(f"value = {text}")["value"]
    except ValueError:
        value = text.strip()
    _section(values, section)[field] = value


def changed_settings(section: str, settings: T, changes: Mapping[str, Any]) -> T:
    """Return the settings of a section (a dataclass) with these changes, after checking the changes.

    Raises:
        ConfigError: a setting is unknown or impossible.
    """
    if not changes:
        return settings
    _check_names(section, type(settings), changes)
    before = {field.name: getattr(settings, field.name) for field in fields(settings)}  # type: ignore[arg-type]
    changed: T = _parsed(section, type(settings), {**before, **changes})
    return changed


def decoding_changes(
    overrides: Iterable[str], *, beam_size: int | None = None, retry: bool = False, sampling: bool = False
) -> dict[str, Any]:
    """Return the settings in overrides of the form "decoding.NAME=VALUE", by name.

    `beam_size` and `retry`, if given, take precedence over the overrides.

    Raises:
        ConfigError: an override has a different form or section, or sets a field that only sampling uses.
    """
    changes = section_changes("decoding", overrides, "decoding.beam_size=4")
    for name in OF_SAMPLING:
        if name in changes and not sampling:
            raise ConfigError(f"decoding.{name} has no effect without --sample of translate or distil: leave it out")
    given = {"beam_size": beam_size, "retry": retry or None}
    return changes | {name: value for name, value in given.items() if value is not None}


def section_changes(section: str, overrides: Iterable[str], example: str) -> dict[str, Any]:
    """Return the settings in overrides of the form "section.NAME=VALUE", by name.

    `example` is an example of an override, for the error message.

    Raises:
        ConfigError: an override has a different form or section.
    """
    values: dict[str, Any] = {}
    for override in overrides:
        set_values(values, override)
    changes = values.pop(section, {})
    for other, fields_of in values.items():
        name = f"{other}.{next(iter(fields_of))}"
        raise ConfigError(f"--set: expected {section}.NAME=VALUE, such as {example}, got {quoted(name)}")
    return dict(changes)


def _parsed(section: str, kind: Any, values: Mapping[str, Any]) -> Any:
    """Return the dataclass of a section with these values; unknown names are ignored.

    Pydantic converts values to the types of their fields, such as "60" to a number. Pydantic is used only if a value
    has a different type from its field, because loading Pydantic takes longer than all other steps of reading a
    configuration.
    """
    known = {field.name: field.type for field in fields(kind)}
    given = {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items() if name in known
    }
    if all(has_type(known[name], value) for name, value in given.items()):
        return kind(**given)
    return _converted(section, kind, values)


def _converted(section: str, kind: Any, values: Mapping[str, Any]) -> Any:
    from pydantic import TypeAdapter, ValidationError

    known = {field.name: field for field in fields(kind)}
    for name, value in values.items():
        if isinstance(value, bool) and name in known and is_number(known[name].type):
            raise refused(section, known[name], value)  # pydantic would accept a Boolean as 0 or 1
    try:
        return TypeAdapter(kind).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        if isinstance(cause := first.get("ctx", {}).get("error"), ConfigError):
            raise cause from error
        raise refused(section, known[str(first["loc"][0])], first["input"]) from error


def _section(values: dict[str, Any], name: str) -> dict[str, Any]:
    section = values.setdefault(name, {})
    if not isinstance(section, dict):
        raise _not_a_section(name, section)
    return section


def _not_a_section(name: str, value: object) -> ConfigError:
    return ConfigError(f"{shortened(name)}: expected a section with fields, got {quoted(value)}")


def _check_version(version: object) -> None:
    if not isinstance(version, int) or isinstance(version, bool):
        raise ConfigError(f"format_version: expected an integer, got {quoted(version)}")
    if version > CONFIG_VERSION:
        raise CheckpointVersionError(
            f"format_version: expected at most {CONFIG_VERSION}, got {version}; upgrade glassformer"
        )


def _without_removed(values: Mapping[str, Any], *, stored: bool = False) -> dict[str, Any]:
    """Return the sections without the fields that only earlier versions had.

    A field whose value had an effect is left in, and so refused, unless the configuration is `stored` with a model,
    which works without the field.
    """
    sections = dict(values)
    for section, without_effect in _REMOVED.items():
        if isinstance(content := values.get(section), Mapping):
            sections[section] = {
                name: value
                for name, value in content.items()
                if name not in without_effect or not (stored or value == without_effect[name])
            }
    return sections


def _check_sections(values: Mapping[str, Any], *of_model: str) -> None:
    """Raise an error for unknown sections and fields; [model] may also have the names in `of_model`."""
    for section, content in values.items():
        if section not in _SECTIONS:
            raise ConfigError(f"[{shortened(section)}]: unknown section{nearest(section, _SECTIONS)}")
        if not isinstance(content, Mapping):
            raise _not_a_section(section, content)
        if section != "model":
            _check_names(section, _SECTIONS[section], content)
            continue
        _refuse_facts(content, TOKENIZER_FACTS, "the tokenizers, which are made from the corpus, decide it")
        _check_names(section, ModelConfig, content, *of_model)


def _refuse_facts(model: Mapping[str, Any], facts: Iterable[str], why: str) -> None:
    """Raise an error for fields of the section [model] that users cannot choose; `why` says what decides them."""
    for name in facts:
        if name in model:
            raise ConfigError(
                f"model.{name}: expected no value, got {quoted(model[name])}; leave it out, because {why}"
            )


def _check_names(section: str, kind: Any, content: Mapping[str, Any], *besides: str) -> None:
    """Raise an error for an unknown field of a section, with the nearest name; names in `besides` are also allowed."""
    names = [*besides, *(field.name for field in fields(kind))]
    for name in content:
        if name not in names:
            raise ConfigError(f"{section}.{shortened(name)}: unknown field{nearest(name, names)}")


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values except None, because TOML cannot express None."""
    return {name: value for name, value in values.items() if value is not None}
