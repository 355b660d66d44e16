"""JSON files that say in which format they are written."""

import json
from pathlib import Path
from typing import Any

from glassformer.errors import CheckpointError, CheckpointVersionError

__all__ = ["FORMAT_VERSION", "read_json", "write_json"]

FORMAT_VERSION = 1


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write `content` and the format's version as UTF-8 JSON that a person can read."""
    text = json.dumps({"format_version": FORMAT_VERSION, **content}, ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def read_json(path: Path) -> dict[str, Any]:
    """Return what `write_json` wrote there.

    Raises:
        CheckpointError: the file is missing or is no JSON object with a format version.
        CheckpointVersionError: a newer glassformer wrote it.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}): save the run's tokenizers again") from error
    version = content.get("format_version") if isinstance(content, dict) else None
    if not isinstance(version, int):
        raise CheckpointError(f"{path}: expected a JSON object with a format_version, got none: is it the right file?")
    if version > FORMAT_VERSION:
        raise CheckpointVersionError(
            f"{path} has format version {version}, this glassformer reads up to {FORMAT_VERSION}: upgrade glassformer"
        )
    return dict(content)
