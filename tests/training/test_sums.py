"""The sum of tensors from all ranks: in shared memory, or by an all-reduce if the ranks cannot share memory."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from glassformer.system.processes import Worker
from training.summing import UPDATES, numbers, summed


@pytest.fixture(scope="module")
def workers():
    """Return the processes of three ranks."""
    with ExitStack() as stack:
        yield [stack.enter_context(Worker(summed, "adds numbers")) for _ in range(3)]


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize(
    ("case", "kind"),
    [
        ("one machine", "_SharedMemory"),
        ("no memory folder", "AllReduce"),
        ("no room", "AllReduce"),
        ("two machines", "AllReduce"),
    ],
)
def test_all_ranks_have_the_sum_bit_for_bit(workers, tmp_path, count, case, kind):
    if case != "no memory folder":
        (tmp_path / "memory").mkdir()
    with ThreadPoolExecutor(count) as threads:
        found = list(threads.map(lambda rank: workers[rank].ask(rank, count, tmp_path, case), range(count)))
    assert all(one == found[0] for one in found)
    assert found[0][0] == kind
    assert len(found[0][1]) == UPDATES
    for update, total in enumerate(found[0][1]):  # even in double precision, the order of the summands may matter
        assert total == pytest.approx(sum(numbers(rank, update) for rank in range(count)).tolist(), rel=1e-15)
    assert not list(tmp_path.glob("memory/*"))
