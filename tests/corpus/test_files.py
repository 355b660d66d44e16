import gzip
import io
import lzma
import os
import threading
from collections.abc import Callable
from pathlib import Path

import fsspec
import pytest
import zstandard

from glassformer.corpus import files
from glassformer.corpus.files import blocks, expand, format_of, raw_lines, stored_bytes
from glassformer.corpus.readers import read_lines
from glassformer.errors import DataError

PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor().compress,
    ".xz": lzma.compress,
}
XZ = pytest.param(".xz", id="xz", marks=pytest.mark.slow)  # compressing it takes a third of a second
each_packing = pytest.mark.parametrize("ending", ["", ".gz", ".zst", XZ], ids=["plain", "gz", "zst", None])
each_compression = pytest.mark.parametrize("ending", [".gz", ".zst", XZ], ids=["gz", "zst", None])
TEXT = b"".join(b"line %d \xc3\xa9\r\n" % number for number in range(50_000)) + b"last"


@each_packing
def test_compressed_text_is_read_in_blocks_of_whole_lines(tmp_path: Path, ending: str):
    path = tmp_path / f"text{ending}"
    path.write_bytes(PACK[ending](TEXT))
    read = [*blocks(str(path))]
    assert b"".join(read) == TEXT
    assert len(read) > 2
    assert all(block.endswith(b"\n") for block in read[:-1])
    assert b"".join(raw_lines(path)) == TEXT


@each_packing
def test_files_of_several_compressed_parts_are_read_to_the_end(tmp_path: Path, ending: str):
    path = tmp_path / f"text{ending}"
    path.write_bytes(PACK[ending](TEXT) + PACK[ending](b"more\n") + PACK[ending](b"") + PACK[ending](TEXT))
    assert b"".join(blocks(str(path))) == TEXT + b"more\n" + TEXT


@each_compression
@pytest.mark.parametrize("left", [0, 1, 100, -1])
def test_a_truncated_compressed_file_is_an_error(tmp_path: Path, ending: str, left: int):
    packed = PACK[ending](TEXT)
    (tmp_path / f"text{ending}").write_bytes(packed[:left])
    if left == 0 and ending != ".xz":  # an empty file is an empty text
        assert [*blocks(str(tmp_path / f"text{ending}"))] == []
        return
    with pytest.raises(DataError, match=f"cannot read .*text{ending}"):
        [*blocks(str(tmp_path / f"text{ending}"))]


@each_compression
def test_an_uncompressed_file_with_a_compressed_name_is_an_error(tmp_path: Path, ending: str):
    (tmp_path / f"text{ending}").write_bytes(b"plain text\n" * 100)
    with pytest.raises(DataError, match=f"cannot read .*text{ending}: .*make sure that the file is complete"):
        [*blocks(str(tmp_path / f"text{ending}"))]


@each_packing
def test_a_url_is_read_like_a_file(ending: str):
    url = f"memory://corpus/text{ending}"
    with fsspec.open(url, "wb") as file:
        file.write(PACK[ending](TEXT))
    assert b"".join(blocks(url)) == TEXT
    assert read_lines(url)[-1] == "last"
    assert stored_bytes(url) == len(PACK[ending](TEXT))


def test_a_missing_or_unknown_url_is_an_error():
    with pytest.raises(DataError, match=r"memory://corpus/nothing does not exist: correct the path"):
        expand("memory://corpus/nothing")
    with pytest.raises(DataError, match=r"cannot open nowhere://corpus/text: .*nowhere"):
        expand("nowhere://corpus/text")
    with pytest.raises(DataError, match=r"memory://corpus/no\* matches no file"):
        expand("memory://corpus/no*")


@pytest.mark.parametrize("cut", [1, files.READ_BYTES - 1, files.READ_BYTES, files.READ_BYTES + 1, 3 * files.READ_BYTES])
def test_a_line_may_end_anywhere_in_a_read_block(tmp_path: Path, cut: int):
    text = b"x" * (cut - 1) + b"\n" + b"y\n" * files.READ_BYTES
    (tmp_path / "text").write_bytes(text)
    assert b"".join(blocks(str(tmp_path / "text"))) == text


@pytest.mark.slow
def test_a_file_without_line_ends_does_not_fill_the_memory(tmp_path: Path):
    path = tmp_path / "zeros.zst"
    path.write_bytes(b"".join(PACK[".zst"](part) for part in [b"one\n", bytes(1 << 29)]))
    with pytest.raises(DataError, match=r"zeros\.zst, line 2: expected at most 67,108,864 bytes, got more"):
        [*blocks(str(path))]
    with pytest.raises(DataError, match=r"zeros\.zst, line 2: expected at most 67,108,864 bytes, got more"):
        [*raw_lines(path)]


