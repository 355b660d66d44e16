"""Settings: check the fields of configurations, and describe them for the reference.

A configuration is a dataclass. The annotation of a field says which values the field accepts (`Annotated[int, Range(0,
9)]`, `Literal["post", "pre"]`, …), and the string below the field explains its meaning.
"""

import ast
import inspect
import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from glassformer.errors import ConfigError, nearest, quoted

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "Range",
    "Setting",
    "check_fields",
    "expected",
    "has_type",
    "is_number",
    "refused",
    "settings_of",
    "with_defaults",
]

_WORDS = {int: "an integer", float: "a number", bool: "true or false", str: "text", tuple: "a list of texts"}


@dataclass(frozen=True, slots=True)
class Range:
    """The range of a number. Both ends are allowed; infinity and NaN are not."""

    minimum: float
    maximum: float

    def __contains__(self, number: float) -> bool:
        return self.minimum <= number <= self.maximum

    def __str__(self) -> str:
        return f"from {_number(self.minimum)} to {_number(self.maximum)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The description of one setting, for the reference."""

    section: str
    name: str
    type: str
    """"integer", "number", "true or false", "text", "list of texts", or choices such as "one of post, pre"; or two
    types, such as "number or auto"."""
    range: Range | None
    """The allowed range, if the setting is a number."""
    default: str
    """The default as written in TOML; "" if the setting is derived from others, or has no default."""
    explanation: str


def check_fields(section: str, config: "DataclassInstance") -> None:
    """Check the value of each field against its annotation; a field's default is always accepted.

    Raises:
        ConfigError: a value is of the wrong type or out of range, or a text cannot be written to a TOML file.
    """
    for field in fields(config):
        value = getattr(config, field.name)
        if value is not field.default and not _accepts(field.type, value):
            raise refused(section, field, value)
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str) and not _is_storable(text):
                raise ConfigError(
                    f"{section}.{field.name}: expected UTF-8 text without NUL characters, got {quoted(text)}"
                )


def refused(section: str, field: "Field[Any]", value: object) -> ConfigError:
    """Return the error for a value that a field does not accept."""
    near = nearest(value, _choices(field.type)) if isinstance(value, str) else ""
    return ConfigError(f"{section}.{field.name}: expected {expected(field.type)}, got {quoted(value)}{near}")


def expected(annotation: Any) -> str:
    """Return what a field with this annotation accepts, in words.

    >>> expected(Annotated[int, Range(0, 1000)])
    'an integer from 0 to 1,000'
    """
    kinds, number_range = _parts(annotation)
    return " or ".join(_words(kind) + (f" {number_range}" if kind in (int, float) else "") for kind in kinds)


def has_type(annotation: Any, value: object) -> bool:
    """Return whether a value has the type of a field with this annotation, so that the value needs no conversion."""
    kinds, _ = _parts(annotation)
    if value is None:
        return NoneType in get_args(get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation)
    if isinstance(value, int) and float in kinds:
        return False
    return any(_is_of(kind, value, None) for kind in kinds)


def is_number(annotation: Any) -> bool:
    """Return whether a field with this annotation accepts numbers; true and false are not numbers."""
    return bool({int, float} & set(_parts(annotation)[0]))


def with_defaults(stored: Mapping[str, Any], *kinds: "type[DataclassInstance]", section: str = "") -> dict[str, Any]:
    """Return the settings in a file, with defaults for the settings of these kinds that are not in the file.

    A file does not contain settings that were added in a later version. The default of a new setting must therefore
    give the behaviour from before the setting existed. Names begin with `section`; tuples become lists, as in JSON.
    """
    defaults = {f"{section}{field.name}": field.default for kind in kinds for field in fields(kind)}
    known = {name: value for name, value in defaults.items() if value is not MISSING}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in known.items()} | dict(stored)


def settings_of(section: str, kind: "type[DataclassInstance]") -> list[Setting]:
    """Return the settings of a section, in the order of its fields."""
    explanations = _explanations(kind)
    found = []
    for field in fields(kind):
        annotation: Any = field.type
        kinds, number_range = _parts(annotation)
        found.append(
            Setting(
                section=section,
                name=field.name,
                type=" or ".join(_words(one).removeprefix("an ").removeprefix("a ") for one in kinds),
                range=number_range,
                default="" if field.default is None else json.dumps(field.default, ensure_ascii=False),
                explanation=explanations.get(field.name, ""),
            )
        )
    return found


@cache
def _parts(annotation: Any) -> tuple[tuple[Any, ...], Range | None]:
    """Return the types that an annotation allows, without None, and the range of its numbers."""
    kind, number_range = get_args(annotation) if get_origin(annotation) is Annotated else (annotation, None)
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return tuple(one for one in kinds if one is not NoneType), number_range


def _accepts(annotation: Any, value: object) -> bool:
    kinds, number_range = _parts(annotation)
    return any(_is_of(kind, value, number_range) for kind in kinds)


def _is_of(kind: Any, value: object, number_range: Range | None) -> bool:
    if kind in (int, float):
        is_right = isinstance(value, int if kind is int else (int, float)) and not isinstance(value, bool)
        return is_right and (number_range is None or value in number_range)  # type: ignore[operator]  # it is a number
    origin = get_origin(kind)
    if origin is Literal:
        return value in get_args(kind)
    if origin is tuple:
        return isinstance(value, tuple) and all(isinstance(one, str) for one in value)
    return isinstance(value, kind)


def _words(kind: Any) -> str:
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        return f"one of {', '.join(choices)}" if len(choices) > 1 else str(choices[0])
    return _WORDS[get_origin(kind) or kind]


def _choices(annotation: Any) -> list[str]:
    return [choice for kind in _parts(annotation)[0] if get_origin(kind) is Literal for choice in get_args(kind)]


def _is_storable(text: str) -> bool:
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:  # the command line contained bytes that are not UTF-8
        return False


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _explanations(kind: type) -> dict[str, str]:
    """Return the strings below the fields of a class, by field name."""
    [definition] = ast.parse(inspect.cleandoc(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)
    pairs = zip(definition.body, definition.body[1:], strict=False)
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairs
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }
