"""Training from an object store whose requests often fail gives the same weights as training from a folder."""

import os
import random
import subprocess
import sys
from pathlib import Path

import fsspec
import pytest
from benchmarks.resume import difference_between_runs

from cli.flaky_store import HOST, flaky_store
from end_to_end.conftest import CONFIG
from glassformer.errors import CheckpointError
from glassformer.jobs import train
from glassformer.jobs.preparation import prepare
from glassformer.recipes.toml import load

PAIRS, KEY = 5_000, "kept-to-itself"
SETTINGS = ("training.steps=24", "training.batch_tokens=4000", "training.validate_every=0", "training.metric=none")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, draw = tmp_path_factory.mktemp("remote"), random.Random(9)
    lines = (" ".join(draw.choices("abcdefgh", k=draw.randint(5, 12))) for _ in range(PAIRS))
    (folder / "train.tsv").write_text("".join(f"{line}\t{line[::-1]}\n" for line in lines))
    (folder / "small.toml").write_text(CONFIG + '[cleaning]\nduplicates = "keep"\n')
    return folder


@pytest.fixture(scope="module")
def store():
    """Return a store's proxy, which refuses or cuts 15 % of the requests; set the environment so that it is used."""
    names = {"KEY_ID": "any", "SECRET_ACCESS_KEY": KEY, "ACCESS_KEY_ID": "any", "DEFAULT_REGION": "us-east-1"}
    with flaky_store(share=0.15) as proxy, pytest.MonkeyPatch.context() as patch:
        for name, value in {**names, "ENDPOINT_URL": f"http://{HOST}:{proxy.server_port}"}.items():
            patch.setenv(f"AWS_{name}", value)
        fsspec.filesystem("s3", skip_instance_cache=True).mkdir("corpus")
        yield proxy


@pytest.fixture
def here(folder, monkeypatch):
    """Make the corpus's folder the current folder."""
    monkeypatch.chdir(folder)
    return folder


def settings(name, place, *others):
    return load("small.toml", [f"run.directory={name}", f"data.prepared={place}", *SETTINGS, *others])


def trained(name, place, *others, stop=lambda: False):
    """Train a run from a corpus in this place, up to its end or until `stop()`; return its folder."""
    train(settings(name, place, *others), stop=stop)
    return Path(name)


def trained_by_two(name, place, *others):
    """Train a run from a corpus in this place, with two ranks; return its folder."""
    given = [f"run.directory={name}", f"data.prepared={place}", *SETTINGS, *others]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "glassformer"]
    command += ["train", "small.toml", *(part for setting in given for part in ("--set", setting))]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    return Path(name)


@pytest.mark.long
def test_a_run_from_an_object_store_equals_one_from_a_folder(here, store):
    alone, both = trained("alone", "prepared"), trained_by_two("both", "prepared")
    prepare(settings("small", "s3://corpus/prepared", "data.cache=cache"))
    assert difference_between_runs(alone, trained("small", "s3://corpus/prepared", "data.cache=cache")) is None
    store.read.clear()
    elsewhere = trained_by_two("elsewhere", "s3://corpus/prepared", "data.cache=cache2")
    assert difference_between_runs(both, elsewhere) is None
    shards = [path for path in store.read if path.startswith("/corpus/prepared/train-")]
    assert len(shards) == len(set(shards)) == 3  # each shard is downloaded once for both ranks
    assert store.refused > 3


@pytest.mark.long
def test_a_run_from_an_object_store_resumes_and_names_what_is_wrong(here, store):
    url, cache = "s3://corpus/again", "data.cache=cache3"
    alone = trained("whole", "prepared2")
    trained("halves", url, cache, stop=iter([False] * 9 + [True]).__next__)
    Path("train.tsv").rename("elsewhere.tsv")  # as on a machine that has only the prepared corpus
    try:
        assert difference_between_runs(alone, trained("halves", url, cache)) is None
    finally:
        Path("elsewhere.tsv").rename("train.tsv")
    files = fsspec.filesystem("s3", skip_instance_cache=True)
    ids = "corpus/again/train-00000.target.npy"
    content = files.cat_file(ids)
    for changed in (content[:-9] + b"123456789", content[: len(content) // 2]):
        files.pipe_file(ids, changed)
        with pytest.raises(CheckpointError, match=r"^s3://corpus/again/train-00000\.target\.npy is not") as error:
            prepare(settings("broken", url, "data.cache=cache4"))
        assert KEY not in str(error.value)
    files.pipe_file("corpus/again/valid.jsonl", b"[]")
    for wrong, error in (
        (url, r"^s3://corpus/again/valid\.jsonl is not the file that was prepared"),
        ("nothing://at/all", "^cannot open nothing://at/all"),
    ):
        with pytest.raises(CheckpointError, match=error):
            prepare(settings("broken", wrong, "data.cache=cache5"))
