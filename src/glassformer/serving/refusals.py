"""The reasons for which a request is refused."""

import math
from collections.abc import Mapping

__all__ = ["BUSY_SECONDS", "RequestError", "busy", "too_many"]

BUSY_SECONDS = 2
"""Seconds after which a client may try again if the service is busy or a model is being restarted."""


class RequestError(Exception):
    """The refusal of a request: an HTTP status, a sentence for the client, and headers."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status, self.headers = status, dict(headers or {})
        self.text = text.encode("utf-8", "replace").decode()
        """The sentence, with "?" in place of unpaired surrogates, which an answer cannot contain."""

    def __reduce__(self) -> tuple[type["RequestError"], tuple[int, str, dict[str, str]]]:
        """Return how to unpickle the refusal, in the process that answers the request."""
        return RequestError, (self.status, self.text, self.headers)


def busy(why: str) -> RequestError:
    """Return the refusal (503) of a request that may succeed if it is sent again soon."""
    return RequestError(503, why, {"Retry-After": str(BUSY_SECONDS)})


def too_many(why: str, seconds: float) -> RequestError:
    """Return the refusal (429) of a client that has sent too much, and may send again after `seconds` seconds."""
    return RequestError(429, why, {"Retry-After": str(max(1, math.ceil(seconds)))})
