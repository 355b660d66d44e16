"""Train with several processes that torchrun has started on one or more machines; each process is a rank.

Every rank iterates over the same stream of batches and computes its share of each update. Every rank receives the sum
of all gradients with the same bits, so all ranks have the same weights. Only rank 0 makes decisions and writes files.

A collective is an operation in which every rank takes part. If a rank was killed or does not answer, torch's
collectives raise an error in all ranks that wait for this rank.
"""

import os
import pickle
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from types import TracebackType
from typing import TypeVar

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous
from torch.optim import Optimizer

from glassformer.corpus.batching import Batch
from glassformer.errors import ConfigError, DivergenceError, GlassformerError, RankError
from glassformer.model.transformer import Transformer
from glassformer.recipes.configuration import TrainingConfig
from glassformer.training.gradients import AddGradients, Share, next_seed, share_of
from glassformer.training.ranks import ALONE, Ranks
from glassformer.training.sums import make_sum

__all__ = ["gpu_of", "joined"]

BEATS = 4
"""Number of signs of life that rank 0 sends per time-out while it works and the other ranks wait."""
ARRIVING, MEETING = 600.0, 0.05
"""Seconds that a rank waits in all for the other ranks to start, and seconds between two checks."""

T = TypeVar("T")


@contextmanager
def joined(config: TrainingConfig) -> Iterator[Ranks]:
    """Yield the ranks that torchrun has started, or this process alone; an error in one rank ends all ranks.

    `config.timeout` is the time in seconds for which ranks wait for a rank that does not answer.

    Raises:
        ConfigError: torchrun has started ranks, and `config.workers` asks each rank to start more processes.
        RankError: a rank was killed, does not answer or fails. Only one rank raises the error; the other ranks exit
            with status 1.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield ALONE
        return
    if config.workers > 1:
        raise ConfigError(
            f"training.workers: expected 1 under torchrun, got {config.workers}; torchrun itself starts the processes "
            "that share an update: set --nproc-per-node instead"
        )
    with _Group(config.timeout) as ranks:
        yield ranks


class _Group(Ranks):
    """Several ranks, connected by gloo for tensors on CPUs and by NCCL for tensors on GPUs."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout

    def __enter__(self) -> "_Group":
        gpus = torch.cuda.is_available() and dist.is_nccl_available()
        try:
            store, self.number, self.count = next(rendezvous("env://", timeout=timedelta(seconds=ARRIVING)))
            self._store = PrefixStore(_meet(store, self.number, self.count), store)
            dist.init_process_group(
                "cpu:gloo,cuda:nccl" if gpus else "gloo",
                store=PrefixStore("group", self._store),
                rank=self.number,
                world_size=self.count,
                timeout=timedelta(seconds=self._timeout),
            )
        except RuntimeError as error:
            raise RankError(
                f"rank {os.environ['RANK']} could not connect to the other ranks: {_first_line(error)}; run the same "
                "command again"
            ) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave the group; after an error, only one rank reports the error."""
        # All ranks notice a divergence, so rank 0 reports it. Any other error is reported by the first rank that fails.
        speaks = self.leads if isinstance(error, DivergenceError) else error is None or self._speaks()
        with suppress(RuntimeError):
            dist.destroy_process_group()
        if not isinstance(error, GlassformerError | OSError):
            return
        if not speaks:
            raise SystemExit(1) from error
        if not isinstance(error, RankError | DivergenceError):
            raise RankError(f"rank {self.number} of {self.count} failed: {error}") from error

    def place(self, device: torch.device) -> torch.device:
        if device.type != "cuda" or device.index is not None:
            return device
        own = gpu_of(int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(own)
        return own

    @contextmanager
    def sharing(
        self,
        model: Transformer,
        config: TrainingConfig,
        optimiser: Optimizer,  # noqa: ARG002 – used by local ranks, which share the optimiser's products
    ) -> Iterator[AddGradients]:
        share = Share(model, config, self.number)
        with self._collective():
            rows = make_sum(model.output.weight, share.size)

        def add_share(batches: Sequence[Batch], tokens: float) -> float:
            own = share_of(batches, self.number, self.count, config)
            share.add_gradients(rows.zeros(), own, tokens, next_seed())
            with self._collective():
                return float(share.use(rows.total()))

        yield add_share

    def agree(self, seconds: float, stop: bool) -> tuple[float, bool]:
        told = torch.tensor([seconds if self.leads else 0.0, stop], dtype=torch.float64)
        with self._collective():  # a single collective for both numbers, because latency matters for small models
            dist.all_reduce(told)
        return float(told[0]), bool(told[1])

    def decide(self, work: Callable[[], T]) -> T:
        if not self.leads:
            result: T = pickle.loads(self._received())
            return result
        with self._living():
            result = work()
        with self._collective():
            _send(pickle.dumps(result))
        return result

    @contextmanager
    def in_turn(self) -> Iterator[None]:
        if self.leads:
            with self._living():
                yield
            with self._collective():
                _send(b"")
        else:
            self._received()
            yield

    def check_same(self, what: str, hash_of_own: Callable[[], str]) -> None:
        hashes = [""] * self.count
        with self._collective():
            dist.all_gather_object(hashes, hash_of_own())
        others = [f"rank {number} of {self.count}" for number, found in enumerate(hashes) if found != hashes[0]]
        if others:
            raise RankError(
                f"{_listed(others)}: expected the same {what} as rank 0, got a different hash; use machines of one "
                "kind with the same versions of glassformer and PyTorch, and a folder that all of them share"
            )

    @contextmanager
    def _living(self) -> Iterator[None]:
        """Tell the waiting ranks from time to time, in a thread, that this rank still works."""
        done = threading.Event()

        def beat() -> None:
            with suppress(RuntimeError):  # the next collective will raise the error again
                while not done.wait(self._timeout / BEATS):
                    _send(None)

        beating = threading.Thread(target=beat)
        beating.start()
        try:
            yield
        finally:
            done.set()
            beating.join()

    def _received(self) -> bytes:
        """Return rank 0's message, however long rank 0 works before it sends it."""
        while True:
            with self._collective():
                message = _receive()
            if message is not None:
                return message

    @contextmanager
    def _collective(self) -> Iterator[None]:
        """If a collective fails, raise an error with the likely cause and a remedy."""
        try:
            yield
        except RuntimeError as error:
            raise RankError(
                f"a rank was killed, or did not answer within {self._timeout:g} s (training.timeout); run the same "
                "command to resume from the latest checkpoint"
            ) from error

    def _speaks(self) -> bool:
        """Return True in the first rank that calls this method, so that a failure is reported only once."""
        try:
            return int(self._store.add("spoken", 1)) == 1
        except RuntimeError:  # the store's machine no longer answers
            return True


