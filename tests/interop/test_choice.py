"""The choice of an engine: the fastest that gives the same answers, or the requested one."""

import logging
import subprocess
import sys

import pytest

from glassformer.errors import ConfigError, MissingDependencyError
from glassformer.interop.choice import EngineRequest, load_engine
from glassformer.interop.ctranslate2.writer import converted, export_ctranslate2
from glassformer.translator import Translator
from interop.huggingface.test_writer import a_run
from interop.small_runs import some


@pytest.fixture
def absent(monkeypatch):
    """Make CTranslate2 unimportable."""
    monkeypatch.setitem(sys.modules, "ctranslate2", None)


@pytest.mark.usefixtures("unchecked")
def test_an_unknown_engine_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"^engine: expected one of auto, torch, ctranslate2, got 'onnx'$"):
        load_engine(a_run(tmp_path / "run"), EngineRequest(engine="onnx"))


@pytest.mark.slow
def test_a_run_is_translated_by_the_chosen_engine(run):
    assert Translator.load(run.folder).engine.name == "torch"
    for engine in ("auto", "ctranslate2"):
        assert load_engine(run, EngineRequest(engine=engine)).name == "ctranslate2"
    assert load_engine(run, EngineRequest(engine="auto")).quantization == "float32"
    assert load_engine(run, EngineRequest(engine="auto", quantization="int8")).quantization == "int8_float32"


@pytest.mark.slow
@pytest.mark.parametrize("quantization", ["bfloat16", "int8"])
def test_the_torch_engine_holds_its_matrices_in_the_chosen_format(run, quantization):
    ours = Translator.load(run.folder, quantization=quantization)
    kinds = {type(module).__name__ for module in ours.model.modules()}
    assert {"bfloat16": "RoundedLinear", "int8": "IntegerLinear"}[quantization] in kinds
    assert ours.translate(["the cat"])[0].tokens


@pytest.mark.slow
def test_pytorch_translates_without_ctranslate2(run, absent, caplog):
    caplog.set_level(logging.INFO)
    assert load_engine(run, EngineRequest(engine="auto")).name == "torch"
    assert "engine torch: CTranslate2 is not installed" in caplog.text
    with pytest.raises(MissingDependencyError, match=r"run `pip install .* '\.\[ctranslate2\]'`"):
        load_engine(run, EngineRequest(engine="ctranslate2"))


@pytest.mark.slow
def test_pytorch_translates_with_models_that_ctranslate2_cannot_express(make_run, caplog):
    caplog.set_level(logging.INFO)
    bundle = make_run(d_k=5)
    assert load_engine(bundle, EngineRequest(engine="auto")).name == "torch"
    assert "engine torch: model.d_k, model.d_v: expected d_model / heads = " in caplog.text
    with pytest.raises(ConfigError, match="the only width that CTranslate2 supports, got 5"):
        load_engine(bundle, EngineRequest(engine="ctranslate2"))


@pytest.mark.slow
def test_pytorch_translates_if_the_conversion_gives_different_answers(make_run, caplog, monkeypatch):
    monkeypatch.setattr("glassformer.interop.verification.EXACT", 0.0)
    assert load_engine(make_run(), EngineRequest(engine="auto")).name == "torch"
    assert "engine torch, because CTranslate2 cannot be used" in caplog.text


@pytest.mark.slow
def test_an_ensemble_is_translated_by_pytorch(run):
    assert Translator.load(run.folder, run.folder, engine="auto").engine.name == "torch"


@pytest.mark.slow
def test_an_export_accepts_only_its_own_engine_and_quantization(run, tmp_path):
    export_ctranslate2(run, tmp_path / "out", "int8")
    assert Translator.load(tmp_path / "out").engine.name == "ctranslate2"
    script = (
        f"import sys, glassformer as gf\ngf.Translator.load({str(tmp_path / 'out')!r}).translate(['the cat'])\n"
        "assert 'ctranslate2' in sys.modules and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    with pytest.raises(ConfigError, match=r"for the engine torch; give the exported run itself$"):
        Translator.load(tmp_path / "out", engine="torch")
    with pytest.raises(ConfigError, match="was exported with int8, not float32; leave out the quantization"):
        Translator.load(tmp_path / "out", engine="auto", quantization="float32")


@pytest.mark.slow
@pytest.mark.parametrize("exported", [True, False], ids=["export", "run"])
def test_a_process_that_translates_with_ctranslate2_never_imports_torch(run, tmp_path, exported):
    folder = tmp_path / "out" if exported else run.folder
    if exported:
        export_ctranslate2(run, folder, "float32")
    else:
        converted(run, "float32")
    script = (
        f"import sys\nfrom glassformer.cli import main\ntry: main(['translate', {str(folder)!r}])\n"
        "except SystemExit as end: assert not end.code\nprint(*sys.modules, file=sys.stderr)"
    )
    text = "\n".join(some(3)) + "\n"
    done = subprocess.run([sys.executable, "-c", script], input=text, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [one.text for one in Translator.load(run.folder).translate(some(3))]
    loaded = set(done.stderr.split())
    assert "ctranslate2" in loaded
    assert not loaded & {"torch", "numpy", "jaxtyping", "rich", "safetensors", "fsspec", "sentencepiece", "sacrebleu"}
