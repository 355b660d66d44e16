"""Make damaged and malicious files, and check how an import handles such files."""

import random
import resource
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from glassformer.errors import CheckpointError, ConfigError, VocabularyError

MEMORY = 1 << 28
"""Bytes that an import of a tiny model may allocate."""
NUMBERS = (0, 1, 7, 255, 65_535, 1 << 31, (1 << 32) - 1)


def damaged(content: bytes, count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield variants of a file: cut, with changed, removed or repeated bytes, or with replaced numbers."""
    chance = random.Random(seed)
    for _ in range(count):
        # the minimum of two numbers favours the beginning
        at = min(chance.randrange(len(content)), chance.randrange(len(content)))
        match chance.randrange(6):
            case 0:
                yield f"cut at {at}", content[:at]
            case 1:
                yield f"bit {at}", content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]
            case 2:
                yield f"byte {at}", content[:at] + chance.randbytes(1) + content[at + 1 :]
            case 3:
                number = chance.choice(NUMBERS)
                yield f"{number} at {at}", content[:at] + struct.pack("<I", number) + content[at + 4 :]
            case 4:
                end = at + chance.randrange(1, 40)
                yield f"without {at} to {end}", content[:at] + content[end:]
            case _:
                end = at + chance.randrange(1, 40)
                yield f"twice {at} to {end}", content[:end] + content[at:end] + content[end:]


@contextmanager
def little_memory() -> Iterator[None]:
    """Let this process allocate only `MEMORY` more bytes; a larger allocation raises MemoryError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def outcome(read: Callable[[Path], object], run: Path) -> str:
    """Import with `read` into the folder `run`; return the error's sentence, or "" if the import succeeded.

    An import must leave behind either a complete run or nothing, and an error must be one short sentence of
    glassformer.
    """
    before = {*run.parent.iterdir()}
    try:
        read(run)
    except (CheckpointError, ConfigError, VocabularyError) as error:
        sentence = str(error)
        assert sentence
        assert "\n" not in sentence
        assert len(sentence) < 1000, sentence
        assert {*run.parent.iterdir()} == before
        return sentence
    assert (run / "model.safetensors").exists()
    shutil.rmtree(run)
    return ""
