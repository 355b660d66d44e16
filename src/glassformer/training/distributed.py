"""Train by several processes, on one machine or on many, that torchrun has started; each process is a rank.

Every rank walks the same stream of batches and takes its share of each update. The sum of all gradients reaches every
rank with the same bits, so that all have the same weights. Rank 0 alone decides and writes.

A collective is an operation in which every rank takes part; the torch functions with this property raise an error in
all ranks that wait for one that was killed or does not answer.
"""

import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from types import TracebackType
from typing import TypeVar

import torch
import torch.distributed as dist
import xxhash
from torch import nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from glassformer.corpus.batching import Batch
from glassformer.errors import ConfigError, DivergenceError, GlassformerError, RankError
from glassformer.recipes.configuration import TrainingConfig
from glassformer.training.gradients import AddGradients
from glassformer.training.sums import make_sum

__all__ = ["ALONE", "Ranks", "gpu_of", "hash_of_weights", "joined"]

BEATS = 4
"""Number of signs of life that rank 0 sends per time-out while the other ranks wait for its work."""
ARRIVING, MEETING = 600.0, 0.05
"""Seconds that a rank waits for the others to start, and between two looks for them."""
POLLING, ROLL_CALL = 0.3, 3.0
"""Seconds between two looks for a roll call, and seconds in which a rank that is alive answers it."""

T = TypeVar("T")


@contextmanager
def joined(timeout: float) -> Iterator["Ranks"]:
    """Yield the ranks that torchrun has started, which then end together, or this process alone.

    `timeout` is the time in seconds after which ranks give up waiting for one that does not answer.

    Raises:
        RankError: a rank was killed, does not answer or fails. Only one rank raises it; the others exit with status 1.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield ALONE
        return
    with _Group(timeout) as ranks:
        yield ranks


class Ranks:
    """The ranks of a training run as seen from one of them. This class is a process alone; it needs no collectives."""

    number = 0
    """The number of this rank, from 0."""
    count = 1
    """The number of ranks."""

    @property
    def leads(self) -> bool:
        """Whether this is rank 0, the only rank that writes files."""
        return self.number == 0

    def place(self, device: torch.device) -> torch.device:
        """Return the device of this rank: of several GPUs, each rank of a machine has its own.

        Raises:
            ConfigError: this machine has fewer GPUs than processes.
        """
        return device

    def sharing(self, model: nn.Module, config: TrainingConfig, add_gradients: AddGradients) -> AddGradients:  # noqa: ARG002 – a group uses them
        """Return `add_gradients` with its work shared among all ranks; each rank passes all batches of the update."""
        return add_gradients

    def agree(self, seconds: float, stop: bool) -> tuple[float, bool]:
        """Return rank 0's seconds, and whether any rank wishes to stop."""
        return seconds, stop

    def decide(self, work: Callable[[], T]) -> T:
        """Return the result of rank 0's work, which only rank 0 does and which may take any time."""
        return work()

    @contextmanager
    def in_turn(self) -> Iterator[None]:
        """Let rank 0 finish the block, which may take any time, before the other ranks begin it."""
        yield

    def check_same(self, what: str, hash_of_own: Callable[[], str]) -> None:
        """Check that all ranks have the same hash.

        Raises:
            RankError: a rank has a different hash than rank 0; the message names the rank and `what` differs.
        """


ALONE = Ranks()
"""The process of a training run without torchrun."""


