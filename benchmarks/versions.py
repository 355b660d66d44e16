"""Compare the training speed of two checkouts: `python -m benchmarks.versions CHECKOUT CONFIG --data DIR`.

CHECKOUT is a folder with another version of glassformer, made by `git worktree add ../before COMMIT`, for example. Both
versions train the same configuration on the same sample of its corpus, in separate processes that take turns. A ratio
is the median of the ratios of single turns, so a drift of the machine affects both versions equally. Equal losses show
that both versions do the same work.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.command import as_command
from benchmarks.processes import ROOT, Entry, Turns, take_turns
from benchmarks.results import command, described, failures, machine, spread, table
from glassformer.cli import share_cores
from glassformer.recipes.toml import load


def entries(given: argparse.Namespace) -> list[Entry]:
    """Return an entry for each checkout and precision."""
    options = {"configuration": given.configuration, "settings": given.settings, "path": given.data}
    here = [Entry(peer="configured", precision=precision, options=options) for precision in given.precision]
    return [*here, *(replace(entry, checkout=given.checkout.resolve()) for entry in here)]


def markdown(chosen: Sequence[Entry], turns: Turns, count: int) -> str:
    """Return a Markdown table: times, the ratio to the other checkout in the same precision, memory, and last loss."""
    times = {name: [answer["seconds"] for answer in answers] for name, answers in turns.answers.items()}
    before = {entry.precision: times.get(entry.name) for entry in chosen if entry.checkout != ROOT}
    rows = []
    for entry in chosen:
        if not (mine := times.get(entry.name)):
            continue
        here, other = entry.checkout == ROOT, before[entry.precision]
        ratios = [theirs / own for theirs, own in zip(other, mine, strict=True)] if here and other else []
        rows.append(
            [
                f"{'this checkout' if here else entry.checkout.name}, {entry.precision}",
                spread([1000 * seconds / count for seconds in mine]).text(),
                spread(ratios).text(2) if ratios else "",
                f"{turns.peaks[entry.name] / 1e9:.2f} GB",
                f"{turns.answers[entry.name][-1]['loss']:.4f}",
            ]
        )
    return table(["", "ms per update", "speed to the other", "peak memory", "loss"], rows) + failures(turns.failed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, metavar="CHECKOUT", help="folder of the other checkout")
    parser.add_argument("configuration", metavar="CONFIG", help="TOML file or name of a recipe")
    parser.add_argument("--data", type=str, help="read the corpus from this folder")
    parser.add_argument("--set", dest="settings", action="append", default=[], help="change a setting; repeatable")
    parser.add_argument("--precision", action="append", choices=["fp32", "bf16"], help="[default: bf16]; repeatable")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--warm", type=int, default=3, help="rounds before these [default: %(default)s]")
    parser.add_argument("--updates", type=int, default=1, help="updates in a turn [default: %(default)s]")
    given = parser.parse_args()
    given.precision = given.precision or ["bf16"]
    if not (given.checkout / "src/glassformer").is_dir():
        parser.error(f"CHECKOUT: expected a folder with src/glassformer, got {given.checkout}")
    # loaded here first, so that a wrong configuration is reported as a single error
    load(given.configuration, given.settings, given.data)
    share_cores()  # as glassformer's commands do
    of, chosen = machine(), entries(given)
    questions = [{"do": "steps", "count": given.updates}] * (given.warm + given.rounds)
    turns = take_turns(chosen, ROOT, questions, warm=given.warm)
    if not turns.answers:
        raise SystemExit("\n".join(turns.failed.values()))
    print(f"`{command()}`\n\n{markdown(chosen, turns, given.updates)}\n{described(of)}.")


if __name__ == "__main__":
    as_command(main)
