"""The served models, found by their languages."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from glassformer.errors import ConfigError
from glassformer.serving.process import ModelProcess
from glassformer.serving.refusals import RequestError
from glassformer.text.languages import current, primary, script
from glassformer.translating.translation import Translation

__all__ = ["LONG_CODES", "Direction", "Models", "ServedModel", "code_of"]

LONG_CODES = {
    "pb": "pt-BR",
    **dict.fromkeys(("zh", "zh-cn", "zh-sg"), "zh-Hans"),
    **dict.fromkeys(("zt", "zh-tw", "zh-hk", "zh-mo"), "zh-Hant"),
}
"""LibreTranslate's long codes, by its short codes and by the codes of Chinese with a region. Requests may use all of
these codes."""


@runtime_checkable
class _Translates(Protocol):
    """An object that translates sentences from one language into another."""

    name: str

    @property
    def room(self) -> int: ...

    def full(self) -> RequestError: ...

    async def translate(self, texts: Sequence[str], options: Mapping[str, Any], /) -> list[Translation]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """A source and a target language (LibreTranslate's codes, which are BCP 47 tags), and their translator."""

    source: str
    target: str
    process: _Translates
    beam_size: int = 1
    """Beam size of the run's own search; alternatives may need a larger beam."""

    @property
    def name(self) -> str:
        """The direction, such as "en-fr"."""
        return self.process.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel(Direction):
    """A model, with its source and target language."""

    process: ModelProcess


class _Unchanged:
    """Takes the place of a model if source and target are the same language: it returns each text unchanged."""

    room = sys.maxsize

    def __init__(self, language: str) -> None:
        self.name = f"{language}-{language}"

    def full(self) -> RequestError:
        """Never called, because there is always room."""
        raise NotImplementedError

    async def translate(self, texts: Sequence[str], _: Mapping[str, Any], /) -> list[Translation]:
        return [Translation(text=text) for text in texts]


class Models:
    """All models of the service; no two models have the same direction."""

    def __init__(self, models: Iterable[ServedModel]) -> None:
        self.all = tuple(models)
        directions = [(one.source.lower(), one.target.lower()) for one in self.all]
        for one, direction in zip(self.all, directions, strict=True):
            if directions.count(direction) > 1:
                raise ConfigError(f"two runs translate {one.name}: serve one of them, or declare different --languages")

    @property
    def is_ready(self) -> bool:
        """Whether all processes have loaded their models."""
        return all(one.process.is_ready for one in self.all)

    @cached_property
    def languages(self) -> dict[str, list[str]]:
        """Each language with the languages into which it can be translated, including itself."""
        codes = dict.fromkeys(code for one in self.all for code in (one.source, one.target))
        return {code: sorted({code, *(one.target for one in self.all if one.source == code)}) for code in sorted(codes)}

    @property
    def sources(self) -> list[str]:
        """The source languages of all models, in the order of the runs."""
        return list(dict.fromkeys(one.source for one in self.all))

    @property
    def targets(self) -> list[str]:
        """The target languages of all models, in the order of the runs."""
        return list(dict.fromkeys(one.target for one in self.all))

    def code(self, given: str, among: Iterable[str] | None = None) -> str | None:
        """Return the served code that best fits the code `given`, possibly without its region, such as "fr" for fr-CA.

        `among` limits the choice. Case does not matter, and a short code stands for its long code. A code with a
        different script does not fit.
        """
        codes, wanted = [*(self.languages if among is None else among)], code_of(given).lower()
        fitting = [one for one in codes if primary(one) == primary(wanted) and script(wanted) in ("", script(one))]
        return min(fitting, key=lambda one: (one.lower() != wanted, len(one)), default=None)

    def within(self, language: str) -> Direction:
        """Return the direction from a language into itself, which leaves each text unchanged."""
        return Direction(source=language, target=language, process=_Unchanged(language))

    def find(self, source: str, target: str) -> Direction | None:
        """Return the direction from `source` to `target`, which may be equal; None if no model has this direction."""
        if source == target:
            return self.within(source)
        return next((one for one in self.all if (one.source, one.target) == (source, target)), None)


def code_of(tag: str) -> str:
    """Return LibreTranslate's code of a language, such as "zh-Hans" for "zh" and "he" for the old tag "iw"."""
    tag = current(tag.strip())
    return LONG_CODES.get(tag.lower(), tag)
