"""Bounds what a connection keeps in memory, and how long its bytes are parsed at once."""

from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["BoundedProtocol"]

MOST_UNFINISHED = 65_536
"""Maximum number of bytes of a request's head, and of anything else that the parser keeps until its end has arrived."""
SMALL = 512
"""Number of bytes below which a chunk of a body (`Transfer-Encoding: chunked`) is small."""
MOST_SMALL = 250
"""Number of empty chunks that a body may have; smaller chunks than `SMALL` count in part, larger ones restore some."""
REFUSAL = f"Too many small chunks: send chunks of {SMALL} bytes or more, or the whole body with its Content-Length."


class _Connection(h11.Connection):
    """A connection whose client may send few small chunks, because h11 takes some 10 µs for each."""

    spare: float = MOST_SMALL
    """Number of empty chunks that may still come."""

    def next_event(self) -> Any:
        """Return the next event of the client.

        Raises:
            RemoteProtocolError: it is not HTTP, or a body has too many small chunks.
        """
        event = super().next_event()
        if isinstance(event, h11.Request):
            self.spare = MOST_SMALL
        elif isinstance(event, h11.Data):
            self.spare = min(MOST_SMALL, self.spare + len(event.data) / SMALL - event.chunk_start)
            if self.spare < 0:
                raise h11.RemoteProtocolError(REFUSAL)
        return event


class BoundedProtocol(H11Protocol):
    """uvicorn's protocol, except that a body in many small chunks is refused.

    All chunks that have arrived are parsed before the application sees the first, so that no application could refuse
    them in time.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.conn: _Connection = _Connection(h11.SERVER, MOST_UNFINISHED)

    def send_400_response(self, msg: str) -> None:
        """Refuse what the client sends, and end the connection."""
        if self.cycle:
            self.cycle.disconnected = True  # keeps the application from sending a second answer
        super().send_400_response(REFUSAL if self.conn.spare < 0 else msg)
