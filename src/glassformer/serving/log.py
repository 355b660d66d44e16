"""The log of the service: a line of JSON for each request, and for each process that ended."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TextIO

__all__ = ["ServiceLog"]


@dataclass(frozen=True, slots=True)
class ServiceLog:
    """A log file with one JSON object per line; without a file, nothing is logged."""

    file: TextIO | None = None
    has_texts: bool = False
    """Whether to log the texts of requests as well."""

    def write(self, **entry: Any) -> None:
        """Write an entry with the current time."""
        if self.file is None:
            return
        moment = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.file.write(json.dumps({"time": moment, **entry}, ensure_ascii=False) + "\n")
        self.file.flush()
