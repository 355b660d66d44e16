"""Actors on the nodes of a Ray cluster, and the work that waits for them.

Work whose actor or node dies is given to a different node, if there is one. Pending actors make an autoscaling cluster
add nodes.
"""

import logging
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from glassformer.errors import DataError

__all__ = ["ActorPool", "ActorTask", "needs_of_actor"]

_TRIES = 4
"""How often the same work may end its actor before the command gives up."""

_log = logging.getLogger(__name__)


class ActorTask(NamedTuple):
    """A piece of work, which an actor does at a time."""

    number: int
    """A number of its own, from 0."""
    name: str
    """The work in an error message, such as "the part 0-2000"."""
    item: Any
    """The argument of the actor's `ask`."""


_START = ActorTask(-1, "starting", None)
"""Starting an actor, such as loading its model, which is counted like other work."""


def needs_of_actor(resources: Mapping[str, float], device: str) -> tuple[dict[str, int], int]:
    """Return the resources that an actor reserves, and the number of actors for which a cluster has resources.

    An actor has a GPU to itself if the cluster has GPUs, unless the device is "cpu"; to Ray's processes, the GPU that
    they have reserved is the only one of the machine.
    """
    if device != "cpu" and (gpus := int(resources.get("GPU", 0))):
        return {"num_cpus": 1, "num_gpus": 1}, gpus
    return {"num_cpus": 1}, max(1, int(resources.get("CPU", 1)))


class ActorPool:
    """Actors of one class, which are started as work is added, and replaced if they die."""

    def __init__(self, ray: Any, actor: type, argument: Any, device: str = "cpu") -> None:
        """Prepare a pool without actors yet.

        Args:
            ray: Ray's module, connected to the cluster.
            actor: the class of the actors: `node` returns the id of its node once it can work, `ask` does the work.
            argument: the argument of the class, which is sent to each node once.
            device: the device that the actors compute on; see `needs_of_actor`.
        """
        self.ray = ray
        self.argument = ray.put(argument)
        needs, self.places = needs_of_actor(ray.cluster_resources(), device)
        self.actor = ray.remote(**needs)(actor)
        self.waiting: deque[ActorTask] = deque()
        self.starting: dict[Any, Any] = {}
        """Actors that start, or wait for a place, by the result of `node`."""
        self.busy: dict[Any, tuple[Any, str, ActorTask]] = {}
        """Actors at work, with their nodes and work, by the result of `ask`."""
        self.idle: list[tuple[Any, str]] = []
        self.tries = Counter[int]()
        self.failed_on = defaultdict[int, set[str]](set)
        """The nodes on which the actor of some work died, by the work's number."""

    @property
    def unfinished(self) -> int:
        """How much work waits or is being done."""
        return len(self.waiting) + len(self.busy)

    def add(self, work: Iterable[ActorTask]) -> None:
        """Let work wait for an actor; idle actors begin with it."""
        self.waiting += work
        idle, self.idle = self.idle, []
        for actor, node in idle:
            self._give(actor, node)

    def next(self) -> tuple[ActorTask, Any]:
        """Return the work that is done next, with its result; there must be unfinished work.

        Raises:
            DataError: some work, or the start of an actor, has ended several actors.
            the exceptions of the actors' methods.
        """
        while True:
            self._start_actors()
            [done], _ = self.ray.wait([*self.busy, *self.starting], num_returns=1)
            if done in self.starting:
                self._begin(done)
            elif found := self._end(done):
                return found

    def end_idle(self) -> None:
        """End the actors without work, so that others can use their places."""
        for actor, _ in self.idle:
            self.ray.kill(actor)
        self.idle = []

    def close(self) -> None:
        """End all actors."""
        for actor in (*self.starting.values(), *(actor for actor, _, _ in self.busy.values())):
            self.ray.kill(actor)
        self.end_idle()

    def _start_actors(self) -> None:
        """Keep as many actors starting as work or may start now, so that a growing cluster is filled."""
        wanted = max(self.places - len(self.busy), len(self.busy), 1)
        for _ in range(min(wanted, len(self.waiting)) - len(self.starting)):
            actor = self.actor.remote(self.argument)
            self.starting[actor.node.remote()] = actor

    def _begin(self, started: Any) -> None:
        """Give work to an actor that has started."""
        actor = self.starting.pop(started)
        try:
            self._give(actor, self.ray.get(started))
            self.tries[_START.number] = 0
        except self.ray.exceptions.RayActorError as error:
            self._count(_START, error)
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from None

    def _end(self, done: Any) -> tuple[ActorTask, Any] | None:
        """Return finished work with its result, and give its actor the next; or put the work of a dead actor back."""
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
        """Give an actor work, if possible such as has not failed on its node."""
        if not self.waiting:
            self.idle.append((actor, node))
            return
        work = next((one for one in self.waiting if node not in self.failed_on[one.number]), self.waiting[0])
        self.waiting.remove(work)
        self.busy[actor.ask.remote(work.item)] = (actor, node, work)

    def _count(self, work: ActorTask, error: Exception) -> None:
        """Count the death of an actor; the same work may cause a few."""
        self.tries[work.number] += 1
        reason = str(error).partition("\n")[0]
        _log.info("an actor died at %s: %s", work.name, reason)
        if self.tries[work.number] >= _TRIES:
            raise DataError(
                f"{work.name} ended {_TRIES} actors of Ray, perhaps for lack of memory ({reason}); what is complete is "
                "kept: run the same command to resume"
            )
