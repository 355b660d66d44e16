"""The reasons for which a request is refused."""

import math
from collections.abc import Mapping

from glassformer.errors import shortened
from glassformer.serving.log import ServiceLog
from glassformer.serving.metrics import Counters
from glassformer.system.processes import place_of

__all__ = ["BUSY_SECONDS", "RequestError", "busy", "failed", "too_many"]

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


def failed(error: Exception, log: ServiceLog, metrics: Counters, **entry: object) -> RequestError:
    """Log and count an unexpected error; return the refusal (500) of the request that it ended.

    The error's message may quote a text, so it is only logged if the log has texts, and the client is not told.
    """
    kind = type(error).__name__
    message = {"message": shortened(str(error))} if log.has_texts else {}
    log.write(event="failed", **entry, error=kind, at=place_of(error), **message)
    metrics.failed.labels(kind).inc()
    return RequestError(500, "an error in the service ended this request: the log of the service has the reason")
