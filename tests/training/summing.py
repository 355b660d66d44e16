"""The program of a rank that adds up numbers with other ranks; each rank is a process."""

from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from glassformer.training import sums

SIZE, UPDATES = 10, 3


def summed(rank: int, count: int, folder: Path, case: str) -> tuple[str, list[list[float]]]:
    """Return the kind of the sum, and its result for each update; the file in shared memory is in the folder."""
    sums.MEMORY = str(folder / "memory")
    dist.init_process_group("gloo", init_method=f"file://{folder / 'store'}", rank=rank, world_size=count)
    with pytest.MonkeyPatch.context() as patch:
        if case == "no room":
            patch.setattr(sums.os, "posix_fallocate", _no_room)
        if case == "two machines" and rank == 1:
            patch.setattr(sums.Path, "exists", lambda _: False)
        adding = sums.make_sum(torch.empty(0, dtype=torch.float64), SIZE)
    results = []
    for update in range(UPDATES):
        adding.zeros().add_(numbers(rank, update))
        results.append(adding.total())
    dist.destroy_process_group()
    return type(adding).__name__, [result.tolist() for result in results]


def numbers(rank: int, update: int) -> torch.Tensor:
    return torch.rand(SIZE, dtype=torch.float64, generator=torch.Generator().manual_seed(10 * rank + update))


def _no_room(*_: object) -> None:
    raise OSError(28, "No space left on device")
