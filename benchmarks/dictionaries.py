"""Give a dictionary's pronunciations to a model of another dictionary's words, as a part of its source texts.

python -m benchmarks.dictionaries --train TRAIN --dev DEV --second DICTIONARY --output FOLDER

The files are TSV, the word first. A pronunciation of the second dictionary follows the word and a bar:
`abbey | AE B IY`. The folder gets train.tsv, with each pair of TRAIN as it is, and once more with each pronunciation of
the second dictionary; dev.tsv, with the first of these pronunciations; and two parts of it: inside.tsv, the words of
the second dictionary, and outside.tsv, the others. No word of DEV may be in TRAIN.
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
    """Return each pronunciation with its word."""
    return [(word, target) for word, targets in dictionary.items() for target in targets]


def with_second(pairs: Iterable[Pair], second: Dictionary, most: int | None = None) -> list[Pair]:
    """Return the pairs whose word is in the second dictionary, with up to `most` pronunciations, each in a pair."""
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
