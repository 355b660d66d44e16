"""The copy task: the target equals the source. It is the simplest task for an encoder–decoder.

>>> copy_pairs(2, symbols=5, shortest=3, longest=4, seed=1)[0].source
'5 5 2'
"""

import random

from glassformer.corpus.tasks.example import Example, Task
from glassformer.errors import ConfigError

__all__ = ["copy_pairs", "copy_task"]


def copy_pairs(count: int, *, symbols: int = 10, shortest: int = 10, longest: int = 10, seed: int = 1) -> list[Example]:
    """Return `count` different sequences of the symbols "1" … `symbols`; each sequence is its own target.

    A sequence has `shortest` to `longest` symbols.

    Raises:
        ConfigError: `count` is more than half of all possible sequences, or a size is impossible.
    """
    _check_copy(count, symbols, shortest, longest)
    draw = random.Random(f"copy {seed}").random
    sources: dict[str, None] = {}
    while len(sources) < count:
        length = shortest + int(draw() * (longest - shortest + 1))
        sources[" ".join(str(1 + int(draw() * symbols)) for _ in range(length))] = None
    return [
        Example(source=source, target=source, kind="copy", origins=tuple(1 << i for i in range(len(source.split()))))
        for source in sources
    ]


def copy_task(
    seed: int = 1, *, train: int = 20_000, valid: int = 500, test: int = 1_000, symbols: int = 10, length: int = 10
) -> Task:
    """Return the copy task with three splits that share no sequence."""
    pairs = copy_pairs(train + valid + test, symbols=symbols, shortest=length, longest=length, seed=seed)
    return Task(
        splits={"train": pairs[valid + test :], "valid": pairs[:valid], "test": pairs[valid : valid + test]},
    )


def _check_copy(count: int, symbols: int, shortest: int, longest: int) -> None:
    if symbols < 1 or shortest < 1 or longest < shortest:
        raise ConfigError(
            f"copy task: expected symbols ≥ 1 and 1 ≤ shortest ≤ longest, "
            f"got symbols {symbols}, shortest {shortest}, longest {longest}"
        )
    possible = sum(symbols**length for length in range(shortest, longest + 1))
    if not 0 <= 2 * count <= possible:
        raise ConfigError(
            f"copy task: expected at most half of the {possible} possible sequences, got {count}; "
            "use more symbols or greater lengths"
        )
