"""The log of the service: a line of JSON for each request, and for each process that ended."""

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import TextIOBase
from typing import Any, TextIO

__all__ = ["ServiceLog"]


@dataclass(frozen=True, slots=True)
class ServiceLog:
    """A log file with one JSON object per line; without a file, nothing is logged."""

    file: TextIO | TextIOBase | None = None
    has_texts: bool = False
    """Whether to log the texts of requests as well."""

    def write(self, **entry: Any) -> None:
        """Write an entry with the current time."""
        if self.file is None:
            return
        moment = datetime.now(UTC).isoformat(timespec="milliseconds")
        with suppress(OSError, ValueError):  # a full disk or a closed terminal must not end the service
            self.file.write(json.dumps({"time": moment, **entry}, ensure_ascii=False) + "\n")
            self.file.flush()
