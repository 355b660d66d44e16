"""Simulate bulk translation by up to a thousand nodes and training by up to 64 GPUs, with failures: time, cost, waste.

    python -m benchmarks.simulation [--mtbf HOURS] [--price DOLLARS] [--tokens-per-second N] …

1. The durations of the translations that `benchmarks.two_nodes` observed are predicted from its calibration alone, with
   the same kills.
2. A billion lines on 100 and on 1 000 nodes, for several sizes of parts.
3. The paper's big model on 1, 8 and 64 GPUs, 300 000 steps.

The figures go into `results/simulation.json` and a picture; the tables of benchmarks/plan.md are written from them.
The speeds of GPUs and the prices are assumptions, which the options replace.
"""

import argparse
import math
import random
from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import simpy

from benchmarks import results
from benchmarks.command import as_command
from benchmarks.two_nodes import NAME as OBSERVED
from glassformer.jobs.speed.estimate import count_parameters
from glassformer.model.config import ModelConfig
from glassformer.translating.translation import Translation, status_entry

__all__ = [
    "Cluster",
    "Network",
    "Outcome",
    "Training",
    "calibrated",
    "fitted",
    "main",
    "options",
    "page",
    "plan_training",
    "plan_translation",
    "predictions",
    "ring_seconds",
    "simulate",
    "simulate_training",
    "tables",
    "young_interval",
]

NAME = "simulation"
PAGE = Path(__file__).parent / "plan.md"
BEGIN, END = "<!-- python -m benchmarks.simulation writes this table: {} -->", "<!-- end -->"
HOUR = 3600.0
LINES = 10**9
NODES = (100, 1000)
LINES_PER_PART = (5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000)
SEEDS = range(2)
PREDICTIONS = range(200)
GPUS, PER_MACHINE = (1, 8, 64), 8
STEPS, TOKENS_PER_STEP, VOCABULARY = 300_000, 25_000, 32_000
"""Number of steps, tokens per step and vocabulary size of the recipe wmt14-big-en-fr."""
CHECKPOINT_SPEED = 91e6 / 0.256
"""Bytes per second while training waits for a checkpoint, measured by benchmarks.checkpoints."""
LINE_BYTES = 100
"""Size of a line in bytes: 1 MB is about 10 000 sentences."""

_Events = Generator[simpy.Event, Any, None]


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Workers that translate parts, and the delays for which the workers wait. All times are in seconds."""

    workers: int
    seconds_per_part: float
    """Mean time of a part of size 1."""
    spread: float = 0.0
    """Standard deviation of the logarithm of a part's time, which is log-normal."""
    start: float = 0.0
    """Time from the start of the command until a worker has loaded its model."""
    restart: Mapping[str, float] = field(default_factory=lambda: {"actor": 0.0, "node": 0.0})
    """Time from a failure until the replacing worker has loaded its model, by the kind of failure."""
    dispatch: float = 0.0
    """The driver's CPU time for assigning a part; the driver assigns one part at a time."""
    gap: float = 0.0
    """Time from the end of a worker's part until its next part begins, including messages to the driver."""
    stop: float = 0.0
    """Time from the end of the last part until the command has ended."""
    requests: int = 4
    """Number of requests to the object store per part: one to read the part, and three to write its files."""
    latency: float = 0.0
    """Duration of a request to the object store."""
    requests_per_second: float = math.inf
    """Maximum number of requests per second that the object store admits."""
    mtbf: float = math.inf
    """Mean time between two failures of one node."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The events of a simulated run. All times are in seconds."""

    makespan: float
    done: Counter[int]
    """Number of times that each part was completed."""
    wasted: float
    """Time of work that failures destroyed, summed over all workers."""
    failures: int
    tail: float
    """Time from the first moment when a worker has no part until the last part is complete."""
    requests: int
    busiest: int
    """Largest number of requests in a second."""


class _Gate:
    """A gate that admits callers one after the other, with a fixed time between two callers."""

    def __init__(self, env: simpy.Environment, seconds: float) -> None:
        self.env, self.seconds, self.free = env, seconds, 0.0

    def wait(self) -> float:
        """Return the seconds until the gate admits the caller."""
        self.free = max(self.env.now, self.free) + self.seconds
        return self.free - self.env.now


