"""Ranks that start quickly: one process imports torch, and forks the ranks of each case, case by case.

    python ranks.py FOLDER < cases.json

For each case, rank 0 writes the final weights to FOLDER/NAME.safetensors. Each rank writes the rows of its batches,
update by update, to FOLDER/NAME-rank-NUMBER.json, and the reason of its end to FOLDER/NAME-ended-NUMBER.txt.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch._dynamo
from safetensors.torch import save_file
from torch.distributed import TCPStore

from glassformer.corpus.batching import Examples
from glassformer.recipes.configuration import TrainingConfig
from glassformer.training import gradients
from glassformer.training.checkpoint import Checkpoints, restore_from
from glassformer.training.distributed import joined
from glassformer.training.loop import steps
from glassformer.training.optimiser import make_optimiser
from glassformer.training.reports import EndReport, StepReport
from models import random_model

LENGTHS = (3, 3, 5, 5, 5, 6, 7, 7, 7, 8, 8, 9, 11, 11, 13, 17, 19, 19, 23, 29, 31, 37)
"""Target lengths: at 40 tokens, nine batches of 1 to 6 pairs, so that ranks without a row or a batch occur."""
CONFIG: dict[str, Any] = {"batch_tokens": 40, "accumulate": 2, "learning_rate": 1e-3, "warmup": 5, "epsilon": 1e-6}


def examples() -> Examples:
    random = np.random.default_rng(1)
    source, target = ([np.append(random.integers(4, 19, length - 1), 2) for length in LENGTHS] for _ in range(2))
    return Examples(source=source, target=target)


def rank(
    folder: Path,
    name: str,
    dtype: str,
    dropout: float,
    resume: str,
    differs: bool,
    diverges: bool,
    killed: bool,
    **settings: Any,
) -> str:
    """Train as one rank, with random weights that are equal on all ranks; return the reason and the step of the end.

    With `differs`, a weight of rank 1 differs in its last bit. With `diverges`, a weight is not a number.
    With `killed`, rank 1 is killed after its first update.
    """
    torch.set_num_threads(1)
    torch.set_default_dtype(getattr(torch, dtype))
    torch.manual_seed(7)
    model = random_model(dropout=dropout, encoder_layers=1, decoder_layers=1)
    config = TrainingConfig(timeout=60, **{**CONFIG, **settings})
    used: list[list[int]] = []
    loss_of = gradients.batch_loss

    def noted(model: Any, batch: Any, *options: Any) -> Any:
        used[-1] += batch.rows.tolist()
        return loss_of(model, batch, *options)

    gradients.batch_loss = noted
    with joined(config) as ranks:
        optimiser = make_optimiser(model, config)
        checkpoints = Checkpoints(folder / name, 1)
        before = Checkpoints(folder / resume, 1).paths() if resume else []
        state = restore_from(before[-1], model, optimiser, None) if resume else None
        weight = model.output.weight.data[0, 0]
        if differs and ranks.number == 1:
            weight.copy_(torch.nextafter(weight, torch.tensor(9.0)))
        if diverges:
            weight.fill_(torch.nan)
        used.append([])
        for report in steps(
            model,
            examples(),
            config,
            optimiser=optimiser,
            state=state,
            checkpoints=checkpoints if ranks.leads else None,
            valid=examples() if "validate_every" in settings else None,
            ranks=ranks,
        ):
            if isinstance(report, StepReport):
                used.append([])
                if killed and ranks.number == 1:
                    os.kill(os.getpid(), signal.SIGKILL)
            if isinstance(report, EndReport):
                ended = f"{report.reason} at step {report.step}"
        (folder / f"{name}-rank-{ranks.number}.json").write_text(json.dumps(used[:-1]))
        if ranks.leads:
            save_file(
                {key: weight.detach() for key, weight in model.named_parameters()}, folder / f"{name}.safetensors"
            )
    return ended


def start(number: int, count: int, port: int) -> None:
    """Set the environment variables of torchrun."""
    here = {"RANK": number, "LOCAL_RANK": number, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in here.items()}, MASTER_ADDR="127.0.0.1")
    os.environ.update(TORCHELASTIC_USE_AGENT_STORE="True", TORCHELASTIC_RESTART_COUNT="0")


def ending(folder: Path, **case: Any) -> str:
    """Train as one rank; return the reason of the end, or the error."""
    try:
        return rank(folder, **case)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


@contextmanager
def served_store() -> Iterator[int]:
    """Yield the port of a store that a separate process serves, as with torchrun.

    If a thread of this process served the store, the thread could hold a lock of the C library during a fork, and the
    forked rank would wait for that lock for ever.
    """
    (reading, writing), (waiting, open_until) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.close(open_until)
        server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        os.write(writing, str(server.port).encode())
        os.read(waiting, 1)  # returns when every process has closed the other end
        os._exit(0)
    os.close(writing)
    port = int(os.read(reading, 9))
    yield port
    for end in (reading, waiting, open_until):
        os.close(end)
    os.waitpid(child, 0)


def train(folder: Path, case: dict[str, Any]) -> None:
    """Fork the ranks of a case, and wait for their ends."""
    children = []
    with served_store() as port:
        for number in range(case["ranks"]):
            children.append(os.fork())
            if not children[-1]:
                start(number, case["ranks"], port)
                ended = ending(folder, **{name: value for name, value in case.items() if name != "ranks"})
                (folder / f"{case['name']}-ended-{number}.txt").write_text(ended)
                os._exit(0)
        for child in children:
            os.waitpid(child, 0)


def main(folder: Path) -> None:
    for case in json.load(sys.stdin):
        train(folder, case)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
