"""Run the parts of a bulk translation on Ray: actors with a model each, on the nodes of a cluster.

The driver only keeps lists: actors read the input and write the output themselves, so every node must reach the run,
the input and the output. A part whose actor or node dies is given to a different node, if there is one. Pending actors
make an autoscaling cluster add nodes.
"""

import logging
import os
import socket
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from glassformer.errors import ConfigError, DataError, MissingDependencyError, install_command, quoted
from glassformer.jobs.bulk import BulkJob, BulkPart, BulkSummary, PartRecord, collected, translate_part
from glassformer.jobs.run_reports import ProgressReport
from glassformer.system.machine import LOOPBACK

__all__ = ["LOCAL", "bulk_with_ray"]

LOCAL = "local"
"""The address that stands for a cluster of this machine alone, which ends with the command."""
_TRIES = 4
"""How often a part may end its actor before the command gives up."""

_log = logging.getLogger(__name__)


def bulk_with_ray(
    job: BulkJob, address: str = LOCAL, *, on_progress: Callable[[ProgressReport], None] = lambda _: None
) -> BulkSummary:
    """Translate the missing parts of a job on a Ray cluster; see `jobs.bulk.bulk` for the errors.

    `address` is the cluster's address, "auto" for the cluster to which this machine belongs, or "local".

    Raises:
        MissingDependencyError: Ray is not installed.
        ConfigError: no cluster has this address.
        DataError: files of some parts cannot be read, or a part has ended several actors.
    """
    job.keep_settings()
    parts = job.parts()
    missing = job.missing(parts)
    if not missing:
        return collected([], missing, len(parts), on_progress)
    ray = _connected(address)
    try:
        return collected(_Pool(ray, job, missing).results(), missing, len(parts), on_progress)
    finally:
        ray.shutdown()


def _connected(address: str) -> Any:
    """Return Ray's module, connected to a cluster."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingDependencyError(f"--ray needs Ray: {install_command('ray')}") from error
    own: dict[str, Any] = {"include_dashboard": False, "_node_ip_address": LOOPBACK} if address == LOCAL else {}
    try:
        _check_reachable(address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **own)
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(
            f"--ray: expected the address of a Ray cluster, got {quoted(address)} ({reason}); start a cluster by `ray "
            "start --head`, or leave the address out to use this machine alone"
        ) from error
    return ray


def _check_reachable(address: str) -> None:
    """Raise an error at once if nothing listens at HOST:PORT, for which Ray would wait for minutes."""
    host, _, port = address.rpartition(":")
    if port.isdecimal() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=10).close()


class _Actor:
    """What runs in a process of a node: one model that translates one part at a time."""

    def __init__(self, job: BulkJob) -> None:
        self.job = job

    def node(self) -> str:
        """Load the model, and return the id of the node."""
        import ray

        self.translator = self.job.translator(workers=1)
        return str(ray.get_runtime_context().get_node_id())

    def translate(self, part: BulkPart) -> PartRecord | DataError:
        """Translate a part; a part that cannot be read is an answer, not a failure of the actor."""
        try:
            return translate_part(self.job, self.translator, part)
        except DataError as error:
            return error


class _Pool:
    """Actors, and the parts that wait for them."""

    def __init__(self, ray: Any, job: BulkJob, parts: Sequence[BulkPart]) -> None:
        self.ray, self.waiting = ray, deque(parts)
        self.job = ray.put(job)
        self.places = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self.actor = ray.remote(num_cpus=1)(_Actor)
        self.starting: dict[Any, Any] = {}
        """Actors that load their model, or wait for a place, by the result of `node`."""
        self.busy: dict[Any, tuple[Any, str, BulkPart]] = {}
        """Actors at work, with their nodes and parts, by the result of `translate`."""
        self.tries = Counter[str]()
        self.failed_on = defaultdict[str, set[str]](set)
        """The nodes on which the actor of a part died, by the part's name."""

    def results(self) -> Iterator[tuple[BulkPart, PartRecord | DataError]]:
        """Yield each part with its record, or with the reason why its lines cannot be read.

        Raises:
            DataError: a part has ended several actors.
        """
        while self.waiting or self.busy:
            self._start_actors()
            [done], _ = self.ray.wait([*self.busy, *self.starting], num_returns=1)
            if done in self.starting:
                self._begin(done)
            elif result := self._end(done):
                yield result

    def _start_actors(self) -> None:
        """Keep as many actors starting as work or may start now, so that a growing cluster is filled."""
        wanted = max(self.places - len(self.busy), len(self.busy), 1)
        for _ in range(min(wanted, len(self.waiting)) - len(self.starting)):
            actor = self.actor.remote(self.job)
            self.starting[actor.node.remote()] = actor

    def _begin(self, started: Any) -> None:
        """Give the first part to an actor that has loaded its model."""
        actor = self.starting.pop(started)
        try:
            self._give(actor, self.ray.get(started))
            self.tries[""] = 0
        except self.ray.exceptions.RayActorError as error:
            self._count("", error)
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from None

    def _end(self, done: Any) -> tuple[BulkPart, PartRecord | DataError] | None:
        """Return a translated part, and give its actor the next one; or put the part of a dead actor back."""
        actor, node, part = self.busy.pop(done)
        try:
            result = self.ray.get(done)
        except self.ray.exceptions.RayActorError as error:
            self._count(part.name, error)
            self.failed_on[part.name].add(node)
            self.waiting.append(part)
            return None
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from None
        self._give(actor, node)
        return part, result

    def _give(self, actor: Any, node: str) -> None:
        """Give an actor a part, if possible one that has not failed on its node; end the actor if no part waits."""
        if not self.waiting:
            self.ray.kill(actor)
            return
        part = next((one for one in self.waiting if node not in self.failed_on[one.name]), self.waiting[0])
        self.waiting.remove(part)
        self.busy[actor.translate.remote(part)] = (actor, node, part)

    def _count(self, part: str, error: Exception) -> None:
        """Count the death of an actor; a part, or loading the model, may cause a few."""
        self.tries[part] += 1
        reason = str(error).partition("\n")[0]
        _log.info("an actor died%s: %s", f" at {part}" if part else " while it loaded the model", reason)
        if self.tries[part] >= _TRIES:
            what = f"the part {part}" if part else "loading the model"
            raise DataError(
                f"{what} ended {_TRIES} actors of Ray, perhaps for lack of memory ({reason}); all other complete parts "
                "are kept: run the same command to resume"
            )
