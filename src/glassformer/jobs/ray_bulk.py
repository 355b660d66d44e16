"""Run the parts of a bulk translation on a Ray cluster: each actor on a node has a model of its own.

The actors read the input and write the output themselves, so every node must have access to the run, the input and the
output. The driver only assigns parts to actors.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from glassformer.errors import DataError
from glassformer.jobs.bulk import BulkJob, BulkPart, BulkSummary, PartRecord, collected, make_part
from glassformer.jobs.ray_cluster import LOCAL, connected
from glassformer.jobs.ray_pool import ActorPool, ActorTask
from glassformer.jobs.run_reports import ProgressReport

__all__ = ["bulk_with_ray"]


def bulk_with_ray(
    job: BulkJob, address: str = LOCAL, *, on_progress: Callable[[ProgressReport], None] = lambda _: None
) -> BulkSummary:
    """Translate the missing parts of a job on a Ray cluster.

    `address` is the cluster's address, "auto" for the cluster to which this machine belongs, or "local" for a cluster
    of this machine alone. `jobs.bulk.bulk` lists more errors.

    Raises:
        MissingDependencyError: Ray is not installed.
        ConfigError: no cluster has this address.
        DataError: files of some parts cannot be read, or several actors died while translating the same part.
    """
    job.keep_settings()
    parts = job.parts()
    missing = job.missing(parts)
    if not missing:
        return collected(job, [], parts, missing, on_progress)
    ray = connected(address)
    try:
        return collected(job, _results(ray, job, missing), parts, missing, on_progress)
    finally:
        ray.shutdown()


def _results(ray: Any, job: BulkJob, parts: Sequence[BulkPart]) -> Iterator[tuple[BulkPart, PartRecord | DataError]]:
    """Yield each part with its record, or with the error if the part's lines cannot be read."""
    pool = ActorPool(ray, _Actor, job, job.device)
    pool.add(ActorTask(number, f"the part {part.name}", part) for number, part in enumerate(parts))
    while pool.unfinished:
        work, result = pool.next()
        yield work.item, result
        pool.end_idle()


class _Actor:
    """A process on a node of the cluster, whose model translates one part at a time."""

    def __init__(self, job: BulkJob) -> None:
        self.job = job

    def node(self) -> str:
        """Load the model, and return the id of the node."""
        import ray

        self.translator = self.job.translator(workers=1)
        return str(ray.get_runtime_context().get_node_id())

    def ask(self, part: BulkPart) -> PartRecord | DataError:
        """Translate a part; return its record, or the error if the part cannot be read."""
        try:
            return make_part(self.job, self.translator, part)
        except DataError as error:
            return error
