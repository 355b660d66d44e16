"""Run the parts of a bulk translation on Ray: actors with a model each, on the nodes of a cluster.

The driver only keeps lists: actors read the input and write the output themselves, so every node must reach the run,
the input and the output. A part whose actor or node dies is given to a different node, if there is one. Pending actors
make an autoscaling cluster add nodes.
"""

import logging
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from glassformer.errors import DataError
from glassformer.jobs.bulk import BulkJob, BulkPart, BulkSummary, PartRecord, collected, make_part
from glassformer.jobs.ray_cluster import LOCAL, connected
from glassformer.jobs.run_reports import ProgressReport

__all__ = ["bulk_with_ray", "needs_of_actor"]

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
    ray = connected(address)
    try:
        return collected(_Pool(ray, job, missing).results(), missing, len(parts), on_progress)
    finally:
        ray.shutdown()


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
            return make_part(self.job, self.translator, part)
        except DataError as error:
            return error


def needs_of_actor(resources: Mapping[str, float], device: str) -> tuple[dict[str, int], int]:
    """Return the resources that an actor reserves, and the number of actors for which a cluster has resources.

    An actor has a GPU to itself if the cluster has GPUs, unless the device is "cpu"; to Ray's processes, the GPU that
    they have reserved is the only one of the machine.
    """
    if device != "cpu" and (gpus := int(resources.get("GPU", 0))):
        return {"num_cpus": 1, "num_gpus": 1}, gpus
    return {"num_cpus": 1}, max(1, int(resources.get("CPU", 1)))


class _Pool:
    """Actors, and the parts that wait for them."""

    def __init__(self, ray: Any, job: BulkJob, parts: Sequence[BulkPart]) -> None:
        self.ray, self.waiting = ray, deque(parts)
        self.job = ray.put(job)
        needs, self.places = needs_of_actor(ray.cluster_resources(), job.device)
        self.actor = ray.remote(**needs)(_Actor)
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
