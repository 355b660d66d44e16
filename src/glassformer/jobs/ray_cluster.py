"""Connect to a Ray cluster, and call functions on its nodes."""

import logging
import os
import socket
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from glassformer.errors import ConfigError, DataError, MissingDependencyError, install_command, quoted
from glassformer.system.machine import LOOPBACK
from glassformer.system.pools import in_order

__all__ = ["LOCAL", "RayNodes", "connected", "ray_nodes"]

LOCAL = "local"
"""The address that stands for a cluster of this machine alone, which ends with the command."""
_TRIES = 4
"""How often an item may end its actor before the command gives up."""
_PATIENCE = 30.0
"""Seconds after which an actor without an answer is replaced, such as one that was to start on a node that died; the
next one has twice the time, because the cluster may be busy."""

Item = TypeVar("Item")
Result = TypeVar("Result")

_log = logging.getLogger(__name__)


def connected(address: str) -> Any:
    """Return Ray's module, connected to the cluster at this address, or to the one of this machine ("auto").

    Raises:
        MissingDependencyError: Ray is not installed.
        ConfigError: no cluster has this address.
    """
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


@contextmanager
def ray_nodes(address: str) -> Iterator["RayNodes"]:
    """Yield the nodes of a cluster as a pool; see `connected` for the errors."""
    ray = connected(address)
    try:
        yield RayNodes(ray)
    finally:
        ray.shutdown()


@dataclass(frozen=True, slots=True, eq=False)
class RayNodes:
    """A pool of one actor per processor of a Ray cluster.

    Items and results travel through this process, so nodes need glassformer, and neither the input nor the output.
    """

    ray: Any
    """Ray's module, connected to the cluster."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
        """Yield the results of a picklable function in the order of the items, which are read as they are needed.

        Raises:
            DataError: an item has ended several actors.
        """
        yield from in_order(self._actors(function), items)

    @contextmanager
    def _actors(self, function: Callable[[Item], Result]) -> Iterator[Sequence["_Restarted"]]:
        stored = self.ray.put(function)
        count = max(1, int(self.ray.cluster_resources().get("CPU", 1)))
        actors = [_Restarted(self.ray, stored) for _ in range(count)]
        try:
            yield actors
        finally:
            for actor in actors:
                self.ray.kill(actor.handle)


class _Calls:
    """What runs in a process of a node."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def ask(self, item: Any) -> Any:
        return self.function(item)


class _Restarted:
    """An actor, or another one if it or its node dies."""

    def __init__(self, ray: Any, function: Any) -> None:
        self.ray, self.function = ray, function
        self.handle = self._started()

    def ask(self, item: Any) -> Any:
        """Return the function's result, or raise its exception."""
        deaths, patience = 0, _PATIENCE
        while deaths < _TRIES:
            try:
                return self.ray.get(self.handle.ask.remote(item), timeout=patience)
            except self.ray.exceptions.GetTimeoutError:
                _log.info("an actor has not answered for %g s", patience)
                self.ray.kill(self.handle)
                patience *= 2
            except self.ray.exceptions.RayActorError as error:
                reason = str(error).partition("\n")[0]
                _log.info("an actor died: %s", reason)
                deaths += 1
            except self.ray.exceptions.RayTaskError as error:
                raise error.cause from None
            self.handle = self._started()
        raise DataError(
            f"the same texts ended {_TRIES} actors of Ray, perhaps for lack of memory ({reason}); what is complete is "
            "kept: run the same command to resume"
        )

    def _started(self) -> Any:
        return self.ray.remote(num_cpus=1)(_Calls).remote(self.function)
