"""Read configuration files: the built-in recipes and other TOML files, with the files that they are based on."""

import re
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from glassformer.errors import ConfigError, DataError, nearest, quoted, remedy, shortened
from glassformer.recipes.configuration import Configuration
from glassformer.system.files import LARGEST_TOML, check_width, parse_toml

__all__ = ["read", "recipe_text", "recipes"]

_SETTING = re.compile(r"(# )?(\w+)\.(\w+)( = .*)")
"""A line of a recipe that sets `section.field`, or a comment that suggests a value for `section.field`."""


def recipes() -> dict[str, Path]:
    """Return the file of each built-in recipe, by name, in alphabetical order."""
    return dict(sorted((path.stem, path) for path in _folder().glob("*.toml")))


def read(name_or_path: str | Path) -> dict[str, Any]:
    """Return the sections of a recipe (by name) or of a TOML file (by path), with all settings of its bases.

    A setting in a file replaces the same setting in the file's base. A base is the name of a recipe, or the path of a
    file relative to the file that names the base.

    Raises:
        ConfigError: a file or recipe does not exist or is not TOML, or files are based on each other in a circle.
    """
    return _read(_located(name_or_path, "CONFIG", recipes()), ())


def recipe_text(name: str) -> str:
    """Return a built-in recipe as TOML with sections: its comments, its settings, and all settings of its bases."""
    path = recipes()[name]
    comments = [line for line in _lines(path) if line.startswith("#") and not _SETTING.fullmatch(line)]
    settings = _settings(path)
    order = [field.name for field in fields(Configuration) if field.name in settings]
    sections = ["\n".join([f"[{name}]", *settings[name].values()]) for name in order]
    return "\n".join(comments) + "\n" + "\n\n".join(sections) + "\n"


def _settings(path: Path) -> dict[str, dict[str, str]]:
    """Return the lines with settings of a recipe and its bases, by section and field; bases come first."""
    base = parse_toml(path.read_bytes()).get("base")
    sections = _settings(_bases()[base]) if base else {}
    for line in _lines(path):
        if setting := _SETTING.fullmatch(line):
            comment, section, field, value = setting.groups(default="")
            sections.setdefault(section, {})[field] = comment + field + value
    return sections


def _read(path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    values = _parsed(path)
    if "base" not in values:
        return values
    base, above = values.pop("base"), (*above, path.resolve())
    if not isinstance(base, str):
        raise ConfigError(f"{path}: base: expected the name of a recipe or a file, got {quoted(base)}")
    found = _located(path.parent / base if Path(base).suffix else base, f"{path}: base", _bases())
    if found.resolve() in above:
        circle = " → ".join(one.name for one in (*above, found))
        raise ConfigError(f"{path}: base: expected a file that is not based on this file, got {circle}; remove a base")
    return _merged(_read(found, above), values)


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return the sections of a base with these changes. If a value stands in place of a section, keep the value.

    `from_dict` later raises an error for it.
    """
    merged = dict(base)
    for name, section in changes.items():
        both = isinstance(section, dict) and isinstance(base.get(name), dict)
        merged[name] = {**base[name], **section} if both else section
    return merged


def _located(name_or_path: str | Path, where: str, known: dict[str, Path]) -> Path:
    path = Path(name_or_path)
    if path.suffix or path.is_file():
        return path
    if str(name_or_path) not in known:
        hint = nearest(str(name_or_path), known)
        raise ConfigError(
            f"{where}: expected a file or one of {', '.join(known)}, got {quoted(str(name_or_path))}{hint}"
        )
    return known[str(name_or_path)]


def _parsed(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_TOML + 1)
        check_width(str(path), content)
        return parse_toml(content)
    except DataError as error:
        raise ConfigError(str(error)) from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}; {remedy(error, 'correct the path')}") from error
    except ValueError as error:  # invalid TOML, a file that is not UTF-8, or a number with thousands of digits
        raise ConfigError(f"{path} cannot be read as TOML: {shortened(str(error))}; correct the file") from error


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _bases() -> dict[str, Path]:
    """Return the files that `base` can name: the recipes, and files of shared settings without a corpus."""
    return {path.stem: path for path in (_folder() / "bases").glob("*.toml")} | recipes()


def _folder() -> Path:
    return Path(str(files("glassformer.recipes")))
