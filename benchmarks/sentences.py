"""Score runs on Multi30k's test sets: `python -m benchmarks.sentences SOURCE TARGET NAME=RUN … --data DIR`.

SOURCE and TARGET are languages, such as `en de`. Each RUN is a finished run, or a file written by `glassformer tune`.
Choose decoding settings on the validation set beforehand: test sets are only for figures to publish. BLEU is
sacrebleu's BLEU with tokenisation 13a, both cased and lower-cased; most papers on this corpus report lower-cased BLEU.
The command prints the date and the commit first.

Writes results/sentences.json; the figures of the other direction stay in the file.
"""

import argparse
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.command import as_command
from benchmarks.results import command, described, machine, read, table, write
from glassformer.corpus.readers import read_lines
from glassformer.evaluation.metrics import bleu, chrf
from glassformer.system.machine import cores
from glassformer.translator import Translator

NAME = "sentences"
SETS = {"val": "val", "test_2016": "test_2016_flickr", "test_2017": "test_2017_flickr"}
"""The data sets, each with the beginning of its files' names."""
LANGUAGES = {"en": "English", "de": "German", "fr": "French"}


def scored(outputs: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Return cased BLEU, lower-cased BLEU and chrF2."""
    lower = ([line.lower() for line in lines] for lines in (outputs, references))
    return {
        "bleu": bleu(outputs, references).value,
        "lower": bleu(*lower).value,
        "chrf": chrf(outputs, references).value,
    }


def measure(run: Path, source: str, target: str, data: Path) -> dict[str, dict[str, float]]:
    """Return the scores of a run or combination on each set."""
    translator = Translator.load(run, engine="auto", workers=cores())
    found = {}
    for name, files in SETS.items():
        lines, references = (read_lines(data / f"{files}.{side}.gz") for side in (source, target))
        outputs = translator.translate(lines, log_probs=False, guards=False)
        found[name] = scored([one.text for one in outputs], references)
    return found


def named_run(text: str) -> tuple[str, Path]:
    """Parse "NAME=RUN"; return the name and the folder of the run."""
    name, equals, run = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text}: expected NAME=RUN, such as student=runs/student")
    return name, Path(run)


def commit() -> str:
    """Return the hash of the current commit, with a mark if files have changed since the commit."""
    here = Path(__file__).parent
    call = ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=10", "--exclude", "*"]
    return subprocess.run(call, check=True, capture_output=True, text=True).stdout.strip()


def markdown(figures: dict[str, Any]) -> str:
    """Return the figures as Markdown, with a table for each direction."""
    parts = [
        "## Sentences of Multi30k\n\nEach cell has BLEU by sacrebleu (13a): first cased, then lower-cased in brackets. "
        "chrF2 follows after a semicolon. Settings, weights and combinations were chosen by scores on the validation "
        "set, val; each entry was scored on the test sets once. The weights of a combination are fitted on all of val, "
        "so the combination's score on val is optimistic. "
        "[Quality: Multi30k](../benchmarks/README.md#quality-multi30k) describes the trainings.\n"
    ]
    for direction, found in figures["directions"].items():
        source, target = (LANGUAGES.get(side, side) for side in direction.split("-"))
        rows = [
            [name, *(f"{one['bleu']:.2f} ({one['lower']:.2f}); {one['chrf']:.1f}" for one in scores.values())]
            for name, scores in found["entries"].items()
        ]
        told = f"`{found['command']}`, {found['day']}, commit {found['commit']}"
        parts.append(f"### {source} to {target}\n\n{told}:\n\n{table(['', *SETS], rows)}")
    return "\n".join([*parts, f"{described(figures['machine'])}.\n"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="language of the sources, such as en")
    parser.add_argument("target", help="language of the references, such as de")
    told = "a run or combination, and its name in the table"
    parser.add_argument("runs", nargs="+", type=named_run, metavar="NAME=RUN", help=told)
    parser.add_argument("--data", type=Path, required=True, help="folder of Multi30k's files")
    given = parser.parse_args()
    of, day, at = machine(), time.strftime("%Y-%m-%d"), commit()
    print(f"{day}, commit {at}", flush=True)
    entries = {}
    for name, run in given.runs:
        entries[name] = measure(run, given.source, given.target, given.data)
        print(name, entries[name], flush=True)
    directions = read(NAME).get("directions", {})
    found = {"command": command(), "day": day, "commit": at, "entries": entries}
    write(NAME, {"directions": {**directions, f"{given.source}-{given.target}": found}}, of)


if __name__ == "__main__":
    as_command(main)