class _Run:
    """The events of one run. The driver assigns parts in order; the part of a failed worker goes to the end."""

    def __init__(
        self, cluster: Cluster, parts: Sequence[float], seed: int, kills: Sequence[tuple[float, str]] | None
    ) -> None:
        self.cluster, self.parts, self.chance, self.env = cluster, parts, random.Random(seed), simpy.Environment()
        self.queue, self.idle = deque(range(len(parts))), deque[simpy.Event]()
        self.driver = _Gate(self.env, cluster.dispatch)
        self.store = _Gate(self.env, 1 / cluster.requests_per_second)
        self.done, self.seconds = Counter[int](), Counter[int]()
        self.wasted, self.failures, self.first_idle = 0.0, 0, math.inf
        self.busy = dict[int, tuple[int, float]]()
        """For each worker at work, its part, and the time at which this part was begun."""
        self.finished = self.env.event()
        self.workers = [self.env.process(self._worker(number)) for number in range(cluster.workers)]
        if kills is not None:
            self.env.process(self._kill(kills))
        elif cluster.mtbf < math.inf:
            for number in range(cluster.workers):
                self.env.process(self._fail(number))

    def outcome(self) -> Outcome:
        """Simulate until all parts are complete; return the outcome."""
        self.env.run(self.finished)
        now = self.env.now
        return Outcome(
            makespan=now + self.cluster.stop,
            done=self.done,
            wasted=self.wasted,
            failures=self.failures,
            tail=max(now - self.first_idle, 0.0),
            requests=self.seconds.total(),
            busiest=max(self.seconds.values()),
        )

    def _worker(self, number: int) -> _Events:
        delay = self.cluster.start
        while True:
            try:
                yield self.env.timeout(delay)
                delay = 0.0
                if self.queue:
                    yield from self._translate(number)
                    delay = self.cluster.gap
                else:
                    self.first_idle = min(self.first_idle, self.env.now)
                    woken = self.env.event()
                    self.idle.append(woken)
                    yield woken
                    delay = self.cluster.restart["actor"]  # idle actors are ended, so a new one has to start
            except simpy.Interrupt as failure:
                delay = self._lose(number, str(failure.cause))

    def _translate(self, number: int) -> _Events:
        part = self.queue.popleft()
        self.busy[number] = part, self.env.now
        yield self.env.timeout(self.driver.wait())
        yield self.env.timeout(self._request(1))
        yield self.env.timeout(self.parts[part] * self._service())
        yield self.env.timeout(self._request(self.cluster.requests - 1))
        del self.busy[number]
        self.done[part] += 1
        if len(self.done) == len(self.parts):
            self.finished.succeed()

    def _service(self) -> float:
        """Return the time of a part of size 1."""
        spread = self.cluster.spread
        return self.cluster.seconds_per_part * math.exp(self.chance.gauss(-(spread**2) / 2, spread))

    def _request(self, count: int) -> float:
        """Return the time of requests, one after the other."""
        passed = 0.0
        for _ in range(count):
            passed = self.store.wait()
            self.seconds[int(self.env.now + passed)] += 1
        return passed + count * self.cluster.latency

    def _lose(self, number: int, kind: str) -> float:
        """Put back the part of a failed worker; return the time until the worker works again."""
        self.failures += 1
        if number in self.busy:
            part, begun = self.busy.pop(number)
            self.wasted += self.env.now - begun
            self.queue.append(part)
            while self.idle:
                self.idle.popleft().succeed()
        return self.cluster.restart[kind]

    def _fail(self, number: int) -> _Events:
        while True:
            yield self.env.timeout(self.chance.expovariate(1 / self.cluster.mtbf))
            self.workers[number].interrupt("node")

    def _kill(self, kills: Sequence[tuple[float, str]]) -> _Events:
        """Kill a random worker with a part, or the last node, at given moments."""
        for moment, kind in kills:
            yield self.env.timeout(moment - self.env.now)
            if kind == "node":
                self.workers[-1].interrupt(kind)
            elif self.busy:
                self.workers[self.chance.choice(sorted(self.busy))].interrupt(kind)


def simulate(
    cluster: Cluster, parts: Sequence[float], seed: int = 0, kills: Sequence[tuple[float, str]] | None = None
) -> Outcome:
    """Simulate the translation of parts of these sizes; nodes fail at the cluster's rate, or at given times."""
    return _Run(cluster, parts, seed, kills).outcome()


