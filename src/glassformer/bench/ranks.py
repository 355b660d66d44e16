"""Estimate a training run by several processes (ranks) on one machine or on several, before it is started.

A step takes the computation of one rank's share, which is measured here, and the sum of all gradients, which do not
overlap. Between processes of this machine, the sum is measured; between machines, its time follows from the network's
bandwidth and latency, which are assumptions.
"""

import math
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from glassformer.bench.estimate import Estimate, memory_line, training_length
from glassformer.bench.measurement import Measurement, Workload, measured
from glassformer.bench.sample import Sample
from glassformer.errors import ConfigError
from glassformer.recipes.configuration import TrainingConfig
from glassformer.recipes.toml import model_config
from glassformer.system.machine import cores
from glassformer.system.processes import Worker
from glassformer.training.sums import AllReduce, make_sum

__all__ = ["EFFICIENT", "Network", "RanksEstimate", "estimate_ranks", "ring_seconds", "sum_seconds"]

EFFICIENT = 0.8
"""Efficiency below which the estimate gives the number of tokens that a rank should have."""
_SUMS = 15
"""Number of sums that are timed."""
_SHARES = (0.5, 1.0)
"""The measured sizes, as parts of a rank's share of an update."""
_BYTES = 4

_Job = tuple[int, int, str, int, bool]
"""Rank, number of ranks, path of the file by which they meet, number of numbers, whether in shared memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The connection of each machine to the others."""

    bandwidth: float
    """Bytes per second, in each direction."""
    latency: float
    """Seconds for the smallest message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RanksEstimate:
    """The time and memory of a training run by several ranks, each of one thread. An update is a step."""

    nodes: int
    """Number of machines."""
    processes: int
    """Number of ranks of each machine."""
    network: Network | None
    """The assumed network between machines; None if there is only this machine."""
    tokens_per_rank: float
    """Real target tokens of a rank's share of a step."""
    compute_seconds: float
    """Time of a rank's own computation in a step."""
    communication_seconds: float
    """Time of the sum of all gradients in a step."""
    efficiency: float
    """Share of a step in which the ranks compute what one process would compute, too, in (0, 1]."""
    efficient_tokens: float
    """Target tokens of a rank's share from which the efficiency is at least `EFFICIENT`."""
    tokens_per_second: float
    """Real target tokens per second of all ranks, without validation."""
    steps: int
    seconds: float
    """Duration of the whole training, including validation by rank 0."""
    rank_bytes: int
    """Peak resident memory of a rank."""
    storage_bytes: int
    """Size of the run's folder: checkpoints and weights, without the encoded corpus."""

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self.nodes * self.processes

    @property
    def seconds_per_step(self) -> float:
        """Duration of a step, without validation."""
        return self.compute_seconds + self.communication_seconds

    @property
    def device_hours(self) -> float:
        """Hours of all ranks together: hours of cores, or of GPUs."""
        return self.ranks * self.seconds / 3600


def estimate_ranks(
    whole: Estimate,
    sample: Sample,
    nodes: int,
    processes: int,
    network: Network,
    *,
    seconds: float = 15.0,
    on_progress: Callable[[str], object] = lambda _: None,
) -> RanksEstimate:
    """Return the estimate for `processes` ranks on each of `nodes` machines like this one.

    `whole` is the estimate for one process, made from the `sample`. As many ranks as this machine has cores compute at
    the same time for about `seconds` seconds, since they share its memory and caches. More ranks than cores take turns.

    Raises:
        ConfigError: `nodes` or `processes` is not positive, or the ranks do not fit into memory.
    """
    for name, value in (("nodes", nodes), ("processes", processes)):
        if value < 1:
            raise ConfigError(f"{name}: expected a positive integer, got {value}")
    ranks, training = nodes * processes, whole.configuration.training
    together = min(processes, cores())
    own, parts = _share(training, ranks)
    measurements = []
    for part in _SHARES:
        size = max(int(own.batch_tokens * part), 1)
        on_progress(f"training by {together} processes with batches of {size:,} tokens")
        measurements.append(_slowest(sample, replace(own, batch_tokens=size), together, seconds / len(_SHARES)))
    slope = _seconds_per_token(measurements)
    tokens = whole.tokens_per_step / ranks
    turns = max(1.0, processes / cores())
    compute = turns * parts * measurements[-1].seconds / measurements[-1].updates
    on_progress(f"adding gradients of {processes} processes")
    communication = sum_seconds(processes, whole.parameters, shared=nodes == 1)
    if nodes > 1:
        communication += ring_seconds(_BYTES * whole.parameters, ranks, network)
    useful = turns * slope * tokens
    overhead = max(compute + communication - useful, 0.0)
    length, duration = training_length(training, compute + communication, whole.validation_seconds)
    bytes_start, bytes_slope = memory_line(measurements)
    return RanksEstimate(
        nodes=nodes,
        processes=processes,
        network=network if nodes > 1 else None,
        tokens_per_rank=tokens,
        compute_seconds=compute,
        communication_seconds=communication,
        efficiency=useful / (useful + overhead),
        efficient_tokens=EFFICIENT / (1 - EFFICIENT) * overhead / (turns * slope),
        tokens_per_second=whole.tokens_per_step / (compute + communication),
        steps=length,
        seconds=duration,
        rank_bytes=round(bytes_start + bytes_slope * own.batch_tokens),
        storage_bytes=training.keep_checkpoints * whole.checkpoint_bytes + whole.weights_bytes,
    )


