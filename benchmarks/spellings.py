"""Write English spellings without pronunciations: `python -m benchmarks.spellings --without FILES --output words.txt`.

First names and surnames come from the package `names` (MIT; with the lists of the US census of 1990). Further words
come from `wordfreq` (Apache 2.0; data CC BY-SA), most frequent words first. Install both: `pip install names wordfreq`.
Only words of 3 to 18 letters and apostrophes are written. Words in FILES (TSV, with the word in the first column) are
left out.
"""

import argparse
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.resources import files
from itertools import chain, islice
from pathlib import Path

from benchmarks.command import as_command
from glassformer.corpus.files import opened

WORD = re.compile(r"[a-z]{2}[a-z']{1,16}")
LISTS = "dist.male.first", "dist.female.first", "dist.all.last"


def names() -> Iterator[str]:
    """Yield the names of the census, file by file, most frequent names first."""
    for name in LISTS:
        for line in files("names").joinpath(name).read_text("utf-8").splitlines():
            yield line.split()[0].lower()


def words() -> Iterator[str]:
    """Yield the words of wordfreq's large list, most frequent words first."""
    yield from import_module("wordfreq").iter_wordlist("en", wordlist="large")  # installed for this benchmark only


def known(paths: Iterable[Path]) -> set[str]:
    """Return the words of TSV files."""
    found = set()
    for path in paths:
        with opened(str(path)) as file:
            found |= {line.split("\t")[0] for line in file.read().decode("utf-8").splitlines()}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without", type=Path, nargs="*", default=[], help="TSV files whose words are left out")
    parser.add_argument("--words", type=int, default=60_000, help="number of words besides names")
    parser.add_argument("--output", type=Path, required=True, help="file to write")
    given = parser.parse_args()
    old = known(given.without)
    named = dict.fromkeys(one for one in names() if WORD.fullmatch(one) and one not in old)
    more = dict.fromkeys(one for one in words() if WORD.fullmatch(one) and one not in old and one not in named)
    given.output.write_text("".join(f"{one}\n" for one in chain(named, islice(more, given.words))), encoding="utf-8")
    print(f"{len(named):,} names and {min(len(more), given.words):,} other words: {given.output}")


if __name__ == "__main__":
    as_command(main)
