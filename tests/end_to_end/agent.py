"""A torchrun that starts quickly: a process that has imported everything forks torchrun's agent, which forks the ranks.

The agent is torchrun's own agent, but it starts each rank as a fork. The command `torchrun` would start an interpreter.
"""

import json
import os
import sys
import time
import traceback
import uuid
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path

import psutil

from end_to_end.zygote import Ended, Forking, answer, preload

_NUMBERS = count()


class Agents(Forking):
    """The process that forks agents."""

    def __init__(self, folder: Path, prefix: Iterable[str] = ()) -> None:
        super().__init__(folder, [*prefix, sys.executable, str(Path(__file__).resolve())])

    def start(self, *settings: str, ranks: int = 2, restarts: int = 0) -> "Launch":
        """Start training small.toml with these settings; wait for its end before the next start."""
        said = self.folder / f"said-by-ranks-{next(_NUMBERS)}.txt"
        said.touch()
        self._ask(said=str(said), settings=settings, ranks=ranks, restarts=restarts)
        return Launch(psutil.Process(self._read()["pid"]), said, lambda: self._read()["status"])

    def run(self, *settings: str, ranks: int = 2) -> Ended:
        """Start a training run and wait for its end."""
        return self.start(*settings, ranks=ranks).ended()


class Launch:
    """A training run with several ranks, and the agent that has started the ranks."""

    def __init__(self, agent: psutil.Process, said: Path, status: Callable[[], int]) -> None:
        self.agent, self._said, self._status = agent, said, status

    def ended(self) -> Ended:
        """Wait for the end."""
        return Ended(self._status(), self._said.read_text())

    def errors(self) -> list[str]:
        """Return the error messages of the ranks so far."""
        return [line for line in self._said.read_text().splitlines() if line.startswith("error: ")]

    def wait_until(self, seen: Callable[[], object]) -> None:
        """Wait until a condition holds; fail if the training ends first."""
        while not seen():
            assert self.agent.is_running(), self._said.read_text()
            assert self.agent.status() != psutil.STATUS_ZOMBIE, self._said.read_text()
            time.sleep(0.005)


def main() -> None:
    import torch.distributed.run  # noqa: F401 – imported once, for all agents

    import glassformer.watch.report  # noqa: F401 – imported once, for all ranks

    preload()
    answer(pid=os.getpid())
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            obey(**json.loads(line))
        answer(pid=pid)
        _, status = os.waitpid(pid, 0)
        answer(status=os.waitstatus_to_exitcode(status))


def obey(said: str, settings: list[str], ranks: int, restarts: int) -> None:
    """Start the ranks as torchrun would, and end with its status."""
    from torch.distributed.launcher.api import elastic_launch
    from torch.distributed.run import config_from_args, parse_args

    output = os.open(said, os.O_WRONLY | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    rendezvous = ["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", f"--rdzv-id={uuid.uuid4()}"]
    options = [f"--nproc-per-node={ranks}", f"--max-restarts={restarts}", "--shutdown-timeout=3"]
    config, *_ = config_from_args(parse_args([*rendezvous, *options, "-m", "glassformer"]))
    config.start_method = "fork"
    status = 0
    try:
        elastic_launch(config, train)(settings)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stderr.flush()
    os._exit(status)


def train(settings: list[str]) -> None:
    """Run the command as one rank."""
    from glassformer.cli import main

    try:
        main(["train", "small.toml", *(part for setting in settings for part in ("--set", setting))])
    except SystemExit as end:
        sys.stdout.flush()
        if end.code:
            raise


if __name__ == "__main__":
    main()
