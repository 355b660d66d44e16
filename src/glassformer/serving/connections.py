"""Bounds the memory of a connection, and the time for which its bytes are parsed without a pause."""

from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["BoundedProtocol"]

MOST_UNFINISHED = 65_536
"""Maximum number of bytes of a request's head, and of any other part that the parser keeps until the part is
complete."""
SMALL = 512
"""Number of bytes below which a chunk of a body (`Transfer-Encoding: chunked`) is small."""
MOST_SMALL = 250
"""Number of empty chunks that a body may have. A chunk smaller than `SMALL` counts in part; a larger chunk increases
the number again."""
REFUSAL = f"Too many small chunks: send chunks of {SMALL} bytes or more, or the whole body with its Content-Length."


class _Connection(h11.Connection):
    """A connection that limits the number of small chunks, because h11 takes some 10 µs for each chunk."""

    spare: float = MOST_SMALL
    """Number of empty chunks that may still come."""

    def next_event(self) -> Any:
        """Return the next event of the client.

        Raises:
            RemoteProtocolError: the client does not send HTTP, or a body has too many small chunks.
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
    """uvicorn's protocol, except that it refuses a body in many small chunks.

    uvicorn parses all chunks that have arrived before the application sees the first chunk, so an application could not
    refuse them in time.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.conn: _Connection = _Connection(h11.SERVER, MOST_UNFINISHED)

    def send_400_response(self, msg: str) -> None:
        """Answer with status 400, and end the connection."""
        if self.cycle:
            self.cycle.disconnected = True  # keeps the application from sending a second answer
        super().send_400_response(REFUSAL if self.conn.spare < 0 else msg)
