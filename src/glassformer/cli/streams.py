"""Standard input, output and error: replace closed streams, set the encoding, and read lines as they arrive."""

import os
import select
import stat
import sys
from collections.abc import Iterator
from io import TextIOWrapper

from glassformer.errors import ConfigError

__all__ = ["INTERRUPTED", "arriving_lines", "end_at_once", "flush_output", "is_terminal", "prepare_streams"]

CHUNK = 1 << 16
"""Number of bytes of standard input to read at a time."""
MOMENT = 0.02
"""Seconds to wait for more input, because `cat`, for example, needs a moment to refill an empty pipe."""
INTERRUPTED = 130
"""Exit status after Ctrl-C, as in shells: 128 + SIGINT."""


def prepare_streams() -> None:
    """Make sure that the standard streams are open, and use UTF-8 under every locale.

    A closed standard error is replaced by the null device, which discards messages. Otherwise, a file that is opened
    later could get the number of standard error and receive messages by mistake. Closed standard input is also
    replaced.

    Raises:
        ConfigError: standard output is closed, so that everything printed would be lost.
    """
    missing = [number for number in range(3) if not _is_open(number)]
    for _ in missing:
        os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (open until the process ends)
    if 1 in missing:
        raise ConfigError("standard output is closed; redirect it to a file, or to /dev/null to discard it")
    for stream, errors in ((sys.stdout, "surrogateescape"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)
    if not os.environ.get("COLUMNS", "80").isdecimal() or os.environ.get("COLUMNS") == "0":
        # some terminals report 0 columns if the width is unknown, which would leave no room for text
        del os.environ["COLUMNS"]


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def arriving_lines() -> Iterator[bytes | None]:
    """Return an iterator over the lines of standard input as they arrive; None means that no line has arrived.

    Text after the last line end also counts as a line. If standard input is a regular file, None never occurs.

    Raises:
        ConfigError: standard input is closed.
    """
    if sys.stdin is None:
        raise ConfigError("standard input is closed; give a FILE, or redirect standard input")
    return _arriving(sys.stdin.fileno())


def _arriving(descriptor: int) -> Iterator[bytes | None]:
    parts: list[bytes] = []
    waits = not stat.S_ISREG(os.fstat(descriptor).st_mode)
    while True:
        if waits and not select.select([descriptor], [], [], MOMENT)[0]:
            yield None
        chunk = os.read(descriptor, CHUNK)
        head, *lines = chunk.split(b"\n")
        parts.append(head)
        for line in lines:
            yield b"".join(parts) + b"\n"
            parts = [line]
        if not chunk:
            break
    if last := b"".join(parts):
        yield last


def is_terminal() -> bool:
    """Return whether standard input is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


def flush_output() -> None:
    """Write the buffered output.

    Raises:
        OSError: the output could not be written, for example because the disk is full.
    """
    try:
        sys.stdout.flush()
    except OSError:
        # prevents a second attempt to write the remaining text at exit
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        raise


def end_at_once() -> None:
    """End the process at once after Ctrl-C, because CTranslate2 would first finish all batches in its queue."""
    if "ctranslate2" in sys.modules:
        sys.stderr.flush()
        os._exit(INTERRUPTED)
