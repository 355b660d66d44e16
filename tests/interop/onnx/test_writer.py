"""Folders of ONNX files have the layout that transformers.js expects; tests/clients opens them in transformers.js."""

import json
from importlib.util import find_spec

import pytest

from glassformer.errors import ConfigError, MissingDependencyError
from glassformer.interop.exporting import ExportOptions
from glassformer.interop.onnx.browser import check_runtime
from glassformer.interop.onnx.model import FILES
from glassformer.interop.onnx.writer import export_onnx
from interop.onnx.test_graph import found

pytestmark = pytest.mark.slow

UNVERIFIED = ExportOptions(verified=False)


def names(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def shape(port: bytes) -> list[object]:
    return [size for sizes in found(port, 2, 1, 2, 1) for size in (*found(sizes, 1), *found(sizes, 2))]


@pytest.mark.parametrize(("quantization", "end"), [("float32", ""), ("int8", "_quantized")])
def test_the_folder_has_the_files_that_transformers_js_opens(make_run, tmp_path, quantization, end):
    run = make_run(joint=True)
    folder = tmp_path / "out"
    assert export_onnx(run, folder, ExportOptions(verified=False, quantization=quantization)) is None
    settings = {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"}
    assert names(folder) == settings | {f"onnx/{name}{end}.onnx" for name in FILES}
    config = json.loads((folder / "config.json").read_text())
    assert (config["model_type"], config["decoder_start_token_id"]) == ("marian", 1)


def test_the_cache_has_the_axes_that_transformers_js_fills(run, tmp_path):
    export_onnx(run, tmp_path / "out", UNVERIFIED)
    config = run.model_config
    file = (tmp_path / "out/onnx/decoder_model_merged.onnx").read_bytes()
    caches = [port for port in found(file, 7, 11) if found(port, 1)[0].startswith(b"past_key_values.")]
    assert len(caches) == 4 * config.decoder_layers
    for cache in caches:
        batch, heads, length, width = shape(cache)
        assert (batch, heads, width) == (b"batch_size", config.heads, config.d_k)
        assert isinstance(length, bytes)


def test_two_vocabularies_give_two_tokenizers(run, tmp_path):
    export_onnx(run, tmp_path / "out", UNVERIFIED)
    assert {"source_tokenizer.json", "target_tokenizer.json"} < names(tmp_path / "out")
    assert "tokenizer.json" not in names(tmp_path / "out")


@pytest.mark.skipif(find_spec("onnxruntime") is not None, reason="onnxruntime is installed")
def test_without_onnxruntime_nothing_is_written(run, tmp_path):
    with pytest.raises(MissingDependencyError, match="run `pip install onnxruntime tokenizers`"):
        export_onnx(run, tmp_path / "out", ExportOptions(probes=["the cat sees a dog"]))
    assert names(tmp_path) == set()


# The web page


@pytest.fixture
def runtime(tmp_path):
    """Return a folder with empty files in the places of the page's runtime."""
    folder = tmp_path / "node_modules"
    while True:
        try:
            check_runtime(folder)
        except ConfigError as error:
            file = folder / str(error).split(" does not exist")[0].removeprefix("--page: ").removeprefix(f"{folder}/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        else:
            return folder


def test_a_page_has_its_runtime_and_settings(make_run, runtime, tmp_path):
    export_onnx(make_run(joint=True), tmp_path / "out", ExportOptions(verified=False, page=str(runtime)))
    assert {"index.html", "runtime/transformers.js", "runtime/ort-wasm-simd-threaded.wasm"} < names(tmp_path / "out")
    page = (tmp_path / "out" / "index.html").read_text()
    settings = page.split('<script id="settings" type="application/json">')[1].split("</script>")[0]
    assert json.loads(settings) == {"source": "", "target": "", "dtype": "fp32", "longest": 2048, "extra": 50}
    assert "https:" not in page


def test_a_page_needs_one_vocabulary(run, runtime, tmp_path):
    with pytest.raises(ConfigError, match=r"tokenizer\.joint: expected true for a page"):
        export_onnx(run, tmp_path / "out", ExportOptions(verified=False, page=str(runtime)))


def test_a_page_needs_its_runtime(run, tmp_path):
    with pytest.raises(
        ConfigError, match=r"run `npm i @huggingface/transformers@4\.3\.1 --ignore-scripts` and give its"
    ):
        export_onnx(run, tmp_path / "out", ExportOptions(verified=False, page=str(tmp_path)))
    assert not (tmp_path / "out").exists()
