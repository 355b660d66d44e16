from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.corpus.batching import Examples, batches
from glassformer.corpus.shards import ARRAYS, Encoded, Sentences, id_type, open_shards, write_shard
from glassformer.errors import CheckpointError
from glassformer.system.files import hash_of_file

PAIRS = [
    ([5, 6, 7, 2], [9, 2]),
    ([8, 2], [10, 11, 12, 13, 2]),
    ([4, 9, 2], [6, 7, 2]),
    ([2], [2]),
    ([70, 71, 2], [5, 6, 2]),
]
sentences = st.lists(st.integers(3, 40_000), max_size=9)
pairs_of_ids = st.lists(st.tuples(sentences, sentences), min_size=1, max_size=30)


def encoded_of(pairs, kind=np.uint16) -> Encoded:
    source, target = ([ids for pair in pairs for ids in pair[side]] for side in (0, 1))
    lengths = np.array([[len(pair[side]) for pair in pairs] for side in (0, 1)], np.int32)
    return Encoded(np.array(source, kind), np.array(target, kind), lengths)


def written(folder, pairs, cuts=()):
    """Write pairs as shards split at these indices; return the manifest's description of the shards."""
    places = [0, *cuts, len(pairs)]
    return [
        write_shard(folder, f"train-{number:05d}", encoded_of(pairs[begin:end]), too_long=0)
        for number, (begin, end) in enumerate(pairwise(places))
    ]


def lists(examples: Examples):
    return [(source.tolist(), target.tolist()) for source, target in zip(examples.source, examples.target, strict=True)]


@pytest.mark.slow
@given(pairs=pairs_of_ids, data=st.data())
def test_written_examples_are_read_back_from_any_number_of_shards(tmp_path_factory, pairs, data) -> None:
    pairs = [([*source, 2], [*target, 2]) for source, target in pairs]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(pairs)), max_size=3)))
    folder = tmp_path_factory.mktemp("shards")
    examples = open_shards(folder, written(folder, pairs, cuts))
    assert lists(examples) == pairs
    assert len(examples) == len(pairs)
    begin, end = sorted(data.draw(st.tuples(st.integers(0, 31), st.integers(0, 31))))
    assert [ids.tolist() for ids in examples.target[begin:end]] == [target for _, target in pairs[begin:end]]
    row = data.draw(st.integers(-len(pairs), len(pairs) - 1))
    assert examples.source[row].tolist() == pairs[row][0]
    assert examples.target.lengths.tolist() == [len(target) for _, target in pairs]


def test_batches_of_shards_equal_batches_of_lists(tmp_path) -> None:
    random = np.random.default_rng(3)
    pairs = [
        tuple([*random.integers(4, 60_000, random.integers(0, 12)).tolist(), 2] for _ in range(2)) for _ in range(211)
    ]
    mapped = open_shards(tmp_path, written(tmp_path, pairs, [97, 97, 150]))
    source, target = ([np.array(pair[side]) for pair in pairs] for side in (0, 1))
    for ours, theirs in zip(
        batches(mapped, 70, seed=3, epoch=1),
        batches(Examples(source=source, target=target), 70, seed=3, epoch=1),
        strict=True,
    ):
        assert ours.source.tolist() == theirs.source.tolist()
        assert ours.target_output.tolist() == theirs.target_output.tolist()
        assert ours.rows.tolist() == theirs.rows.tolist()


def test_a_stepped_slice_equals_that_of_a_list() -> None:
    examples = encoded_of(PAIRS).examples()
    assert [ids.tolist() for ids in examples.source[::-2]] == [source for source, _ in PAIRS[::-2]]
    assert [len(ids) for ids in examples.source] == examples.source.lengths.tolist()


@pytest.mark.parametrize("row", [5, -6])
def test_a_missing_sentence_is_an_index_error(row: int) -> None:
    with pytest.raises(IndexError):
        encoded_of(PAIRS).examples().source[row]


