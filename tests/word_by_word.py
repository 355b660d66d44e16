"""A language whose sentences are translated word by word, which a small model learns in seconds."""

import os
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

WORDS = {"the": "le", "cat": "chat", "dog": "chien", "sees": "voit", "and": "et", "a": "un", "big": "grand"}
"""Each word and its translation."""
SEED = int(os.environ.get("TOY_SEED", "0"))
"""A number that is added to the seeds of the small models that tests train; tests must pass with any number."""
MODEL = f"""
[run]
seed = {1 + SEED}
[tokenizer]
kind = "words"
joint = false
[model]
preset = "tiny"
d_model = 32
heads = 4
d_ff = 48
"""
"""The part of a configuration with the seed, the tokenizer and the model."""


def pairs(
    count: int, seed: int, shortest: int = 2, longest: int = 6, words: Mapping[str, str] = WORDS
) -> list[tuple[str, str]]:
    """Return sentences of `shortest` to `longest` random words with their translations."""
    chance = random.Random(seed)
    drawn = [chance.choices(list(words), k=chance.randint(shortest, longest)) for _ in range(count)]
    return [(" ".join(sentence), " ".join(words[word] for word in sentence)) for sentence in drawn]


def write_sides(folder: Path, name: str, pairs: Sequence[tuple[str, str]]) -> None:
    """Write pairs as two files of a folder: name.en and name.fr."""
    for side, ending in enumerate(("en", "fr")):
        (folder / f"{name}.{ending}").write_text("".join(f"{pair[side]}\n" for pair in pairs))


def tsv(pairs: list[tuple[str, str]]) -> str:
    """Return the pairs as the text of a TSV file."""
    return "".join(f"{source}\t{target}\n" for source, target in pairs)