def test_lines_are_yielded_as_they_arrive(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer_may_end = threading.Event()

    def write() -> None:
        with pipe.open("wb", buffering=0) as file:
            file.write(b"one\ntwo\n")
            writer_may_end.wait()

    writer = threading.Thread(target=write)
    writer.start()
    lines = raw_lines(pipe)
    assert [next(lines), next(lines)] == [b"one\n", b"two\n"]
    writer_may_end.set()
    assert [*lines] == []
    writer.join()


def test_progress_counts_stored_bytes(tmp_path: Path):
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(TEXT))
    seen: list[int] = []
    assert b"".join(blocks(str(path), seen.append)) == TEXT
    assert seen == sorted(seen)
    assert seen[-1] == path.stat().st_size == stored_bytes(str(path))


def test_names_globs_and_lists_are_expanded_to_files_in_order(tmp_path: Path):
    for name in ["b.2.en", "b.1.en", "b.1.de", "a[1].en", "a1.en"]:
        (tmp_path / name).write_text("x\n")
    (tmp_path / "b.0.en").mkdir()
    folder = str(tmp_path)
    assert expand("b.*.en", folder) == (f"{folder}/b.1.en", f"{folder}/b.2.en")
    assert expand(("b.2.en", "b.1.en"), folder) == (f"{folder}/b.2.en", f"{folder}/b.1.en")
    # a file with exactly this name takes precedence over the pattern
    assert expand("a[1].en", folder) == (f"{folder}/a[1].en",)
    assert expand(f"{folder}/b.1.de") == (f"{folder}/b.1.de",)
    assert expand(f"{folder}/b.1.de", "elsewhere") == (f"{folder}/b.1.de",)


def test_globs_and_folders_may_be_urls():
    for name in ["2.txt", "1.txt"]:
        with fsspec.open(f"memory://shards/{name}", "wb") as file:
            file.write(b"x\n")
    found = expand("*.txt", "memory://shards")
    assert [file.rpartition("/")[2] for file in found] == ["1.txt", "2.txt"]
    assert [b"".join(blocks(file)) for file in found] == [b"x\n"] * 2
    assert expand("memory://shards/1.txt", "folder") == ("memory://shards/1.txt",)


def test_a_missing_file_is_an_error_that_names_the_nearest(tmp_path: Path):
    (tmp_path / "train.de.gz").write_bytes(b"")
    with pytest.raises(DataError, match=r"train\.de does not exist \(did you mean 'train\.de\.gz'\?\)"):
        expand("train.de", str(tmp_path))
    with pytest.raises(DataError, match=r"train\.\*\.en matches no file"):
        expand("train.*.en", str(tmp_path))
    with pytest.raises(DataError, match=r"the folder .* does not exist"):
        expand("train.de", str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.tsv", "tsv"),
        ("a.tsv.gz", "tsv"),
        ("a.jsonl.zst", "jsonl"),
        ("a.ndjson", "jsonl"),
        ("a.de.xz", "lines"),
        ("tsv", "lines"),
    ],
)
def test_the_ending_decides_the_format_of_a_file(name: str, kind: str):
    assert format_of(name) == kind


def test_zstandard_is_read_completely_into_small_buffers():
    from glassformer.corpus.zstd import ZstandardFile

    file = ZstandardFile(io.BytesIO(PACK[".zst"](TEXT)))
    pieces = iter(lambda: file.read(7919), b"")
    assert b"".join(pieces) == TEXT


def test_a_pipe_is_read_once_and_can_be_read_again(tmp_path: Path):
    pipe = tmp_path / "pipe.tsv.gz"
    os.mkfifo(pipe)
    packed = gzip.compress(TEXT)
    writer = threading.Thread(target=pipe.write_bytes, args=(packed,))
    writer.start()
    assert expand("pipe.tsv.gz", str(tmp_path)) == (str(pipe),)
    writer.join()
    assert stored_bytes(str(pipe)) == len(packed)
    assert [b"".join(blocks(str(pipe))) for _ in range(2)] == [TEXT, TEXT]
    assert expand(str(pipe)) == (str(pipe),)


def test_a_pipe_outside_a_corpus_is_read_as_it_comes(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = threading.Event()

    def write() -> None:
        with pipe.open("wb", buffering=0) as file:
            file.write(b"first\n")
            assert read.wait(60)

    writer = threading.Thread(target=write)
    writer.start()
    with files.opened(str(pipe)) as file:
        assert file.readline() == b"first\n"
        read.set()
        assert file.read() == b""
    writer.join()


def test_a_folder_instead_of_a_file_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "corpus").mkdir()
    monkeypatch.chdir(tmp_path)
    sentence = "expected a file, got a folder; name a file in the folder"
    for path in ("corpus", f"file://{tmp_path}/corpus"):
        [found] = expand(path)
        with pytest.raises(DataError, match=f"^{path}: {sentence}$"):
            read_lines(found)
        with pytest.raises(DataError, match=f"^{path}: {sentence}$"):
            list(blocks(found))


def test_an_error_of_the_system_is_reported_with_its_reason():
    with pytest.raises(DataError, match=r"^cannot read a+: File name too long; choose a shorter name$"):
        read_lines("a" * 300)


def test_a_loop_of_symbolic_links_is_not_reported_as_missing(tmp_path: Path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(DataError, match=r"loop' cannot be read: Too many levels of symbolic links; correct the path"):
        expand(str(loop))