# Observations


def fitted(times: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the spread of the log-normal distribution of positive times, by their logarithms."""
    logs = [math.log(time) for time in times]
    spread = stdev(logs)
    return math.exp(fmean(logs) + spread**2 / 2), spread


def calibrated(seen: Mapping[str, Any]) -> Cluster:
    """Return a cluster whose times are fitted to an observed run of two workers, given its attempts and kills."""
    attempts = [(_size(part, seen["part_bytes"]), begin, end) for part, begin, end in seen["attempts"]]
    mean, spread = fitted([(end - begin) / size for size, begin, end in attempts if end is not None])
    begins, ends = sorted(begin for _, begin, _ in attempts), [end for *_, end in attempts if end is not None]
    waits: dict[str, list[float]] = {"end": [], "actor": [], "node": []}
    freed = sorted([(end, "end") for end in ends] + [(moment, kind) for moment, kind in seen["kills"]])
    for begin in begins[2:]:
        before = [one for one in freed if one[0] <= begin]
        one = max(before, key=lambda one: (one[1] == "end", one[0]))  # a worker that is still alive can begin at once
        freed.remove(one)
        waits[one[1]].append(begin - one[0])
    return Cluster(
        workers=2,
        seconds_per_part=mean,
        spread=spread,
        start=fmean(begins[:2]),
        restart={kind: fmean(waits[kind] or [0.0]) for kind in ("actor", "node")},
        dispatch=seen["driver"],
        gap=fmean(waits["end"]),
        stop=seen["makespan"] - max(ends),
        requests=1,
    )


def _size(part: str, part_bytes: int) -> float:
    """Return the size of a part as a share of the full size, computed from the byte range in the part's name."""
    begin, end = map(int, part.rsplit("-", 2)[1:])
    return (end - begin) / part_bytes


def predictions(observed: Mapping[str, Any]) -> list[dict[str, float]]:
    """Return, for each observed run, the measured duration, and the duration simulated with the run's kills."""
    cluster, found = calibrated(observed["calibration"]), list[dict[str, float]]()
    for run in observed["runs"]:
        parts = [_size(part, run["part_bytes"]) for part in sorted({part for part, *_ in run["attempts"]})]
        runs = [simulate(cluster, parts, seed, run["kills"]).makespan for seed in PREDICTIONS]
        error = fmean(runs) / run["makespan"] - 1
        found.append(
            {
                "parts": len(parts),
                "kills": len(run["kills"]),
                "measured": run["makespan"],
                "simulated": fmean(runs),
                "deviation": stdev(runs),
                "error": error,
            }
        )
    return found


# Translation


def plan_translation(
    lines: int, nodes: int, lines_per_part: int, given: argparse.Namespace, observed: Cluster
) -> dict[str, float]:
    """Return time, cost and waste of a translation, as means over the seeds.

    A node has one worker. The time of a part and the time between parts vary as in `observed`.
    """
    speed = given.translated_tokens / given.tokens_per_line
    cluster = Cluster(
        workers=nodes,
        seconds_per_part=lines_per_part / speed,
        spread=observed.spread,
        start=given.start,
        restart={"actor": given.start, "node": given.restart},
        dispatch=observed.dispatch,
        gap=observed.gap,
        latency=given.latency,
        requests_per_second=given.requests_per_second,
        mtbf=given.mtbf * HOUR,
    )
    parts = [1.0] * math.ceil(lines / lines_per_part)
    runs = [simulate(cluster, parts, seed) for seed in SEEDS]
    makespan = fmean(run.makespan for run in runs)
    return {
        "nodes": nodes,
        "lines_per_part": lines_per_part,
        "parts": len(parts),
        "hours": makespan / HOUR,
        "ideal_hours": lines / speed / nodes / HOUR,
        "overhead": makespan * nodes * speed / lines - 1,
        "cost": makespan / HOUR * nodes * given.price,
        "failures": fmean(run.failures for run in runs),
        "waste": fmean(run.wasted for run in runs) * speed / lines,
        "tail": fmean(run.tail for run in runs),
        "requests": fmean(run.requests for run in runs),
        "requests_per_second": fmean(run.requests / run.makespan for run in runs),
        "busiest": max(run.busiest for run in runs),
        "driver": cluster.dispatch * len(parts) / makespan,
    }


# Training


@dataclass(frozen=True, kw_only=True)
class Network:
    """The network connection of each machine to the other machines."""

    bandwidth: float
    """Bytes per second, in each direction."""
    latency: float
    """Seconds for the smallest message."""


NETWORK = Network(bandwidth=12.5e9, latency=5e-6)
"""100 Gbit/s (assumed), also between the GPUs of one machine."""


def ring_seconds(size: float, ranks: int, network: Network) -> float:
    """Return the time of an all-reduce of `size` bytes in a ring: 2(n − 1)/n · size/bandwidth + 2(n − 1) · latency.

    Each machine sends and receives one stream, however many ranks it has.
    """
    return 2 * (ranks - 1) / ranks * size / network.bandwidth + 2 * (ranks - 1) * network.latency


@dataclass(frozen=True, kw_only=True)
class Training:
    """A training run by machines that all stop when one of them fails. All times are in seconds."""

    work: float
    """Time of all steps without failures and checkpoints."""
    interval: float
    """Work between two checkpoints."""
    checkpoint: float
    restart: float
    mtbf: float
    """Mean time between two failures of any machine."""


def young_interval(checkpoint: float, mtbf: float) -> float:
    """Return the time of work between checkpoints with the least total loss: √(2 · checkpoint · MTBF) (Young 1974)."""
    return math.sqrt(2 * checkpoint * mtbf)


def simulate_training(training: Training, seed: int = 0) -> tuple[float, int]:
    """Return the duration in seconds and the number of failures."""
    env, chance, failures = simpy.Environment(), random.Random(seed), 0

    def run() -> _Events:
        saved, delay = 0.0, 0.0
        while saved < training.work:
            try:
                yield env.timeout(delay)
                delay = 0.0
                part = min(training.interval, training.work - saved)
                yield env.timeout(part + training.checkpoint)
                saved += part
            except simpy.Interrupt:
                delay = training.restart

    def fail(process: simpy.Process) -> _Events:
        nonlocal failures
        while True:
            yield env.timeout(chance.expovariate(1 / training.mtbf))
            process.interrupt()
            failures += 1

    process = env.process(run())
    if training.mtbf < math.inf:
        env.process(fail(process))
    env.run(process)
    return env.now, failures


def plan_training(gpus: int, given: argparse.Namespace) -> dict[str, float]:
    """Return time, cost and losses of training the big model, with means over the seeds."""
    parameters = count_parameters(ModelConfig.preset("big", vocab_size=VOCABULARY))
    compute = TOKENS_PER_STEP / gpus / given.tokens_per_second
    communication = ring_seconds(4 * parameters, gpus, NETWORK)
    checkpoint = 12 * parameters  # weights, and Adam's two moments
    machines = math.ceil(gpus / PER_MACHINE)
    mtbf, work = given.mtbf * HOUR / machines, STEPS * (compute + communication)
    seconds = checkpoint / CHECKPOINT_SPEED
    interval = young_interval(seconds, mtbf)
    training = Training(work=work, interval=interval, checkpoint=seconds, restart=given.restart, mtbf=mtbf)
    runs = [simulate_training(training, seed) for seed in range(20)]
    hours = fmean(duration for duration, _ in runs) / HOUR
    return {
        "gpus": gpus,
        "parameters": parameters,
        "compute": compute,
        "communication": communication,
        "efficiency": compute / (compute + communication),
        "days": hours / 24,
        "interval_minutes": interval / 60,
        "failures": fmean(failures for _, failures in runs),
        "lost_hours": hours - work / HOUR,
        "cost": hours * gpus * given.gpu_price,
        "gpu_bytes": 16 * parameters,
        "checkpoint_bytes": checkpoint,
    }


# Output


def tables(figures: Mapping[str, Any]) -> dict[str, str]:
    """Return the page's tables by name."""
    number, bulk = results.number, figures["translation"]
    validation = [
        [
            str(index),
            number(one["parts"]),
            number(one["kills"]),
            number(one["measured"], 1),
            f"{number(one['simulated'], 1)} ± {number(one['deviation'], 1)}",
            f"{100 * one['error']:+.1f} %".replace("-", "−"),
        ]
        for index, one in enumerate(figures["validation"], start=1)
    ]
    translation = [
        [
            f"{number(one['nodes'])} nodes, parts of {number(one['lines_per_part'])} lines",
            number(one["hours"], 2),
            f"{100 * one['overhead']:.1f} %",
            number(one["cost"]),
            number(one["failures"], 1),
            f"{100 * one['waste']:.2f} %",
            number(one["tail"] / 60, 1),
            number(one["requests"]),
            number(one["requests_per_second"], 2),
            f"{100 * one['driver']:.2f} %",
        ]
        for one in bulk
    ]
    training = [
        [
            number(one["gpus"]),
            number(one["compute"], 3),
            number(one["communication"], 3),
            f"{100 * one['efficiency']:.0f} %",
            number(one["days"], 1),
            number(one["interval_minutes"]),
            number(one["failures"], 1),
            number(one["lost_hours"], 1),
            number(one["cost"]),
        ]
        for one in figures["training"]
    ]
    head = ["cluster", "hours", "over ideal", "cost, $", "failures", "lost work", "tail, min", "requests", "mean req/s"]
    steps = ["GPUs", "compute, s", "all-reduce, s", "efficiency", "days", "checkpoint every, min", "failures"]
    return {
        "validation": results.table(["run", "parts", "kills", "measured, s", "simulated, s", "error"], validation),
        "translation": results.table([*head, "driver busy"], translation),
        "training": results.table([*steps, "lost, h", "cost, $"], training),
    }


def page(text: str, found: Mapping[str, str]) -> str:
    """Return a page with its tables replaced."""
    for name, table in found.items():
        before, begin, rest = text.partition(BEGIN.format(name))
        _, end, after = rest.partition(END)
        text = f"{before}{begin}\n\n{table}\n{end}{after}"
    return text


def _picture(translation: Sequence[Mapping[str, float]]) -> None:
    made, [axis] = results.figure(7, 3.6)
    for nodes, colour in zip(NODES, (results.THEIRS, results.OURS), strict=True):
        mine = [one for one in translation if one["nodes"] == nodes]
        sizes = [one["lines_per_part"] for one in mine]
        axis.plot(sizes, [100 * one["overhead"] for one in mine], "o-", color=colour, label=f"{nodes} nodes")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("lines in a part")
    axis.set_ylabel("time over the ideal, %")
    axis.legend(frameon=False)
    results.save(made, NAME)


def options() -> argparse.ArgumentParser:
    """Return the command's options: the assumptions."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add: Callable[..., Any] = parser.add_argument
    add("--mtbf", type=float, default=1000.0, help="hours between two failures of a machine")
    add("--restart", type=float, default=180.0, help="seconds until a failed machine works again")
    add("--start", type=float, default=30.0, help="seconds until a worker has loaded its model")
    add("--translated-tokens", type=float, default=3917.0, help="target tokens per second that a node translates")
    add("--tokens-per-line", type=float, default=25.0)
    add("--price", type=float, default=3.0, help="dollars per hour of a node that translates")
    add("--latency", type=float, default=0.05, help="seconds of a request to the object store")
    add("--requests-per-second", type=float, default=3500.0, help="requests that the object store admits")
    add("--tokens-per-second", type=float, default=3125.0, help="target tokens per second that a GPU trains")
    add("--gpu-price", type=float, default=1.5, help="dollars per hour of a GPU that trains")
    return parser


def main() -> None:
    given, machine, observed = options().parse_args(), results.machine(), results.read(OBSERVED)
    cluster = calibrated(observed["calibration"])
    translation = [plan_translation(LINES, nodes, size, given, cluster) for nodes in NODES for size in LINES_PER_PART]
    figures: dict[str, Any] = {
        "assumptions": vars(given),
        "cluster": asdict(cluster),
        "validation": predictions(observed),
        "recommended": {
            nodes: min((one for one in translation if one["nodes"] == nodes), key=lambda one: one["hours"])[
                "lines_per_part"
            ]
            for nodes in NODES
        },
        "translation": translation,
        "training": [plan_training(gpus, given) for gpus in GPUS],
        "storage": {
            "text_bytes": 2 * LINES * LINE_BYTES,
            "status_bytes": LINES * len(status_entry(100_000, Translation(text="", status="ok"))),
        },
    }
    results.write(NAME, figures, machine)
    _picture(translation)
    for name, table in (found := tables(figures)).items():
        print(f"{name}\n{table}")
    if PAGE.exists():
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    as_command(main)
