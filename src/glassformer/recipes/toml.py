"""Reading, checking and writing configurations as TOML, and the built-in recipes."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from glassformer.errors import CheckpointVersionError, ConfigError, nearest
from glassformer.model.config import PRESETS, ModelConfig
from glassformer.recipes.configuration import Configuration
from glassformer.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["from_dict", "load", "model_config", "recipes", "set_values", "to_toml"]

T = TypeVar("T")

FORMAT_VERSION = 2

_CLEANING_OF_FORMAT_1 = {"max_characters": 0, "max_ratio": 0.0, "duplicates": "keep", "control_characters": "keep"}
"""Format 1 knew no cleaning: only pairs with a blank side were left out."""

_SMOOTHING_OF_PRESET = {"table3-D-smoothing0.0": 0.0, "table3-D-smoothing0.2": 0.2}


def load(name_or_path: str | Path, overrides: Iterable[str] = (), data: str | Path | None = None) -> Configuration:
    """Return the configuration of a built-in recipe (by name) or of a TOML file (by path), checked.

    Each override is "section.field=value", with the value as in TOML (text may go without quotes); `data` is the
    folder in which the corpus lies.

    Raises:
        ConfigError: there is no such file or recipe, it is not TOML, or a setting is unknown or impossible; the message
            names the field, its value, and the nearest right name.
    """
    values = _parse(name_or_path)
    if data is not None:
        _section(values, "data")["directory"] = str(data)
    for override in overrides:
        set_values(values, override)
    _section(values, "run").setdefault("directory", f"runs/{Path(name_or_path).stem}")
    return from_dict(values)


def from_dict(values: Mapping[str, Any]) -> Configuration:
    """Return the configuration that these sections describe, checked.

    Raises:
        ConfigError: a setting is unknown or impossible.
        CheckpointVersionError: it was written by a newer glassformer.
    """
    values = dict(values)
    version = values.pop("format_version", FORMAT_VERSION)
    _check_version(version)
    if version == 1:
        values.setdefault("cleaning", _CLEANING_OF_FORMAT_1)
    _check_names(values)
    configuration = _parsed(Configuration, values)
    smoothing = _SMOOTHING_OF_PRESET.get(str(configuration.model.get("preset")))
    if smoothing is not None and "label_smoothing" not in values.get("training", {}):
        training = replace(configuration.training, label_smoothing=smoothing)
        configuration = replace(configuration, training=training)
    _check_model(configuration)
    return configuration


def model_config(configuration: Configuration, source_size: int, target_size: int) -> ModelConfig:
    """Return the [model] section as a ModelConfig, for tokenizers of these sizes.

    What it does not say is the paper's base model; so is all of it while it is left to a corpus that is not counted.

    Raises:
        ConfigError: a field is unknown, of the wrong type, or impossible.
    """
    values = dict(configuration.model)
    preset = str(values.pop("preset", "auto"))
    preset = "base" if preset == "auto" else preset
    sizes = {"source_vocab_size": source_size, "target_vocab_size": target_size}
    if configuration.tokenizer.joint:
        sizes["vocab_size"] = source_size
    for name, value in {**sizes, "pad_id": PAD_ID, "bos_id": BOS_ID, "eos_id": EOS_ID}.items():
        if values.get(name, value) != value:
            raise ConfigError(f"model.{name} = {values[name]!r}, but the tokenizer's is {value}: leave it out")
    given = {**values, **sizes}
    typed = _parsed(ModelConfig, {**PRESETS.get(preset, {}), **given}, "model")
    model = ModelConfig.preset(preset, **{name: getattr(typed, name, value) for name, value in given.items()})
    _check_positions(model, configuration.data.max_length)
    return model


def to_toml(configuration: Configuration, model: ModelConfig) -> str:
    """Return the complete configuration, every default written out, as TOML text that `load` reads."""
    import tomli_w

    sections = {field.name: getattr(configuration, field.name) for field in fields(configuration)}
    values: dict[str, Any] = {"format_version": FORMAT_VERSION}
    for name, section in sections.items():
        values[name] = _without_none(model.to_dict() if name == "model" else asdict(section))
    return tomli_w.dumps(values)


def set_values(values: dict[str, Any], override: str) -> None:
    """Put "section.field=value" into nested sections.

    Raises:
        ConfigError: it does not have that form.
    """
    name, equals, text = override.partition("=")
    section, dot, field = name.strip().partition(".")
    if not (equals and dot and section and field):
        raise ConfigError(f"--set {override!r}: expected section.field=value, such as training.steps=60")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    _section(values, section)[field] = value


def recipes() -> dict[str, Path]:
    """Return the built-in recipes: name and file, alphabetically."""
    folder = Path(str(files("glassformer.recipes")))
    return dict(sorted((path.stem, path) for path in folder.glob("*.toml")))


def _parse(name_or_path: str | Path) -> dict[str, Any]:
    path = Path(name_or_path)
    if not path.suffix and not path.is_file():
        known = recipes()
        if str(name_or_path) not in known:
            hint = nearest(str(name_or_path), known)
            raise ConfigError(f"no recipe or file named '{name_or_path}'{hint}; recipes: {', '.join(known)}")
        path = known[str(name_or_path)]
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"cannot read the configuration {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error


def _parsed(kind: type[T], values: Mapping[str, Any], prefix: str = "") -> T:
    """Return the dataclass that has these values, each of its field's type; names that it does not know are ignored."""
    from pydantic import ValidationError

    try:
        parsed: T = _adapter(kind).validate_python(values)  # type: ignore[arg-type]  # mypy: a class could have no hash
        return parsed
    except ValidationError as error:
        raise ConfigError(_describe(error, prefix)) from error


