"""The served models, found by their languages."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from glassformer.errors import ConfigError
from glassformer.serving.process import ModelProcess
from glassformer.text.languages import primary

__all__ = ["LONG_CODES", "Models", "ServedModel", "code_of"]

LONG_CODES = {"pb": "pt-BR", "zh": "zh-Hans", "zh-cn": "zh-Hans", "zt": "zh-Hant", "zh-tw": "zh-Hant"}
"""LibreTranslate's long codes by its short ones, which requests may use, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """A model and its direction; languages are LibreTranslate's codes, which are BCP 47 tags."""

    source: str
    target: str
    process: ModelProcess
    beam_size: int
    """Number of hypotheses of the run's own search; alternatives may need more."""

    @property
    def name(self) -> str:
        """The direction, such as "en-fr"."""
        return self.process.name


class Models:
    """All models of the service; the first one of a direction serves it."""

    def __init__(self, models: Iterable[ServedModel]) -> None:
        self.all = tuple(models)
        directions = [(one.source.lower(), one.target.lower()) for one in self.all]
        for one, direction in zip(self.all, directions, strict=True):
            if directions.count(direction) > 1:
                raise ConfigError(f"two runs translate {one.name}: serve one of them, or declare other --languages")

    @property
    def is_ready(self) -> bool:
        """Whether all processes have loaded their models."""
        return all(one.process.is_ready for one in self.all)

    @cached_property
    def languages(self) -> dict[str, list[str]]:
        """Each language with the languages that it can be translated into, among them itself."""
        codes = dict.fromkeys(code for one in self.all for code in (one.source, one.target))
        return {code: sorted({code, *(one.target for one in self.all if one.source == code)}) for code in sorted(codes)}

    @property
    def sources(self) -> list[str]:
        """The languages that can be translated from, in the order of the runs."""
        return list(dict.fromkeys(one.source for one in self.all))

    @property
    def targets(self) -> list[str]:
        """The languages that can be translated into, in the order of the runs."""
        return list(dict.fromkeys(one.target for one in self.all))

    def code(self, given: str) -> str | None:
        """Return the served code that a client means, in any case and also as a short code; None if there is none."""
        wanted = code_of(given).lower()
        return next((code for code in self.languages if code.lower() == wanted), None)

    def loose_code(self, given: str, among: Iterable[str]) -> str | None:
        """Return the code among these that a client means, if need be of another region: "en" for EN-GB."""
        codes = list(among)
        wanted = code_of(given).lower()
        exact = next((code for code in codes if code.lower() == wanted), None)
        return exact or next((code for code in codes if primary(code) == primary(wanted)), None)

    def find(self, source: str, target: str) -> ServedModel | None:
        """Return the model of a direction."""
        return next((one for one in self.all if (one.source, one.target) == (source, target)), None)


def code_of(tag: str) -> str:
    """Return LibreTranslate's code of a language: long ("zh-Hans" for "zh"), with "-" for "_"."""
    tag = tag.strip().replace("_", "-")
    return LONG_CODES.get(tag.lower(), tag)
