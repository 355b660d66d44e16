"""Compare the speed of training with the peers': `python -m benchmarks.training --data DIR` (Multi30k's files).

All peers train the reference model on the same list of batches, which is written to the disk first. Each peer is a
process. The processes take turns batch by batch in a rotating order, so a drift of the machine affects all peers
equally. A ratio is the median of the ratios of single batches. There is too little memory for all peers at once, so
they are measured in several groups (sittings). Hugging Face's Marian is in each group, and all peers are compared with
it. Every peer is measured with default settings and with the allocator setting (`processes.KEEPING`), which glassformer
sets by itself. The ceiling is the speed of the machine's matrix products (`gemm.py`), measured before and after each
sitting.

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
from benchmarks.results import (
    RESULTS,
    Spread,
    bars,
    described,
    failures,
    figure,
    leaders,
    machine,
    number,
    read,
    save,
    spread,
    table,
    write,
)
from benchmarks.work import WORK, make_work
from glassformer.jobs.speed.estimate import forward_flops
from glassformer.system.machine import cores

NAME = "training"
TOGETHER = 7
"""Maximum number of processes in one sitting; each process needs about 2 GB."""
RIVAL = Entry(peer="hugging_face", options={"smoothing": False})
"""The entry with which all entries are compared: the fastest peer, with its fastest loss and default settings."""
OTHERS = ("torch_nn", "opennmt", "joeynmt", "x_transformers", "annotated")


def rivals() -> list[Entry]:
    """Return the entries of one sitting: glassformer and Hugging Face's Marian, each in all forms."""
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
    """Return the other peers in all forms, and Hugging Face's Marian with the smoothed loss of its Trainer."""
    options: dict[str, dict[str, Any]] = {"annotated": {"path": str(annotated)}}
    peers = ["hugging_face", *(peer for peer in OTHERS if annotated or peer != "annotated")]
    return [
        Entry(peer=peer, precision=precision, keeping=keeping, options=options.get(peer, {}))
        for precision in ("fp32", "bf16")
        for keeping in (False, True)
        for peer in peers
    ]


def flops(task: Task, batch: Batch) -> float:
    """Return the operations that an update on a batch needs: for real tokens only, and each product three times."""
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
        raise SystemExit(f"--rounds and --warm: expected at most {len(batches)} batches in all, got {chosen.stop}")
    made: list[dict[str, Any]] = []
    threads = max(entry.threads for group in groups for entry in group)
    before = ceilings(threads)
    for place, group in enumerate(groups, 1):
        print(f"sitting {place} of {len(groups)}: {', '.join(entry.name for entry in group)}", flush=True)
        turns = take_turns(group, work, [{"do": "update", "batch": batch} for batch in chosen], warm=warm)
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
    """Return the seconds of each update of a peer."""
    return [answer["seconds"] for answer in sitting["answers"][name]]


def ceiling(figures: dict[str, Any], precision: str) -> float:
    """Return the highest speed of matrix products of a precision in this run, in GFLOP/s."""
    return float(max(one[precision] for sitting in figures["sittings"] for one in sitting["ceilings"]))


def summary(figures: dict[str, Any], rival: Entry = RIVAL) -> dict[str, dict[str, Any]]:
    """Return, for each entry, its speed, share of the ceiling, memory and ratio to the rival, fastest entry first."""
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
        ratios = list(chain.from_iterable(ratio(sitting, name, rival.name) for sitting in there))
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
    """Return the amount per second of each update."""
    return [amount / taken for amount, taken in zip(amounts, times, strict=True)]


def ratio(sitting: dict[str, Any], name: str, other: str) -> list[float]:
    """Return the ratio of two entries' speeds for each batch; empty if one of them is missing."""
    if not {name, other} <= set(sitting["answers"]):
        return []
    return [theirs / mine for theirs, mine in zip(seconds(sitting, other), seconds(sitting, name), strict=True)]


def markdown(figures: dict[str, Any], rival: Entry = RIVAL) -> str:
    """Return the figures as Markdown tables."""
    rows = summary(figures, rival)
    head = ["", "target tokens/s", "ratio to rival", "GFLOP/s", "share of peak", "peak memory"]
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
    ceilings = " and ".join(
        f"{number(ceiling(figures, precision))} GFLOP/s in {precision}" for precision in ("fp32", "bf16")
    )
    task = figures["task"]
    layers = f"{task['encoder_layers']} + {task['decoder_layers']}"
    speeds = {name: row["tokens_per_second"] for name, row in rows.items()}
    return (
        f"## Training\n\nEvery toolkit trains the same model ({layers} layers of width {task['d_model']}) on the same "
        f"batches. {leaders(speeds, 'target tokens/s')}\n\n`{figures['command']}`, {figures['day']}: median "
        f"(quartiles) of {rounds} updates of {mean:.0f} GFLOP each. The rival, with which every entry is compared, is "
        f"*{rival.name}*. The peak is the speed of the machine's fastest matrix product in this run: {ceilings}.\n\n"
        f"{table(head, lines)}{failures(failed)}\n{_head_to_head(figures)}\n{described(figures['machine'])}.\n"
    )


def _head_to_head(figures: dict[str, Any]) -> str:
    """Return a table of ratios between glassformer and each form of Hugging Face's Marian, from the common sitting."""
    [sitting, *_] = figures["sittings"]
    names = [entry["name"] for entry in sitting["entries"] if entry["name"] in sitting["answers"]]
    theirs = [name for name in names if not name.startswith("ours")]
    ours = [name for name in names if name.startswith("ours")]
    if not ours or not theirs:
        return ""
    rows = [[mine, *(spread(ratio(sitting, mine, name)).text(2) for name in theirs)] for mine in ours]
    return (
        "Speed of glassformer divided by the speed of Hugging Face's model, for each precision and allocator setting "
        "of that model:\n\n" + table(["", *theirs], rows)
    )


def plot(figures: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Draw a chart of the speeds."""
    rows = summary(figures)
    made, [axis] = figure(height=1.5 + 0.28 * len(rows))
    speeds: dict[str, Spread] = {name: row["tokens_per_second"] for name, row in rows.items()}
    bars(axis, speeds, "target tokens per second, median and quartiles")
    return save(made, NAME, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, help="folder of Multi30k's files: train.de, train.en, test_2016_flickr.*, plain or .gz"
    )
    parser.add_argument("--work", type=Path, default=WORK, help="folder for the shared work [default: %(default)s]")
    parser.add_argument("--annotated", type=Path, help="the_annotated_transformer.py, to include it")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--warm", type=int, default=3)
    parser.add_argument("--together", type=int, default=TOGETHER, help="processes in one sitting")
    parser.add_argument("--only-rivals", action="store_true", help="measure ours and Hugging Face's only")
    given = parser.parse_args()
    of, work = machine(), given.work / NAME
    if not (work / TASK).exists():
        if not given.data:
            parser.error("--data DIR: expected the folder of Multi30k's files, because the work does not exist yet")
        make_work(work, given.data, Task())
    rest = [] if given.only_rivals else sittings([RIVAL, *others(given.annotated)], given.together)
    write(NAME, measure(work, [rivals(), *rest], given.rounds, given.warm), of)
    plot(read(NAME))
    print(markdown(read(NAME)))


if __name__ == "__main__":
    as_command(main)
