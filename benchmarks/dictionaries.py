"""Add the pronunciations of a second dictionary to the source texts of a pronunciation corpus.

python -m benchmarks.dictionaries --train TRAIN --dev DEV --second DICTIONARY --output FOLDER

The files are TSV files with the word in the first column. A source text is a word, a bar and a pronunciation from the
second dictionary: `abbey | AE B IY`. The command writes four files into FOLDER. train.tsv has each pair of TRAIN
unchanged, and again with each pronunciation from the second dictionary. dev.tsv has the words of DEV with their first
pronunciation from the second dictionary. dev.tsv is also split into inside.tsv, the words that the second dictionary
has, and outside.tsv, the other words. No word of DEV may be in TRAIN.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path

from benchmarks.command import as_command
from glassformer.corpus.readers import Corpus
from glassformer.errors import DataError
from glassformer.evaluation.items import read_items

Pair = tuple[str, str]
Dictionary = dict[str, tuple[str, ...]]


def read(path: Path) -> Dictionary:
    """Return the words of a file, each with its pronunciations."""
    items = read_items(Corpus.of(str(path)))
    return dict(zip(items.sources, items.references, strict=True))


def pairs_of(dictionary: Dictionary) -> list[Pair]:
    """Return a (word, pronunciation) pair for each pronunciation in a dictionary."""
    return [(word, target) for word, targets in dictionary.items() for target in targets]


def with_second(pairs: Iterable[Pair], second: Dictionary, most: int | None = None) -> list[Pair]:
    """Return the pairs whose word is in the second dictionary, once for each of its first `most` pronunciations."""
    return [(f"{word} | {other}", target) for word, target in pairs for other in second.get(word, ())[:most]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True, help="words to learn")
    parser.add_argument("--dev", type=Path, required=True, help="words to pronounce")
    parser.add_argument("--second", type=Path, required=True, help="the dictionary with further pronunciations")
    parser.add_argument("--output", type=Path, required=True, help="folder to write")
    given = parser.parse_args()
    known, asked, second = (read(path) for path in (given.train, given.dev, given.second))
    if both := known.keys() & asked.keys():
        raise DataError(f"{given.dev}: expected words that are not in {given.train}, got {sorted(both)[:3]}")
    train, dev = pairs_of(known), pairs_of(asked)
    inside, outside = with_second(dev, second, most=1), [pair for pair in dev if pair[0] not in second]
    found = {
        "train": [*train, *with_second(train, second)],
        "dev": [*inside, *outside],
        "inside": inside,
        "outside": outside,
    }
    given.output.mkdir(parents=True, exist_ok=True)
    for name, pairs in found.items():
        text = "".join(f"{source}\t{target}\n" for source, target in pairs)
        given.output.joinpath(f"{name}.tsv").write_text(text, encoding="utf-8")
        print(f"{name}.tsv: {len(pairs):,} pairs")


if __name__ == "__main__":
    as_command(main)