class _Group(Ranks):
    """Several ranks, connected by gloo for tensors on CPUs and by NCCL for tensors on GPUs."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._passed = 0
        """Number of collectives that this rank has reached."""
        self._ended = threading.Event()
        self._answering = threading.Thread(target=self._answer_roll_calls, daemon=True)

    def __enter__(self) -> "_Group":
        waiting = timedelta(seconds=self._timeout)
        gpus = torch.cuda.is_available() and dist.is_nccl_available()
        try:
            store, self.number, self.count = next(rendezvous("env://", timeout=timedelta(seconds=ARRIVING)))
            self._members = _meet(store, self.number, self.count)
            self._store = PrefixStore(self._members[0], store)
            dist.init_process_group(
                "cpu:gloo,cuda:nccl" if gpus else "gloo",
                store=PrefixStore("group", self._store),
                rank=self.number,
                world_size=self.count,
                timeout=waiting,
            )
        except RuntimeError as error:
            raise RankError(
                f"rank {os.environ['RANK']} on {socket.gethostname()} could not connect to the other ranks: "
                f"{_first_line(error)}; run the same command again"
            ) from error
        self._answering.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave the group; after an error, say so once, and name the rank."""
        speaks = True
        if isinstance(error, DivergenceError):  # which all ranks meet
            speaks = self.leads
        elif error is not None and not isinstance(error, RankError | SystemExit):
            with suppress(RuntimeError):  # the store may be gone, together with the machine that had it
                speaks = self._speaks()
        self._ended.set()
        self._answering.join()
        with suppress(RuntimeError):
            dist.destroy_process_group()
        if not isinstance(error, GlassformerError | OSError):
            return
        if not speaks:
            raise SystemExit(1) from error
        if not isinstance(error, RankError | DivergenceError):
            raise RankError(f"{self._name(self.number)} failed: {error}") from error

    def place(self, device: torch.device) -> torch.device:
        if device.type != "cuda" or device.index is not None:
            return device
        own = gpu_of(int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(own)
        return own

    def sharing(self, model: nn.Module, config: TrainingConfig, add_gradients: AddGradients) -> AddGradients:
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        sizes = [*(weight.numel() for weight in weights), 1]
        with self._collective():
            gradient_sum = make_sum(weights[0], sum(sizes))

        def add_share(batches: Sequence[Batch], tokens: float) -> float:
            # All ranks draw the same number, so that their generators stay equal, and a checkpoint needs only one.
            seed = int(torch.randint(2**62, ()))
            own = _share(batches, self.number, self.count, whole=config.accumulate % self.count == 0)
            earlier = [weight.grad for weight in weights]
            *gradients, loss = gradient_sum.zeros().split(sizes)
            for weight, gradient in zip(weights, gradients, strict=True):
                weight.grad = gradient.view_as(weight)
            gpu = [loss.device] if loss.device.type == "cuda" else []
            with torch.random.fork_rng(gpu):
                torch.manual_seed(seed + self.number)
                loss.fill_(add_gradients(own, tokens))
            with self._collective():
                *gradients, loss = gradient_sum.total().split(sizes)
            for weight, gradient, before in zip(weights, gradients, earlier, strict=True):
                total = gradient.view_as(weight)
                weight.grad = total if before is None else before.add_(total)
            return float(loss)

        return add_share

    def agree(self, seconds: float, stop: bool) -> tuple[float, bool]:
        told = torch.tensor([seconds if self.leads else 0.0, stop], dtype=torch.float64)
        with self._collective():  # one, not two: in a step of a small model, its latency counts
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
        others = [self._name(number) for number, found in enumerate(hashes) if found != hashes[0]]
        if others:
            error = RankError(
                f"{_listed(others)}: expected the same {what} as rank 0, got a different hash; use machines of one "
                "kind with the same versions of glassformer and PyTorch, and a folder that all of them share"
            )
            raise error if self._speaks() else SystemExit(1)

    @contextmanager
    def _living(self) -> Iterator[None]:
        """Tell the waiting ranks regularly, from a thread, that this rank is at work."""
        done = threading.Event()

        def beat() -> None:
            with suppress(RuntimeError):  # the collective that follows this work raises it again
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

    # Failures

    @contextmanager
    def _collective(self) -> Iterator[None]:
        """Turn the error of a collective into an error that names the missing rank."""
        self._passed += 1
        try:
            yield
        except RuntimeError as error:
            raise self._lost(error) from error

    def _lost(self, error: RuntimeError) -> BaseException:
        """Return the error of a collective that failed; one rank speaks for all."""
        try:
            passed = self._roll_call()
            if not self._speaks():
                return SystemExit(1)
        except RuntimeError:
            return RankError(
                f"{self._name(self.number)} lost the connection to the machine of rank 0: {_first_line(error)}; run "
                "the same command to resume"
            )
        behind = [number for number, count in enumerate(passed) if count is not None and count < self._passed]
        missing = [number for number, count in enumerate(passed) if count is None] or behind
        for number in range(self.count):
            if passed[number] is None:  # torchrun would wait half a minute for a rank that is stopped
                self._signal(number, signal.SIGKILL)
        names = _listed([self._name(number) for number in missing]) or "the connection between the ranks"
        if "timed out" in str(error).lower() or "timeout" in str(error).lower():
            what = f"did not answer within {self._timeout:g} s (training.timeout)"
        else:
            what = "was killed or lost its connection"
        return RankError(f"{names} {what}; run the same command to resume from the latest checkpoint")

    def _roll_call(self) -> list[int | None]:
        """Return the number of collectives that each rank has reached; None for ranks that do not answer."""
        self._store.set("roll-call", "")
        keys, until = [f"passed-{number}" for number in range(self.count)], time.monotonic() + ROLL_CALL
        awaited = list(range(self.count))
        while awaited and time.monotonic() < until:
            time.sleep(POLLING / 3)
            awaited = [
                number for number in awaited if not self._store.check([keys[number]]) and self._signal(number, 0)
            ]
        return [int(self._store.get(key)) if self._store.check([key]) else None for key in keys]

    def _answer_roll_calls(self) -> None:
        """Answer a roll call, also while this rank computes; a process that is stopped does not answer."""
        with suppress(RuntimeError):
            while not self._ended.wait(POLLING):
                if self._store.check(["roll-call"]):
                    self._store.set(f"passed-{self.number}", str(self._passed))
                    return

    def _signal(self, number: int, sent: int) -> bool:
        """Send a signal to a rank that this machine's agent has started; return False if the rank has ended."""
        _, process, agent, _ = self._members[number].split()
        if agent == _agent():
            try:
                os.kill(int(process), sent)
            except OSError:
                return False
        return True

    def _speaks(self) -> bool:
        """Return True for the first rank that asks, so that a failure is reported once."""
        return int(self._store.add("spoken", 1)) == 1

    def _name(self, number: int) -> str:
        host, process, *_ = self._members[number].split()
        return f"rank {number} of {self.count} (process {process} on {host})"


def hash_of_weights(model: nn.Module) -> str:
    """Return the xxh3 hash (128 bits) of all weights, as hexadecimal digits."""
    digest = xxhash.xxh3_128()
    for weight in model.parameters():
        digest.update(weight.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def gpu_of(local_rank: int) -> torch.device:
    """Return the GPU of the process with this local rank, as torchrun numbers the processes of one machine.

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


def _meet(store: dist.Store, number: int, count: int) -> list[str]:
    """Return the host, the process id, the agent and the starting time of each rank, once all have come.

    torchrun keeps the store when it starts the ranks again, so a rank may find what an earlier rank 0 has left there.
    Only the present rank 0 repeats the answer of this rank.
    """
    own, until = f"{socket.gethostname()} {os.getpid()} {_agent()} {time.time_ns()}", time.monotonic() + ARRIVING
    if number == 0:
        store.set("first", own)
        keys = [f"{own} {other}" for other in range(1, count)]
        while not store.check(keys):
            if time.monotonic() > until:
                missing = [f"rank {place}" for place, key in enumerate(keys, start=1) if not store.check([key])]
                raise RuntimeError(f"{_listed(missing)} did not come")
            time.sleep(MEETING)
        members = [own, *(store.get(key).decode() for key in keys)]
        store.set(f"{own} all", "\n".join(members))
        return members
    while time.monotonic() < until:
        if store.check(["first"]):
            first = store.get("first").decode()
            store.set(f"{first} {number}", own)
            if store.check([f"{first} all"]):
                present: list[str] = store.get(f"{first} all").decode().split("\n")
                if own in present:
                    return present
        time.sleep(MEETING)
    raise RuntimeError("rank 0 did not come")


def _agent() -> str:
    """Return the number of torchrun's agent on this machine; process ids of different agents may be equal."""
    return os.environ.get("GROUP_RANK", "0")


def _share(batches: Sequence[Batch], number: int, count: int, *, whole: bool) -> list[Batch]:
    """Return a rank's share of an update: whole batches in turn, or every `count`-th row of each batch."""
    if whole:
        return list(batches[number::count])
    return [batch.share(number, count) for batch in batches if len(batch.rows) > number]


def _send(message: bytes | None) -> None:
    """Send a message, or a sign of life, from rank 0 to all other ranks."""
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
