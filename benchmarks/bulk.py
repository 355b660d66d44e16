"""Bulk translation of nasty lines: the same bytes by one process, by several, and by Ray, despite kills; its overhead.

    python -m benchmarks.bulk RUN [--lines 2000000] [--kills 30] [--processes 4]

RUN is a run or an export, such as the demo's exported to CTranslate2. Every part is translated by greedy search.

1. `translate FILE` is timed, and one process translates the same file in parts: the ratio is the overhead of the parts.
2. Several processes translate the shares of the parts at the same time (`--part I/N`, by `xargs -P`).
3. Processes that translate all shares are killed (SIGKILL) at random moments, and started again.
4. With `--ray`, an actor pool on two local nodes does the same, and actors, nodes and the driver are killed.

All outputs must equal those of `translate FILE` byte for byte. Parts that were complete before a kill must not be
written again. `--finish` must prove each folder.
"""

import random
from collections.abc import Iterator
from pathlib import Path

__all__ = ["contents", "nasty_lines", "outputs", "write_nasty"]

WORDS = [
    "the",
    "a",
    "black",
    "white",
    "big",
    "small",
    "tired",
    "cat",
    "dog",
    "animal",
    "bird",
    "horse",
    "sat",
    "slept",
    "crossed",
    "on",
    "in",
    "under",
    "couch",
    "park",
    "street",
]
NASTY = (
    b"",
    b"   ",
    b"\xe3\x80\x80",
    b"caf\xc3",
    b"\xff\xfe the cat",
    "the\u2028cat\u0085sat\x0con the couch".encode(),
    b"the cat\rsat",
    "the 日本 zebra 🦓".encode(),
    b"\x00\x01 the cat",
    b"\xef\xbb\xbfthe cat",
)
"""Lines that are blank, undecodable, hold other line ends than a line feed, or characters of no vocabulary."""


def nasty_lines(count: int, seed: int = 1, words: "list[str]" = WORDS) -> Iterator[bytes]:
    """Yield lines with their ends: sentences, nasty lines, over-long lines; the last one has no end."""
    chance = random.Random(seed)
    for number in range(1, count + 1):
        kind = chance.random()
        if kind < 0.001:
            line = b"the cat " * chance.randint(600, 3000)  # more tokens than a source may have
        elif kind < 0.05:
            line = chance.choice(NASTY)
        else:
            line = " ".join(chance.choices(words, k=chance.randint(1, 9))).encode()
        yield line + (b"" if number == count else b"\r\n" if chance.random() < 0.1 else b"\n")


def write_nasty(path: Path, count: int, seed: int = 1, words: "list[str]" = WORDS) -> None:
    """Write nasty lines into a file that does not end with a line end."""
    with path.open("wb") as file:
        file.writelines(nasty_lines(count, seed, words))


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of the parts by name, without temporary files."""
    return {path.name: path.read_bytes() for path in (folder / "parts").iterdir() if not path.name.startswith(".")}


def outputs(folder: Path) -> bytes:
    """Return the outputs of all parts, one after the other."""
    return b"".join(path.read_bytes() for path in sorted((folder / "parts").glob("*.txt")))
