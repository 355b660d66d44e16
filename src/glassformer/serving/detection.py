"""Detects which of the served languages a text is in, if the package lingua-language-detector is installed."""

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from glassformer.text.languages import primary

__all__ = ["DetectedLanguage", "detected_languages", "has_detector"]

READ_CHARACTERS = 2000
"""Maximum number of characters that the detector reads; more characters take longer and change little."""


class DetectedLanguage(TypedDict):
    """A language that a text may be in."""

    confidence: Annotated[float, Field(description="How sure the detector is, in whole percent, such as 92.0")]
    language: str


def has_detector() -> bool:
    """Return whether a detector is installed."""
    return find_spec("lingua") is not None


def detected_languages(text: str, served: Sequence[str]) -> list[DetectedLanguage]:
    """Return the served languages that a text may be in, the most probable first.

    The list is empty if the text gives no clue, if the detector knows fewer than two of the served languages, or if no
    detector is installed. If several codes of the same language are served, such as zh-Hans and zh-Hant, the first code
    is returned.
    """
    detector, codes = _detector(tuple(served))
    if detector is None:
        return []
    values = detector.compute_language_confidence_values(text[:READ_CHARACTERS])
    return [
        # LibreTranslate's form: a whole number with a decimal point
        {"confidence": float(round(100 * one.value)), "language": codes[one.language]}
        for one in values
        if one.value > 0
    ]


@cache
def _detector(served: tuple[str, ...]) -> tuple[Any, dict[Any, str]]:
    """Return a detector for the served languages (None if no detector can be made), and the code of each language."""
    try:
        import lingua
    except ImportError:
        return None, {}
    languages = {one.iso_code_639_1.name.lower(): one for one in lingua.Language.all()}
    codes = {languages[primary(code)]: code for code in reversed(served) if primary(code) in languages}
    if len(codes) < 2:
        return None, {}
    return lingua.LanguageDetectorBuilder.from_languages(*codes).build(), codes
