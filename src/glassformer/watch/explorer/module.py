"""The explorer's web module, its style sheet and its texts, which every page contains.

`make web` builds the module and the style sheet from `web/` of the repository. The built files are committed, so that
users do not need Node.
"""

import json
from functools import lru_cache
from importlib.resources import files

from glassformer.model.points import descriptions

__all__ = ["explorer_module", "strings", "styles"]

LANGUAGES = ("en", "zh")


@lru_cache
def explorer_module() -> str:
    """Return the whole explorer as one ES module without imports."""
    return _read("explorer.js")


@lru_cache
def styles() -> str:
    """Return the style sheet of the explorer."""
    return _read("explorer.css")


@lru_cache
def strings() -> dict[str, dict[str, str]]:
    """Return every text of the page, by language and key.

    The English sentences about named points come from `model/points.py`, and the Chinese sentences from `strings.json`.
    A point without a Chinese sentence is described in English.
    """
    words = {f"point.{name}": [about] * len(LANGUAGES) for name, about in descriptions().items()}
    for key, texts in json.loads(_read("strings.json")).items():
        words[key] = [words[key][0], texts] if isinstance(texts, str) else texts
    return {language: {key: texts[at] for key, texts in words.items()} for at, language in enumerate(LANGUAGES)}


def _read(name: str) -> str:
    return (files("glassformer.watch.explorer") / name).read_text(encoding="utf-8")