@cache
def _adapter(kind: Any) -> "TypeAdapter[Any]":
    """Return what checks this dataclass: made once, for that takes longer than to check."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _section(values: dict[str, Any], name: str) -> dict[str, Any]:
    section = values.setdefault(name, {})
    if not isinstance(section, dict):
        raise _not_a_section(name, section)
    return section


def _not_a_section(name: str, value: object) -> ConfigError:
    return ConfigError(f"{name} = {value!r}: expected a section [{name}] with fields")


def _check_version(version: object) -> None:
    if not isinstance(version, int):
        raise ConfigError(f"format_version = {version!r}: expected a number")
    if version > FORMAT_VERSION:
        raise CheckpointVersionError(
            f"format_version = {version}: this glassformer reads up to {FORMAT_VERSION}; upgrade it"
        )


def _check_model(configuration: Configuration) -> None:
    """Refuse a [model] section that no vocabulary could make right, before any data is read."""
    sizes = {name: value for name, value in configuration.model.items() if name.endswith("vocab_size")}
    size = sizes.get("vocab_size", 8)
    model_config(configuration, sizes.get("source_vocab_size", size), sizes.get("target_vocab_size", size))


def _check_positions(model: ModelConfig, longest: int) -> None:
    if model.positions == "learned" and model.max_length < longest:
        raise ConfigError(
            f"model.max_length = {model.max_length} learned positions are too few for data.max_length = {longest}: "
            "make them equal"
        )


def _check_names(values: Mapping[str, Any]) -> None:
    """Refuse unknown sections and fields, naming the nearest that exist."""
    sections = {field.name: field.type for field in fields(Configuration)}
    for section, content in values.items():
        if section not in sections:
            raise ConfigError(f"[{section}]: unknown section{nearest(section, sections)}")
        if not isinstance(content, Mapping):
            raise _not_a_section(section, content)
        known = _field_names(section)
        for name in content:
            if name not in known:
                raise ConfigError(f"{section}.{name} = {content[name]!r}: unknown field{nearest(name, known)}")


def _field_names(section: str) -> list[str]:
    if section == "model":
        return ["preset", *(field.name for field in fields(ModelConfig))]
    kind = {field.name: field.type for field in fields(Configuration)}[section]
    # A field's type could be a string; those of Configuration are the sections' dataclasses.
    return [field.name for field in fields(kind)]  # type: ignore[arg-type]


def _describe(error: Any, prefix: str = "") -> str:
    """Return pydantic's first complaint in our form: field, value, what was expected."""
    first = error.errors()[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, ConfigError):
        return str(cause)
    # What follows section and field says which of several types was tried.
    name = ".".join(str(part) for part in [part for part in (prefix, *first["loc"]) if part != ""][:2])
    if first["type"] == "missing":
        return f"{name}: missing"
    if first["type"] == "literal_error":
        allowed = first["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        return (
            f"{name} = {first['input']!r}: expected one of {', '.join(allowed)}{nearest(str(first['input']), allowed)}"
        )
    return f"{name} = {first['input']!r}: {first['msg'][0].lower()}{first['msg'][1:]}"


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are set: TOML has no null."""
    return {name: value for name, value in values.items() if value is not None}