def ring_seconds(size: float, ranks: int, network: Network) -> float:
    """Return the time of an all-reduce of `size` bytes in a ring: 2(n − 1)/n · size/bandwidth + 2(n − 1) · latency.

    Each machine sends and receives one stream, however many ranks it has.
    """
    return 2 * (ranks - 1) / ranks * size / network.bandwidth + 2 * (ranks - 1) * network.latency


def sum_seconds(processes: int, numbers: int, *, shared: bool) -> float:
    """Return the median time in which processes of this machine add up `numbers` float32 numbers each.

    They do it in shared memory, as ranks of one machine do, or by gloo, as ranks of several machines do.
    """
    if processes == 1:
        return 0.0
    with tempfile.TemporaryDirectory() as folder:
        meeting = str(Path(folder, "store"))
        jobs = [(rank, processes, meeting, numbers, shared) for rank in range(processes)]
        times = _at_once(_time_sums, jobs)
        return float(np.median(np.max(times, axis=0)))


def _time_sums(job: _Job) -> list[float]:
    """Return the seconds of each sum of one rank."""
    rank, count, meeting, numbers, shared = job
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=count)
    like, times = torch.empty(0), []
    adding = make_sum(like, numbers) if shared else AllReduce(like, numbers)
    for _ in range(_SUMS + 1):
        adding.zeros()
        dist.barrier()
        begun = time.perf_counter()
        adding.total()
        times.append(time.perf_counter() - begun)
    dist.destroy_process_group()
    return times[1:]  # the first one connects the processes


def _share(training: TrainingConfig, ranks: int) -> tuple[TrainingConfig, int]:
    """Return the settings of one batch of a rank, and the number of such batches in its share of an update."""
    alone = replace(training, workers=1, accumulate=1)
    if training.accumulate % ranks == 0:
        return alone, training.accumulate // ranks
    return replace(alone, batch_tokens=max(math.ceil(training.batch_tokens / ranks), 1)), training.accumulate


def _slowest(sample: Sample, training: TrainingConfig, together: int, seconds: float) -> Measurement:
    """Return the slowest measurement of ranks that compute at the same time."""
    job = Workload(
        model=model_config(sample.configuration, sample.source_vocabulary, sample.target_vocabulary),
        training=training,
        examples=sample.examples,
        longest=sample.longest,
        seconds=seconds / 2,  # warming up takes about as long
        threads=1,
        validate=False,
    )
    with ThreadPoolExecutor(together) as threads:
        found = list(threads.map(measured, [job] * together))
    return max(found, key=lambda one: one.seconds / one.target_tokens)


def _seconds_per_token(measurements: Sequence[Measurement]) -> float:
    """Return b > 0 of seconds per update = a + b · target tokens, with a ≥ 0."""
    sizes = [one.target_tokens / one.updates for one in measurements]
    times = [one.seconds / one.updates for one in measurements]
    slope, start = np.polyfit(sizes, times, 1)
    if start < 0 or slope <= 0:
        return times[-1] / sizes[-1]
    return float(slope)


def _at_once(function: Callable[[_Job], list[float]], jobs: Sequence[_Job]) -> list[list[float]]:
    """Return the function's results for all jobs, each in a process of its own, at the same time."""
    with ExitStack() as workers, ThreadPoolExecutor(len(jobs)) as threads:
        each = [workers.enter_context(Worker(function, "adds gradients")) for _ in jobs]
        return list(threads.map(lambda worker, job: worker.ask(job), each, jobs))
