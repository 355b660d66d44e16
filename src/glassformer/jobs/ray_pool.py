"""Actors on the nodes of a Ray cluster, and the tasks that wait for these actors.

If an actor or its node dies, its task is given to an actor on a different node, if there is one. An autoscaling cluster
adds nodes while actors wait for a node.
"""

import logging
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from glassformer.errors import DataError

__all__ = ["ActorPool", "ActorTask", "needs_of_actor"]

_TRIES = 4
"""Number of actors that may die at the same task before the command gives up."""

_log = logging.getLogger(__name__)


class ActorTask(NamedTuple):
    """A task; an actor works on one task at a time."""

    number: int
    """The task's number, from 0; no two tasks have the same number."""
    name: str
    """The task's name in an error message, such as "the part 0-2000"."""
    item: Any
    """The argument of the actor's `ask`."""


_START = ActorTask(-1, "starting", None)
"""The task of starting an actor, such as loading its model; its failures are counted like those of other tasks."""


def needs_of_actor(resources: Mapping[str, float], device: str) -> tuple[dict[str, int], int]:
    """Return the resources that an actor reserves, and the number of actors for which a cluster has resources.

    If the cluster has GPUs and the device is not "cpu", each actor reserves one GPU. Ray hides the machine's other GPUs
    from the actor.
    """
    if device != "cpu" and (gpus := int(resources.get("GPU", 0))):
        return {"num_cpus": 1, "num_gpus": 1}, gpus
    return {"num_cpus": 1}, max(1, int(resources.get("CPU", 1)))


class ActorPool:
    """Actors of one class. Actors are started when tasks are added, and replaced when they die."""

    def __init__(self, ray: Any, actor: type, argument: Any, device: str = "cpu") -> None:
        """Make a pool that has no actors yet.

        Args:
            ray: the module `ray`, connected to the cluster.
            actor: the class of the actors. Its method `node` returns the id of the actor's node as soon as the actor is
                ready; its method `ask` does a task.
            argument: the argument of the class; it is sent to each node once.
            device: the device that the actors compute on; see `needs_of_actor`.
        """
        self.ray = ray
        self.argument = ray.put(argument)
        needs, self.places = needs_of_actor(ray.cluster_resources(), device)
        self.actor = ray.remote(**needs)(actor)
        self.waiting: deque[ActorTask] = deque()
        self.starting: dict[Any, Any] = {}
        """Actors that are starting or waiting for a node, by the pending result of `node`."""
        self.busy: dict[Any, tuple[Any, str, ActorTask]] = {}
        """Actors at work, each with its node and task, by the pending result of `ask`."""
        self.idle: list[tuple[Any, str]] = []
        self.tries = Counter[int]()
        self.failed_on = defaultdict[int, set[str]](set)
        """The nodes on which an actor died at a task, by the task's number."""

    @property
    def unfinished(self) -> int:
        """The number of tasks that wait or are being worked on."""
        return len(self.waiting) + len(self.busy)

    def add(self, work: Iterable[ActorTask]) -> None:
        """Add tasks; idle actors begin to work on them."""
        self.waiting += work
        idle, self.idle = self.idle, []
        for actor, node in idle:
            self._give(actor, node)

    def next(self) -> tuple[ActorTask, Any]:
        """Wait for the next finished task, and return the task and its result. There must be unfinished tasks.

        Raises:
            DataError: several actors died at the same task, or while starting.
            Exception: a method of an actor raised this exception.
        """
        while True:
            self._start_actors()
            [done], _ = self.ray.wait([*self.busy, *self.starting], num_returns=1)
            if done in self.starting:
                self._begin(done)
            elif found := self._end(done):
                return found

    def end_idle(self) -> None:
        """End the idle actors, so that other actors can use the resources."""
        for actor, _ in self.idle:
            self.ray.kill(actor)
        self.idle = []

    def close(self) -> None:
        """End all actors."""
        for actor in (*self.starting.values(), *(actor for actor, _, _ in self.busy.values())):
            self.ray.kill(actor)
        self.end_idle()

    def _start_actors(self) -> None:
        """Start actors for waiting tasks: as many as the free resources allow, and at least as many as are at work.

        Starting as many actors as are at work makes an autoscaling cluster grow.
        """
        wanted = max(self.places - len(self.busy), len(self.busy), 1)
        for _ in range(min(wanted, len(self.waiting)) - len(self.starting)):
            actor = self.actor.remote(self.argument)
            self.starting[actor.node.remote()] = actor

    def _begin(self, started: Any) -> None:
        """Give a task to an actor that has started."""
        actor = self.starting.pop(started)
        try:
            self._give(actor, self.ray.get(started))
            self.tries[_START.number] = 0
        except self.ray.exceptions.RayActorError as error:
            self._count(_START, error)
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from None

    def _end(self, done: Any) -> tuple[ActorTask, Any] | None:
        """Return a finished task with its result, and give its actor a new task; None if the actor died.

        The task of a dead actor waits again.
        """
        actor, node, work = self.busy.pop(done)
        try:
            result = self.ray.get(done)
        except self.ray.exceptions.RayActorError as error:
            self._count(work, error)
            self.failed_on[work.number].add(node)
            self.waiting.append(work)
            return None
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from None
        self._give(actor, node)
        return work, result

    def _give(self, actor: Any, node: str) -> None:
        """Give an actor a waiting task, if possible a task that has not failed on the actor's node."""
        if not self.waiting:
            self.idle.append((actor, node))
            return
        work = next((one for one in self.waiting if node not in self.failed_on[one.number]), self.waiting[0])
        self.waiting.remove(work)
        self.busy[actor.ask.remote(work.item)] = (actor, node, work)

    def _count(self, work: ActorTask, error: Exception) -> None:
        """Count the death of an actor at a task; raise an error if too many actors died at the same task."""
        self.tries[work.number] += 1
        reason = str(error).partition("\n")[0]
        _log.info("an actor died at %s: %s", work.name, reason)
        if self.tries[work.number] >= _TRIES:
            raise DataError(
                f"{work.name}: {_TRIES} Ray actors died, perhaps for lack of memory ({reason}); complete parts are "
                "kept: run the same command to resume"
            )
