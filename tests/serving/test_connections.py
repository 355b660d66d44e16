"""Bodies in chunks: small chunks are counted, whatever is between them, and the count restarts with each request."""

import h11
import pytest

from glassformer.serving.connections import MOST_SMALL, MOST_UNFINISHED, SMALL, _Connection

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


def read(connection: h11.Connection, *sizes: int) -> int:
    """Return the number of bytes of a body in chunks of these sizes."""
    chunks = b"".join(b"%x\r\n%b\r\n" % (size, b"a" * size) for size in sizes)
    connection.receive_data(HEAD + chunks + b"0\r\n\r\n")
    count = 0
    while not isinstance(event := connection.next_event(), h11.EndOfMessage):
        count += len(event.data) if isinstance(event, h11.Data) else 0
    return count


def connection() -> h11.Connection:
    return _Connection(h11.SERVER, MOST_UNFINISHED)


@pytest.mark.parametrize(
    "sizes",
    [
        [1] * MOST_SMALL,
        [SMALL] * 4 * MOST_SMALL,
        [SMALL // 2] * (2 * MOST_SMALL - 1),
        [*[1] * (MOST_SMALL - 1), SMALL * MOST_SMALL, *[1] * (MOST_SMALL - 1)],
        [SMALL * MOST_SMALL * 4, *[1] * MOST_SMALL],
    ],
)
def test_some_small_chunks_and_any_large_ones_are_read(sizes: list[int]) -> None:
    assert read(connection(), *sizes) == sum(sizes)


@pytest.mark.parametrize(
    "sizes",
    [
        [1] * (MOST_SMALL + 2),
        [SMALL // 2] * (2 * MOST_SMALL + 3),
        [*[SMALL] * MOST_SMALL, *[1] * (MOST_SMALL + 2)],
        [SMALL * MOST_SMALL * 4, *[1] * (MOST_SMALL + 2)],
    ],
)
def test_more_small_chunks_are_refused(sizes: list[int]) -> None:
    with pytest.raises(h11.RemoteProtocolError, match="Too many small chunks"):
        read(connection(), *sizes)


def test_each_request_of_a_connection_may_have_small_chunks() -> None:
    one = connection()
    for _ in range(3):
        assert read(one, *[1] * MOST_SMALL) == MOST_SMALL
        one.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
        one.send(h11.EndOfMessage())
        one.start_next_cycle()
