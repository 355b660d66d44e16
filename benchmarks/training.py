"""How fast a training step is, beside the peers': `python -m benchmarks.training --data DIR` (Multi30k's files).

All train the reference model on the same list of batches, written to the disk first. Each is a live process; they take
turns, batch by batch, in an order that rotates, so that a drift of the machine hits all alike; ratios are medians of
those of single batches. Not all have room at once: Hugging Face's Marian sits in each sitting, and all are compared
with it. Every peer is measured as it comes and with the allocator setting (`processes.KEEPING`); ours sets that itself.
The ceiling is what the machine's matrix products reach (`gemm.py`), before and after each sitting.

Writes results/training.json and .png.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import as_command
from benchmarks.gemm import ceilings_apart
from benchmarks.peers.ours import model_config
from benchmarks.peers.task import BATCHES, PAD, TASK, Batch, Task, read_batches, read_task
from benchmarks.processes import Entry, sittings, take_turns
from benchmarks.results import Spread, bars, described, failures, figure, machine, read, save, spread, table, write
from benchmarks.work import WORK, make_work
from glassformer.machine import cores
from glassformer.training.estimate import forward_flops

NAME = "training"
TOGETHER = 7
"""Live processes: about 2 GB each."""
RIVAL = Entry(peer="hugging_face", options={"smoothing": False})
"""Whom all are compared with: the fastest peer, in its fastest form, as it comes."""
OTHERS = ("torch_nn", "opennmt", "joeynmt", "x_transformers", "annotated")


def rivals() -> list[Entry]:
    """Return ours and Hugging Face's Marian, each in every form: they sit together."""
    options = dict(RIVAL.options)
    theirs = [
        Entry(peer="hugging_face", precision=precision, keeping=keeping, options=options)
        for precision in ("fp32", "bf16")
        for keeping in (False, True)
    ]
    ours = [
        Entry(peer="ours", precision=precision, options={"workers": workers})
        for precision in ("fp32", "bf16")
        for workers in sorted({1, cores()})
    ]
    return [*theirs, *ours]


def others(annotated: Path | None) -> list[Entry]:
    """Return the other peers in every form, and Hugging Face's with the smoothed loss of its Trainer."""
    options: dict[str, dict[str, Any]] = {"annotated": {"path": str(annotated)}}
    peers = ["hugging_face", *(peer for peer in OTHERS if annotated or peer != "annotated")]
    return [
        Entry(peer=peer, precision=precision, keeping=keeping, options=options.get(peer, {}))
        for precision in ("fp32", "bf16")
        for keeping in (False, True)
        for peer in peers
    ]


def flops(task: Task, batch: Batch) -> float:
    """Return the operations that an update on this batch needs: those of real tokens, each product three times."""
    config = model_config(task)
    lengths = zip(*(np.count_nonzero(ids != PAD, axis=1) for ids in (batch.source, batch.target_output)), strict=True)
    return 3 * sum((forward_flops(config, int(source), int(target)) for source, target in lengths), 0.0)


def measure(
    work: Path,
    groups: Sequence[Sequence[Entry]],
    rounds: int,
    warm: int,
    ceilings: Callable[[int], dict[str, float]] = ceilings_apart,
) -> dict[str, Any]:
    """Return the figures of all sittings."""
    task, batches = read_task(work), read_batches(work / BATCHES)
    chosen = range(warm + rounds)
    if chosen.stop > len(batches):
        raise SystemExit(f"there are {len(batches)} batches, and {chosen.stop} rounds: choose fewer")
    made: list[dict[str, Any]] = []
    threads = max(entry.threads for group in groups for entry in group)
    before = ceilings(threads)
    for number, group in enumerate(groups, 1):
        print(f"sitting {number} of {len(groups)}: {', '.join(entry.name for entry in group)}", flush=True)
        turns = take_turns(group, work, [{"do": "update", "batch": place} for place in chosen], warm=warm)
        for name, why in turns.failed.items():
            print(f"  {name}: {why}", flush=True)
        after = ceilings(threads)
        made.append({"entries": [entry.as_json() for entry in group], "ceilings": [before, after], **asdict(turns)})
        before = after
    return {
        "task": asdict(task),
        "warm": warm,
        "target_tokens": [batches[place].target_tokens for place in chosen[warm:]],
        "gflop": [flops(task, batches[place]) / 1e9 for place in chosen[warm:]],
        "sittings": made,
    }


def seconds(sitting: dict[str, Any], name: str) -> list[float]:
    """Return how long each update of a peer took."""
    return [answer["seconds"] for answer in sitting["answers"][name]]


def ceiling(figures: dict[str, Any], precision: str) -> float:
    """Return the most that matrix products of a precision reached in this run, in GFLOP/s."""
    return float(max(one[precision] for sitting in figures["sittings"] for one in sitting["ceilings"]))


