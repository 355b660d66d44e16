"""Shards in an object store give the pairs of local shards, through a cache that stays below its bound."""

import os
import random
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import xxhash
from filelock import FileLock

from glassformer.corpus import shards as module
from glassformer.corpus.batching import stream
from glassformer.corpus.block_cache import BlockCache
from glassformer.corpus.remote_shards import open_remote_shards
from glassformer.corpus.shards import Encoded, open_shards, write_shard
from glassformer.errors import CheckpointError
from glassformer.system.storage import RemoteStorage


def encoded_of(pairs, kind):
    sides = [[pair[side] for pair in pairs] for side in (0, 1)]
    ids = [np.array([one for sentence in side for one in sentence], kind) for side in sides]
    return Encoded(*ids, np.array([[len(sentence) for sentence in side] for side in sides], np.int32))


@pytest.fixture
def blocks(monkeypatch):
    """Make blocks small: seven pairs each."""
    monkeypatch.setattr(module, "BLOCK", 7)


@pytest.fixture
def store(tmp_path, blocks):
    """Return a function that writes pairs as shards locally and at a URL, and opens both."""

    def make(kind=np.uint16, size=10**6, count=100):
        draw = random.Random(5)
        pairs = [
            ([draw.randrange(4, 900) for _ in range(draw.randint(1, 9))] + [2] for _ in range(2)) for _ in range(count)
        ]
        pairs = [tuple(pair) for pair in pairs]
        local = tmp_path / "local"
        local.mkdir()
        cuts = ((0, 45), (45, 45), (45, count))
        written = [
            write_shard(local, f"train-{number:05d}", encoded_of(pairs[begin:end], kind), too_long=0)
            for number, (begin, end) in enumerate(cuts)
        ]
        storage = RemoteStorage(f"memory://{uuid.uuid4().hex}")
        for path in local.iterdir():
            with storage.writing(path.name) as file:
                file.write(path.read_bytes())
        cache = BlockCache(tmp_path / "cache", size)
        return open_shards(local, written), open_remote_shards(storage, cache, local, written), storage, cache

    return make


def used(cache):
    return sum(path.stat().st_size for path in cache.folder.glob("??/*"))


@pytest.mark.parametrize("kind", [np.uint16, np.int32])
@pytest.mark.parametrize("size", [10**6, 400, 1])
def test_remote_pairs_equal_local_pairs(store, kind, size):
    local, remote, _, cache = store(kind, size)
    for side in ("source", "target"):
        here, there = getattr(local, side), getattr(remote, side)
        assert [ids.tolist() for ids in there] == [ids.tolist() for ids in here]
        rows = [*range(len(here)), -1, 3, 50]
        assert all(there[row].tolist() == here[row].tolist() for row in rows)
        assert there[44:46][0].dtype == here[44:46][0].dtype
        assert used(cache) <= size


def test_batches_are_the_same_and_read_ahead(store):
    local, remote, _, _ = store()
    coming = [stream(examples, 60, seed=3) for examples in (local, remote)]
    before = threading.active_count()
    for (batch, after), (same, equal) in zip(*coming, strict=False):
        assert np.array_equal(batch.source, same.source)
        assert np.array_equal(batch.target_output, same.target_output)
        assert after == equal
        if after.epoch == 2:
            break
    for one in coming:
        one.close()
    assert threading.active_count() <= before


def test_each_block_is_fetched_once_and_a_cached_one_that_is_damaged_again(store, monkeypatch):
    _, remote, storage, cache = store()
    read, fetched = storage.read_range, []
    monkeypatch.setattr(storage, "read_range", lambda *place: fetched.append(place) or read(*place))
    for _ in range(3):
        list(remote.source)
    assert len(fetched) == len(set(fetched)) == 7 + 8  # 45 and 55 pairs in blocks of seven
    path = next(cache.folder.glob("??/*"))
    path.write_bytes(b"\0" * path.stat().st_size)
    again = open_remote_shards_like(remote)
    assert [ids.tolist() for ids in again.source] == [ids.tolist() for ids in remote.source]
    assert len(fetched) == 16


def open_remote_shards_like(examples):
    """Return the examples without the blocks that they hold in memory."""
    for ids, _ in (*examples.source._parts, *examples.target._parts):
        ids._recent.cache_clear()
    return examples


@pytest.mark.parametrize(
    ("change", "got"),
    [(lambda content: content[:-4], "is cut short"), (lambda content: content[:-1] + b"\7", "other bytes")],
)
def test_a_changed_object_is_named(store, change, got):
    _, remote, storage, _ = store()
    content = b"".join(storage.read("train-00002.source.npy"))
    with storage.writing("train-00002.source.npy") as file:
        file.write(change(content))
    with pytest.raises(CheckpointError, match=rf"train-00002\.source\.npy has .*{got}"):
        list(remote.source)


def test_the_least_recently_used_block_makes_room(tmp_path):
    cache = BlockCache(tmp_path, 100)
    contents = [bytes([number]) * 30 for number in range(4)]

    def get(content):
        fetched = []
        found = cache.get(
            xxhash.xxh3_64_intdigest(content), len(content), lambda: fetched.append(1) or content, "somewhere"
        )
        assert found == content
        return bool(fetched)

    assert [get(one) for one in contents[:3]] == [True] * 3
    for age, content in enumerate((contents[1], contents[2], contents[0])):  # the first is the oldest
        name = f"{xxhash.xxh3_64_intdigest(content):016x}-30"
        os.utime(tmp_path / name[:2] / name, (age, age))
    assert get(contents[3])
    assert used(cache) <= 100
    assert not get(contents[0])
    assert get(contents[1])


def test_several_readers_stay_below_the_bound(tmp_path):
    """Threads, each with a cache of its own as processes have: each block is right, and the folder never too full."""
    contents = [bytes([number]) * 40 for number in range(30)]
    most, done = [], threading.Event()

    def watch():
        while not done.is_set():
            with FileLock(tmp_path / ".lock"):  # while no block comes or goes
                most.append(sum(path.stat().st_size for path in tmp_path.glob("??/*")))

    def use(seed):
        cache, draw = BlockCache(tmp_path, 500), random.Random(seed)
        for _ in range(60):
            content = draw.choice(contents)
            assert cache.get(xxhash.xxh3_64_intdigest(content), 40, lambda content=content: content, "x") == content

    watcher = threading.Thread(target=watch)
    watcher.start()
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(use, range(8)))
    done.set()
    watcher.join()
    assert 0 < max(most) <= 500
