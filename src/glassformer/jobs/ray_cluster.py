"""Connect to a Ray cluster, and call functions on its nodes."""

import logging
import os
import socket
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from glassformer.errors import ConfigError, MissingDependencyError, install_command, quoted
from glassformer.jobs.ray_pool import ActorPool, ActorTask
from glassformer.system.machine import LOOPBACK

__all__ = ["LOCAL", "RayNodes", "connected", "ray_nodes"]

LOCAL = "local"
"""The address that stands for a cluster of this machine alone; the cluster ends with the command."""
Item = TypeVar("Item")
Result = TypeVar("Result")


def connected(address: str) -> Any:
    """Connect to the cluster at an address, or to the cluster of this machine ("auto"); return the module `ray`.

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
            f"--ray: expected the address of a Ray cluster, got {quoted(address)} ({reason}); start a cluster with "
            "`ray start --head`, or leave the address out to use this machine alone"
        ) from error
    return ray


def _check_reachable(address: str) -> None:
    """Raise an error if no server listens at HOST:PORT. Ray itself would wait for minutes before it reports this."""
    host, _, port = address.rpartition(":")
    if port.isdecimal() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=10).close()


@contextmanager
def ray_nodes(address: str) -> Iterator["RayNodes"]:
    """Yield a pool of the cluster's nodes; `connected` lists the errors."""
    ray = connected(address)
    try:
        yield RayNodes(ray)
    finally:
        ray.shutdown()


@dataclass(frozen=True, slots=True, eq=False)
class RayNodes:
    """A pool of one actor per processor of a Ray cluster.

    Items and results are sent through this process. So the nodes need glassformer, but no access to the input or output
    files.
    """

    ray: Any
    """The module `ray`, connected to the cluster."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
        """Yield the results of a picklable function, in the order of the items. Items are read when they are needed.

        Raises:
            DataError: several actors died while working on the same item.
        """
        pool, found, following = ActorPool(self.ray, _Calls, function), dict[int, Result](), 0
        unread = (ActorTask(number, "the same texts", item) for number, item in enumerate(items))
        try:
            while True:
                # Reading items ahead keeps all actors busy; the limit bounds the memory for these items.
                pool.add(islice(unread, 2 * pool.places - pool.unfinished - len(found)))
                if not pool.unfinished:
                    return
                work, result = pool.next()
                found[work.number] = result
                while following in found:
                    yield found.pop(following)
                    following += 1
        finally:
            pool.close()


class _Calls:
    """A process on a node of the cluster, which calls the function."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def node(self) -> str:
        """Return the id of the node."""
        import ray

        return str(ray.get_runtime_context().get_node_id())

    def ask(self, item: Any) -> Any:
        """Return the function's result for an item; an exception of the function is raised here."""
        return self.function(item)