def summary(figures: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return speed, share of the ceiling, memory, and ratio to the rival for each; fastest first."""
    rows: dict[str, dict[str, Any]] = {}
    sittings = figures["sittings"]
    for entry in {entry["name"]: entry for sitting in sittings for entry in sitting["entries"]}.values():
        name = entry["name"]
        there = [sitting for sitting in sittings if name in sitting["answers"]]
        if not there:
            continue
        times = [seconds(sitting, name) for sitting in there]
        speeds = [spread_of(figures["target_tokens"], some) for some in times]
        gflops = [spread_of(figures["gflop"], some) for some in times]
        ratios = list(chain.from_iterable(ratio(sitting, name, RIVAL.name) for sitting in there))
        rows[name] = {
            "tokens_per_second": spread(list(chain.from_iterable(speeds))),
            "gflops": spread(list(chain.from_iterable(gflops))),
            "share": spread(list(chain.from_iterable(gflops))).median / ceiling(figures, entry["precision"]),
            "share_fp32": spread(list(chain.from_iterable(gflops))).median / ceiling(figures, "fp32"),
            "peak": max(sitting["peaks"][name] for sitting in there),
            "ratio": spread(ratios) if ratios else None,
            "loss": there[0]["answers"][name][-1]["loss"],
        }
    return dict(sorted(rows.items(), key=lambda row: -row[1]["tokens_per_second"].median))


def spread_of(amounts: Sequence[float], times: Sequence[float]) -> list[float]:
    """Return amount per second of each update."""
    return [amount / taken for amount, taken in zip(amounts, times, strict=True)]


def ratio(sitting: dict[str, Any], name: str, other: str) -> list[float]:
    """Return how many times as fast as another a peer was, batch by batch; nothing where one of them is missing."""
    if not {name, other} <= set(sitting["answers"]):
        return []
    return [theirs / mine for theirs, mine in zip(seconds(sitting, other), seconds(sitting, name), strict=True)]


def markdown(figures: dict[str, Any]) -> str:
    """Return the tables."""
    rows = summary(figures)
    head = ["", "target tokens/s", "of the rival", "GFLOP/s", "of its ceiling", "peak memory"]
    lines = [
        [
            name,
            row["tokens_per_second"].text(),
            row["ratio"].text(2) if row["ratio"] else "",
            f"{row['gflops'].median:.0f}",
            f"{100 * row['share']:.0f} %",
            f"{row['peak'] / 1e9:.2f} GB",
        ]
        for name, row in rows.items()
    ]
    failed = {name: why for sitting in figures["sittings"] for name, why in sitting["failed"].items()}
    rounds, mean = len(figures["target_tokens"]), sum(figures["gflop"]) / len(figures["gflop"])
    ceilings = ", ".join(f"{precision} {ceiling(figures, precision):.0f}" for precision in ("fp32", "bf16"))
    return (
        f"## Training\n\n`{figures['command']}`, {figures['day']}: median of {rounds} updates (quartiles), {mean:.0f} "
        f"GFLOP each. The rival is {RIVAL.name}. Ceilings of this run's matrix products, GFLOP/s: {ceilings}."
        f"\n\n{table(head, lines)}{failures(failed)}\n{_head_to_head(figures)}\n{described(figures['machine'])}.\n"
    )


def _head_to_head(figures: dict[str, Any]) -> str:
    """Return how many times as fast as each form of Hugging Face's ours is, in the sitting that they share."""
    [sitting, *_] = figures["sittings"]
    names = [entry["name"] for entry in sitting["entries"] if entry["name"] in sitting["answers"]]
    theirs = [name for name in names if not name.startswith("ours")]
    ours = [name for name in names if name.startswith("ours")]
    if not ours or not theirs:
        return ""
    rows = [[mine, *(spread(ratio(sitting, mine, name)).text(2) for name in theirs)] for mine in ours]
    return "How many times as fast as\n\n" + table(["", *theirs], rows)


def plot(figures: dict[str, Any]) -> Path:
    """Draw the speeds."""
    rows = summary(figures)
    made, [axis] = figure(height=1.5 + 0.28 * len(rows))
    speeds: dict[str, Spread] = {name: row["tokens_per_second"] for name, row in rows.items()}
    bars(axis, speeds, "target tokens per second, median and quartiles")
    return save(made, NAME)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of train.de, train.en, test_2016_flickr.* (.gz or not)")
    parser.add_argument("--work", type=Path, default=WORK, help="where the work is written")
    parser.add_argument("--annotated", type=Path, help="the_annotated_transformer.py, to measure that too")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--warm", type=int, default=3)
    parser.add_argument("--together", type=int, default=TOGETHER, help="processes that live side by side")
    parser.add_argument("--only-rivals", action="store_true", help="ours and Hugging Face's alone")
    given = parser.parse_args()
    of, work = machine(), given.work / NAME
    if not (work / TASK).exists():
        if not given.data:
            parser.error("--data DIR is needed the first time, to write the work")
        make_work(work, given.data, Task())
    rest = [] if given.only_rivals else sittings([RIVAL, *others(given.annotated)], given.together)
    write(NAME, measure(work, [rivals(), *rest], given.rounds, given.warm), of)
    plot(read(NAME))
    print(markdown(read(NAME)))


if __name__ == "__main__":
    as_command(main)
