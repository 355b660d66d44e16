"""Compare the corpus doctor's speed with bare reading: `python -m benchmarks.doctor`.

"bare" reads the lines of both sides, decodes the lines and splits them at white space, which is the least work of any
preparation. "bare" and the doctor read the same generated files in one thread. They take turns, so noise of the machine
affects both equally. CPU time is measured, so the load of the machine has little effect. Prints medians; with --memory
N, prints instead the time and memory of a new process for N pairs.
"""

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.command import as_command

ROUNDS = 7
ACCENTS = "äöüßéèçñ"


def words(chosen: random.Random, count: int) -> list[str]:
    letters = "etaoinshrdlucmfwypvbgk"
    made: set[str] = set()
    while len(made) < count:
        word = "".join(chosen.choices(letters, k=min(2 + int(chosen.expovariate(0.25)), 14)))
        made.add(word + chosen.choice(ACCENTS) if chosen.random() < 0.06 else word)
    return sorted(made)


def phrase(chosen: random.Random, vocabulary: list[str], length: int) -> str:
    # Cubing the random number makes some words far more frequent than others.
    return " ".join(vocabulary[int(len(vocabulary) * chosen.random() ** 3)] for _ in range(length))


def generate(folder: Path, pairs: int, seed: int = 1) -> tuple[Path, Path]:
    """Write a corpus of pairs of generated phrases, about twelve words; each hundredth pair repeats the pair before."""
    chosen = random.Random(seed)
    vocabularies = [words(chosen, 30_000) for _ in range(2)]
    lengths = [chosen.randint(3, 9) for _ in range(20_000)]
    phrases = [[phrase(chosen, one, length) for length in lengths] for one in vocabularies]
    paths = folder / "source", folder / "target"
    with paths[0].open("w", encoding="utf-8") as source, paths[1].open("w", encoding="utf-8") as target:
        for number in range(pairs):
            if number % 100 or not number:
                first, second = chosen.choices(range(len(lengths)), k=2)
            source.write(f"{phrases[0][first]} {phrases[0][second]}.\n")
            target.write(f"{phrases[1][first]} {phrases[1][second]}.\n")
    return paths


def bare(source: Path, target: Path) -> None:
    for path in (source, target):
        with path.open("rb") as file:
            for line in file:
                line.decode().split()


def checked(source: Path, target: Path) -> int:
    from glassformer.corpus.cleaning import CleaningConfig
    from glassformer.corpus.doctor.examine import examine
    from glassformer.corpus.readers import Corpus

    return examine(Corpus((str(source),), (str(target),)), CleaningConfig()).findings.kept


def seconds(call: Callable[..., object], *arguments: Path) -> float:
    begun = time.process_time()
    call(*arguments)
    return time.process_time() - begun


def speed(pairs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = generate(Path(folder), pairs)
        checked(*files)
        taken = [(seconds(bare, *files), seconds(checked, *files)) for _ in range(ROUNDS)]
    bare_time, check_time = (median(times) for times in zip(*taken, strict=True))
    ratios = [one / other for one, other in taken]
    ratio, least = median(ratios), min(ratios)
    print(f"{pairs:,} pairs, median of {ROUNDS}")
    print(f"bare reading, decoding, splitting  {bare_time:7.2f} s   {pairs / bare_time:10,.0f} pairs/s")
    print(f"the corpus doctor                  {check_time:7.2f} s   {pairs / check_time:10,.0f} pairs/s")
    print(f"speed of the doctor / bare         {100 * ratio:7.0f} %  (at least {100 * least:.0f} % in a round)")


def memory(pairs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = generate(Path(folder), pairs)
        program = "import sys; from benchmarks.doctor import measured; measured(*sys.argv[1:])"
        subprocess.run([sys.executable, "-c", program, *map(str, files)], check=True)


def measured(source: str, target: str) -> None:
    time_taken = seconds(checked, Path(source), Path(target))
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{time_taken:.1f} s, at most {megabytes:,.0f} MB resident")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000, help="number of generated pairs [default: %(default)s]")
    parser.add_argument("--memory", type=int, metavar="N", help="print time and memory for N pairs instead")
    given = parser.parse_args()
    if given.memory:
        memory(given.memory)
    else:
        speed(given.pairs)


if __name__ == "__main__":
    as_command(main)