def gpu_of(local_rank: int) -> torch.device:
    """Return the GPU of the process with this local rank; torchrun numbers the processes of each machine from 0.

    Raises:
        ConfigError: the machine has fewer GPUs than processes.
    """
    gpus = torch.cuda.device_count()
    if local_rank >= gpus:
        raise ConfigError(
            f"expected a GPU for each process of this machine, got {gpus} for at least {local_rank + 1}; start "
            f"torchrun with --nproc-per-node {gpus}, or train with --device cpu"
        )
    return torch.device("cuda", local_rank)


def _meet(store: dist.Store, number: int, count: int) -> str:
    """Wait until all ranks have started; return a name for the part of the store that these ranks use.

    torchrun keeps the store when it restarts the ranks, so a rank may find the name of an earlier rank 0 in the store.
    Only the present rank 0 repeats in the store what this rank has written there.
    """
    own, until = uuid.uuid4().hex, time.monotonic() + ARRIVING
    if number == 0:
        store.set("first", own)
    while time.monotonic() < until:
        if number == 0:
            keys = [f"{own} {other}" for other in range(1, count)]
            if store.check(keys):
                store.set(f"{own} all", b" ".join(map(store.get, keys)))
                return own
        elif store.check(["first"]):
            first: str = store.get("first").decode()
            store.set(f"{first} {number}", own)
            if store.check([f"{first} all"]) and own in store.get(f"{first} all").decode().split():
                return first
        time.sleep(MEETING)
    raise RuntimeError(f"not all {count} ranks connected within {ARRIVING:g} s")


def _send(message: bytes | None) -> None:
    """Send a message from rank 0 to all other ranks; None is a sign of life."""
    dist.broadcast(torch.tensor(-1 if message is None else len(message)), 0)
    if message:
        dist.broadcast(torch.frombuffer(bytearray(message), dtype=torch.uint8), 0)


def _receive() -> bytes | None:
    """Return the message of rank 0; None for a sign of life."""
    size = torch.tensor(0)
    dist.broadcast(size, 0)
    if size < 0:
        return None
    message = torch.empty(int(size), dtype=torch.uint8)
    if size:
        dist.broadcast(message, 0)
    return message.numpy().tobytes()


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
