"""The model in the package, which every command and function that takes a run accepts under the name `demo`.

Nothing is ever written into the folder of this model. Conversions go to the user's cache folder, and commands that
write into a run refuse this model.
"""

import json
import sys
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from glassformer.errors import ConfigError

__all__ = [
    "BUILT_IN",
    "ORIGIN_FILE",
    "built_in_scores",
    "cache_folder",
    "is_built_in",
    "refuse_built_in",
    "run_folder",
    "trained_demo",
]

BUILT_IN = "demo"
"""The name of the model in the package."""
ORIGIN_FILE = "built_in.json"
"""The file in the model's folder with its training, scores and licence."""

_KNOWS = "demo: the model in the package, which knows about 600 English words; `glassformer demo` trains it again"
_HIDDEN = "demo: the run in ./demo, which hides the model in the package; write ./demo to name it alone"


def run_folder(run: str | Path) -> Path:
    """Return the folder of a run; the name `demo` means the model in the package, unless the folder ./demo is a run.

    If the name is `demo`, a line on stderr says once per process whether the package's model or ./demo is used.
    """
    if str(run) != BUILT_IN:
        return Path(run)
    if Path(BUILT_IN, "config.toml").is_file():
        _say(_HIDDEN)
        return Path(run)
    _say(_KNOWS)
    return _folder()


def trained_demo(run: str | Path) -> str | Path:
    """Return `run` if `glassformer demo` has finished in this folder, and otherwise the name `demo`."""
    explorer_page = Path(run) / "explorer.html"  # `glassformer demo` writes it last
    return run if explorer_page.is_file() else BUILT_IN


def is_built_in(folder: Path) -> bool:
    """Return whether a folder is the folder of the model in the package."""
    return folder.resolve() == _folder().resolve()


def refuse_built_in(run: str | Path, what: str) -> None:
    """Refuse the model in the package, for a command that reads training files or writes into the run.

    Raises:
        ConfigError: the run is the model in the package; the message begins with `what`, the command or option.
    """
    if is_built_in(run_folder(run)):
        raise ConfigError(
            f"{what}: expected a run that you have trained, got {BUILT_IN}, the model in the package, which has no "
            "training files and is never changed; train it by `glassformer demo`, and give runs/demo"
        )


def cache_folder(folder: Path) -> Path:
    """Return the folder for conversions of a run: the run's own, or the user's cache for the model in the package."""
    if not is_built_in(folder):
        return folder
    from platformdirs import user_cache_path

    return user_cache_path("glassformer") / BUILT_IN


def built_in_scores() -> dict[str, dict[str, Any]]:
    """Return the scores of the model in the package, by name of the split: sentences, exact, BLEU, minimal pairs."""
    content = json.loads((_folder() / ORIGIN_FILE).read_text(encoding="utf-8"))
    return {split["name"]: split for split in content["scores"]}


def _folder() -> Path:
    return Path(str(files("glassformer"))) / "models" / BUILT_IN


@cache
def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