def test_no_shards_have_no_sentences(tmp_path) -> None:
    examples = open_shards(tmp_path, [])
    assert len(examples) == len(examples.source.lengths) == 0
    assert examples.source[0:5] == [] == list(examples.source)


def test_a_shard_of_only_too_long_pairs_is_valid_and_empty(tmp_path) -> None:
    shard = write_shard(tmp_path, "train-00000", encoded_of([]), too_long=7)
    assert (shard.pairs, shard.too_long) == (0, 7)
    assert shard.is_whole(tmp_path)
    assert len(open_shards(tmp_path, [shard])) == 0


@pytest.mark.parametrize(("size", "kind"), [(4, np.uint16), (65_536, np.uint16), (65_537, np.int32)])
def test_ids_take_two_bytes_if_possible(tmp_path, size: int, kind) -> None:
    assert id_type(size) is kind
    last = size - 1
    shard = write_shard(tmp_path, "train-00000", encoded_of([([last, 2], [2])], id_type(size)), too_long=0)
    [source] = open_shards(tmp_path, [shard]).source
    assert source.tolist() == [last, 2]
    assert np.load(tmp_path / "train-00000.source.npy").dtype == kind


def test_a_shard_describes_its_content(tmp_path) -> None:
    [shard] = written(tmp_path, PAIRS)
    assert (shard.pairs, shard.source_tokens, shard.target_tokens) == (5, 13, 14)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == [f"train-00000.{part}.npy" for part in ("ends", "source", "target")]
    paths = [tmp_path / f"train-00000.{part}.npy" for part in ARRAYS]
    assert shard.sizes == tuple(path.stat().st_size for path in paths)
    assert shard.hashes == tuple(map(hash_of_file, paths))
    assert np.load(paths[2]).tolist() == [[4, 6, 9, 10, 13], [2, 7, 10, 11, 14]]


@pytest.mark.parametrize("part", ["source", "target", "ends"])
@pytest.mark.parametrize("damage", ["missing", "cut", "longer", "a bit"])
def test_every_kind_of_damage_is_detected(tmp_path, part: str, damage: str) -> None:
    [shard] = written(tmp_path, PAIRS)
    assert shard.is_whole(tmp_path)
    path = tmp_path / f"train-00000.{part}.npy"
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        flipped = content[:-3] + bytes([content[-3] ^ 16]) + content[-2:]
        path.write_bytes({"cut": content[:-1], "longer": content + b"\0", "a bit": flipped}[damage])
    assert not shard.is_whole(tmp_path)


@pytest.mark.parametrize("content", [None, b"", b"\x93NUMPY\x01\0v\0{'descr': '<u2'"])
def test_opening_a_file_that_is_not_a_shard_is_an_error_that_names_the_file(tmp_path, content) -> None:
    [shard] = written(tmp_path, PAIRS)
    path = tmp_path / "train-00000.target.npy"
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"train-00000\.target\.npy"):
        open_shards(tmp_path, [shard])


def test_a_failed_write_is_an_error_and_leaves_nothing_behind(tmp_path) -> None:
    (tmp_path / "train-00000.target.npy").mkdir()
    with pytest.raises(CheckpointError, match=r"train-00000\.target\.npy"):
        written(tmp_path, PAIRS)
    assert not list(tmp_path.glob(".*"))


def test_neighbours_are_read_together_and_stay_in_memory(tmp_path) -> None:
    examples = open_shards(tmp_path, written(tmp_path, PAIRS, [2]))
    some = examples.source[1:4]
    assert some[0].base is not None
    assert some[1].base is some[2].base is not some[0].base
    assert not any(isinstance(ids.base, np.memmap) for ids in some)


def test_sentences_are_a_sequence() -> None:
    source = encoded_of(PAIRS).examples().source
    assert isinstance(source, Sentences)
    assert [ids.tolist() for ids in reversed(source)] == [source for source, _ in reversed(PAIRS)]
