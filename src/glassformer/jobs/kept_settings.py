"""Compare a folder's stored settings with the settings of a later command, which is refused if they differ."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from glassformer.built_in import run_folder
from glassformer.bundle import WEIGHTS
from glassformer.errors import CheckpointError, quoted

__all__ = ["difference_of_settings", "stored_weights"]


def difference_of_settings(there: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """Return the first difference between a folder's settings and a command's settings, in words; "" if none."""
    for name, value in settings.items():
        if there.get(name) != value:
            # lists hold hashes and sizes, which would not help the reader of an error
            if list in map(type, (value, there.get(name))):
                return f"different {name}"
            return f"{name} = {quoted(there.get(name))}, not {quoted(value)}"
    return ""


def stored_weights(run: Path) -> Path:
    """Return the file with the weights of a run, or of an export for CTranslate2.

    Raises:
        CheckpointError: the folder has no such file.
    """
    run = run_folder(run)
    for path in (run / WEIGHTS, run / "model.bin"):
        if path.exists():
            return path
    raise CheckpointError(
        f"{run / WEIGHTS} does not exist: train the run to its first validation, or restore the file from a copy"
    )
