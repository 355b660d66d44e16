"""A corpus prepared at a URL is downloaded once to each machine, and each of its files is checked."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import word_by_word
from glassformer.errors import CheckpointError
from glassformer.jobs.preparation import prepare
from glassformer.jobs.prepared import shards
from glassformer.jobs.prepared.folder import prepared_folder
from glassformer.recipes.toml import load
from glassformer.system.storage import RemoteStorage

CONFIG = '[data]\nsource = "train.tsv"\n[tokenizer]\nkind = "words"\njoint = false\n'
DAMAGE = [lambda content: content[:-4], lambda content: content[:-1] + b"\7", lambda content: b""]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a folder with a corpus the current folder; use shards of 60 pairs, so that there are four shards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shards, "SHARD", 60)
    (tmp_path / "train.tsv").write_text(word_by_word.tsv(word_by_word.pairs(240, 1, 3, 11)))
    (tmp_path / "small.toml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def url(folder):
    """Return the URL of the prepared corpus, as if another machine had prepared it."""
    url = f"memory://{uuid.uuid4().hex}"
    prepare(settings(folder, url, "first"))
    return url


@pytest.fixture
def downloaded(monkeypatch):
    """Return a list of the files that are downloaded."""
    names, download = [], RemoteStorage.download

    def noted(storage, name, path):
        names.append(name)
        download(storage, name, path)

    monkeypatch.setattr(RemoteStorage, "download", noted)
    return names


def settings(folder, prepared, machine):
    return load(
        folder / "small.toml",
        [f"run.directory={folder / machine}", f"data.prepared={prepared}", f"data.cache={folder / f'{machine}-cache'}"],
    )


def ids(prepared):
    sides = (prepared.train.source, prepared.train.target, prepared.valid.source, prepared.valid.target)
    return [[one.tolist() for one in side] for side in sides]


def test_a_downloaded_corpus_equals_a_prepared_one(folder, url):
    (folder / "train.tsv").rename(folder / "elsewhere.tsv")  # as on a machine that has only the prepared corpus
    there = prepare(settings(folder, url, "second"))
    (folder / "elsewhere.tsv").rename(folder / "train.tsv")
    here = prepare(settings(folder, folder / "prepared", "third"))
    assert ids(there) == ids(here)
    assert (there.made, here.made) == (False, True)


def test_each_file_is_downloaded_once_to_a_machine(folder, url, downloaded):
    configuration = settings(folder, url, "second")
    with ThreadPoolExecutor(3) as processes:
        several = list(processes.map(prepare, [configuration] * 3))
    assert len([name for name in downloaded if name.startswith("train-")]) == 4 * 3
    assert {name for name in downloaded if downloaded.count(name) > 1} == {"manifest.json"}
    assert ids(several[0]) == ids(several[1]) == ids(several[2])


def test_the_machine_that_prepared_a_corpus_does_not_download_it(folder, url, downloaded):
    assert not prepare(settings(folder, url, "first")).made
    assert downloaded == ["manifest.json"]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_in_the_cache_is_downloaded_again(folder, url, downloaded, damage):
    configuration = settings(folder, url, "second")
    before = ids(prepare(configuration))
    path = prepared_folder(configuration) / "train-00002.source.npy"
    path.write_bytes(damage(path.read_bytes()))
    downloaded.clear()
    assert ids(prepare(configuration)) == before
    assert downloaded == ["manifest.json", "train-00002.source.npy"]


@pytest.mark.parametrize("name", ["train-00002.source.npy", "train-00000.ends.npy", "valid.jsonl"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_in_the_store_is_named(folder, url, name, damage):
    storage = RemoteStorage(url)
    content = b"".join(storage.read(name))
    with storage.writing(name) as file:
        file.write(damage(content))
    configuration = settings(folder, url, "second")
    with pytest.raises(CheckpointError, match=f"^{url}/{name} is not the file that was prepared"):
        prepare(configuration)
    assert not Path(prepared_folder(configuration), name).exists()
