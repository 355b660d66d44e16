"""The machine's settings take effect; benchmarks measure how much time they save."""

import os
import subprocess
import sys

import pytest
import torch

from glassformer.errors import ConfigError
from glassformer.system.machine import device_of, is_intel, keep_memory


def test_memory_is_kept_on_linux_only(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert keep_memory() is False


def test_the_result_says_whether_the_setting_succeeded():
    assert keep_memory() in (True, False)


def test_a_library_without_the_setting_is_not_an_error(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("ctypes.CDLL", missing)
    assert keep_memory() is False


def test_as_many_compiled_products_are_kept_as_wished(monkeypatch):
    monkeypatch.setattr(os, "environ", {})
    keep_memory(1024)
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "1024"


def test_the_users_settings_are_kept(monkeypatch):
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "7")
    monkeypatch.delenv("LRU_CACHE_CAPACITY", raising=False)
    keep_memory()
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "7"
    assert os.environ["LRU_CACHE_CAPACITY"] == "16"


@pytest.mark.parametrize(
    ("told", "expected"), [("vendor_id\t: GenuineIntel\n", True), ("vendor_id\t: AuthenticAMD\n", False), (None, True)]
)
def test_the_vendor_of_the_processor_comes_from_the_system(monkeypatch, tmp_path, told, expected):
    """Without this file (None), Python asks the system."""
    if told is not None:
        (tmp_path / "cpuinfo").write_text(told)
    monkeypatch.setattr("glassformer.system.machine.CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr("platform.processor", lambda: "Intel64 Family 6 Model 85 Stepping 7, GenuineIntel")
    assert is_intel.__wrapped__() is expected


def test_auto_chooses_a_gpu_if_one_exists():
    assert device_of("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("name", ["cpu", "cpu:0"])
def test_a_device_can_be_named(name):
    assert device_of(name) == torch.device(name)


@pytest.mark.parametrize("name", ["", "gpu", "cuda:99", "meta"])
def test_a_missing_device_is_refused_in_one_line(name):
    with pytest.raises(ConfigError, match=r'expected "auto", "cpu", "cuda"') as refused:
        device_of(name)
    assert "\n" not in str(refused.value)
    assert f"got {name!r}" in str(refused.value)


TRAINING = """
import numpy as np, psutil, torch
import glassformer as gf
from glassformer.recipes.configuration import TrainingConfig
from glassformer.corpus.batching import Examples
from glassformer.system.machine import keep_memory
from glassformer.training.loop import steps

keep_memory()
torch.set_num_threads(1)
random, process = np.random.default_rng(1), psutil.Process()
lengths = np.clip(random.normal(14, 4, 20_000).astype(int), 4, 40)
ids = [random.integers(4, 300, length) for length in lengths]
model = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=300, d_model=256, d_ff=1024, heads=4))
config = TrainingConfig(batch_tokens=3000, precision="bf16", steps=140)
used = [process.memory_info().rss for _ in steps(model, Examples(source=ids, target=ids), config)]
print(used[39], used[-1])
"""


@pytest.mark.long
@pytest.mark.skipif(
    not torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="without AVX-512, products in bf16 take half an hour"
)
def test_the_limit_of_compiled_products_saves_memory_in_bf16(monkeypatch):
    """Each product takes about 0.4 MB. The total is 767 MB with 32 products, and 1,024 MB with 1,024 products, which a
    user may set.
    """
    used = []
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", raising=False)
    for kept in (None, "1024"):
        if kept:
            monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", kept)
        answer = subprocess.run([sys.executable, "-c", TRAINING], capture_output=True, text=True, check=True)
        used.append(list(map(int, answer.stdout.split())))
    (early, late), (_, late_without) = used
    assert late - early < 65e6, "with the limit, a hundred updates of ever new shapes take hardly more memory"
    assert late < late_without - 80e6
