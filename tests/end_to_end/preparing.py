"""Preparations that start quickly: one process imports all modules, and each preparation is a fork of it.

A request is a line of JSON on its standard input; see `obey`. Started as `python -m end_to_end.preparing`.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from end_to_end.zygote import Ended, Forking, answer, fail_or_kill

SHARD, READ_BYTES = 40, 300


class Preparing(Forking):
    """The process that forks preparations."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, [sys.executable, "-m", "end_to_end.preparing"])

    def run(self, prepared: Path, **options: Any) -> tuple[Ended, int]:
        """Prepare small.toml in a folder; return the outcome, and the number of encoded pairs."""
        said = self.folder / "said.txt"
        said.write_text("")
        self._ask(prepared=str(prepared), said=str(said), **options)
        status = self._read()["status"]
        lines = said.read_text().splitlines()
        pairs = max((int(line.removeprefix("pairs ")) for line in lines if line.startswith("pairs ")), default=0)
        return Ended(status, "\n".join(line for line in lines if not line.startswith("pairs "))), pairs


def main() -> None:
    import sentencepiece  # noqa: F401

    import glassformer.corpus.files
    import glassformer.jobs.preparation
    import glassformer.jobs.prepared.shards

    # Four shards of about four blocks each, from a corpus that is small enough to be prepared hundreds of times.
    glassformer.jobs.prepared.shards.SHARD = SHARD
    glassformer.corpus.files.READ_BYTES = READ_BYTES
    answer(pid=os.getpid())
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            obey(**json.loads(line))
        _, status = os.waitpid(pid, 0)
        answer(status=os.waitstatus_to_exitcode(status))


def obey(prepared: str, said: str, fail: int | None = None, kill: int | None = None, workers: int = 1) -> None:
    """Prepare small.toml; fail with a full disk, or be killed, at the n-th change in the folder."""
    import glassformer.corpus.pool
    import glassformer.jobs.preparation
    from glassformer.errors import GlassformerError
    from glassformer.jobs.run_reports import ProgressReport
    from glassformer.recipes.toml import load

    glassformer.corpus.pool.POOL_BYTES = 1 if workers > 1 else 10**9
    output = os.open(said, os.O_WRONLY | os.O_APPEND)
    os.dup2(output, 2)
    happened = fail_or_kill(prepared, fail, kill)

    def on_report(report: object) -> None:
        if isinstance(report, ProgressReport) and report.unit == "pairs":
            os.write(output, f"pairs {report.done}\n".encode())

    status = 0
    try:
        overrides = [f"data.prepared={json.dumps(prepared)}", f"cleaning.workers={workers}"]
        glassformer.jobs.preparation.prepare(load("small.toml", overrides), on_report)
    except GlassformerError as error:
        os.write(output, f"error: {error}\n".encode())
        status = 1
    if fail is not None and not happened:
        os.write(output, b"there was no such touch\n")
    os._exit(status)


if __name__ == "__main__":
    main()
