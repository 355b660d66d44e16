"""Exported folders compute the same as the runs: in onnxruntime, and in transformers.js in Node and in a browser."""

import re
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch

from glassformer.decoding.engine import Job, Search
from glassformer.decoding.hypothesis import EXTRA_LENGTH, max_length
from glassformer.decoding.torch_engine import TorchEngine
from glassformer.interop.exporting import ExportOptions
from glassformer.interop.onnx.writer import export_onnx
from glassformer.recipes.configuration import DecodingConfig
from glassformer.recipes.toml import from_dict
from interop.small_runs import KINDS, SIZES, WORDS, some, write_run
from models import new_bundle, random_model, with_new_activations

pytestmark = pytest.mark.client

ROUNDING = 1e-4
"""Largest allowed difference of a logit or log probability in float32."""
NARROW = 0.1
"""Largest allowed mean difference of a log probability in 8 bits."""
SOURCES = [[5, 6, 7, 2, 0], [9, 8, 4, 11, 2], [10, 2, 0, 0, 0]]
TARGETS = [[1, 4, 5, 6], [1, 9, 8, 7], [1, 2, 3, 4]]
UNTRAINED = {**KINDS, "widths of their own": {"d_k": 5, "d_v": 7}, **with_new_activations(KINDS.values())}


@pytest.fixture(scope="module")
def joint(tmp_path_factory):
    """Return trained runs with one vocabulary, by kind of tokenizer."""
    folder = tmp_path_factory.mktemp("joint")
    return {kind: write_run(folder / kind, joint=True, kind=kind) for kind in ("words", "unigram")}


def untrained(folder, *, joint=False, **model):
    """Write a run of words with a random model; every parameter matters."""
    settings = {"tokenizer": {"kind": "words", "joint": joint}, "model": {**SIZES, **model}}
    run = new_bundle(
        folder, from_dict({"data": {"source": "a.tsv", "max_length": 61}, **settings}), [*WORDS], [*WORDS.values()]
    )
    sizes = run.model_config.to_dict()
    run.save(random_model(**sizes))
    return run


def distinct(count):
    """Return different texts."""
    return [*dict.fromkeys(some(2 * count))][:count]


def outputs(run, texts):
    """Return the run's own outputs by greedy search, as text, and their numbers of tokens."""
    ids = [(*one, 2) for one in run.source_tokenizer.encode_all(texts)]
    jobs = [Job((one,), (), max_length(run.model_config, len(one), EXTRA_LENGTH)) for one in ids]
    found = [best for [best] in TorchEngine(run.model()).decode(jobs, Search(settings=DecodingConfig(beam_size=1)))]
    return run.target_tokenizer.decode_all([one.tokens for one in found]), [job.max_length for job in jobs]


@pytest.mark.parametrize("name", UNTRAINED)
def test_each_graph_computes_the_logits(ask, tmp_path, name):
    run = untrained(tmp_path / "run", **UNTRAINED[name])
    export_onnx(run, tmp_path / "out", ExportOptions(verified=False))
    found = ask("onnx", "onnx_steps", folder=str(tmp_path / "out"), source=SOURCES, target=TARGETS)
    with torch.no_grad():
        ours = run.model()(torch.tensor(SOURCES), torch.tensor(TARGETS))
    for logits in found.values():
        assert (torch.tensor(logits) - ours).abs().max() < ROUNDING


@pytest.mark.parametrize(
    ("quantization", "name", "limit"), [("float32", "largest", ROUNDING), ("int8", "mean", NARROW)]
)
@pytest.mark.parametrize("kind", ["words", "unigram"])
def test_onnxruntime_gives_our_answers(client, joint, tmp_path, quantization, name, limit, kind):
    python = str(client("onnx") / "bin/python")
    options = ExportOptions(quantization=quantization, probes=distinct(200), python=python)
    found = export_onnx(joint[kind], tmp_path / "out", options)
    assert found.outputs == 200
    assert found.cut_differently == 0
    assert getattr(found, name) < limit
    assert quantization == "int8" or found.equal == 200


def test_two_vocabularies_are_two_tokenizers_for_onnxruntime(client, tmp_path):
    run = untrained(tmp_path / "run")
    options = ExportOptions(probes=distinct(20), python=str(client("onnx") / "bin/python"))
    found = export_onnx(run, tmp_path / "out", options)
    assert (found.equal, found.outputs, found.cut_differently) == (20, 20, 0)


@pytest.mark.parametrize("kind", ["words", "unigram"])
def test_the_lines_of_python_in_the_documentation_translate_as_we_do(client, joint, tmp_path, kind):
    page = (Path(__file__).parents[2] / "docs" / "exports.md").read_text(encoding="utf-8")
    [lines] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    export_onnx(joint[kind], tmp_path / "runs/mine-onnx-float32", ExportOptions(verified=False))
    ours = dict(zip(distinct(50), outputs(joint[kind], distinct(50))[0], strict=True))
    text, expected = next(pair for pair in ours.items() if 3 < len(pair[1].split()) < 20)  # an output that ends
    program = lines.replace("The cat slept on the rug.", text)
    assert text in program
    python = client("onnx") / "bin/python"
    done = subprocess.run([python, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"{expected}\n"


@pytest.mark.parametrize("kind", ["words", "unigram"])
def test_transformers_js_translates_as_we_do(ask, joint, tmp_path, kind):
    export_onnx(joint[kind], tmp_path / "out", ExportOptions(verified=False))
    texts = distinct(200)
    ours, limits = outputs(joint[kind], texts)
    found = ask("node", "translate", folder=str(tmp_path / "out"), texts=texts, limits=limits)
    assert found["texts"] == ours


def test_transformers_js_opens_eight_bits(ask, joint, tmp_path):
    export_onnx(joint["words"], tmp_path / "out", ExportOptions(verified=False, quantization="int8"))
    texts = distinct(50)
    ours, limits = outputs(joint["words"], texts)
    found = ask("node", "translate", folder=str(tmp_path / "out"), texts=texts, limits=limits)["texts"]
    assert sum(one == another for one, another in zip(found, ours, strict=True)) > 25


@pytest.fixture
def served(client, joint, tmp_path):
    """Yield the address of an exported page, served by Python's own server."""
    runtime = client("node") / "node_modules"
    export_onnx(joint["words"], tmp_path / "out", ExportOptions(verified=False, page=str(runtime)))
    handler = partial(_Silent, directory=tmp_path / "out")
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Print nothing."""


@pytest.fixture
def tab(browser, served):
    """Yield a tab on the page and the list of requests to other origins, which fail.

    The page's own policy would refuse these requests before they can be counted, so it is off here.
    """
    window = browser.new_context(viewport={"width": 420, "height": 800}, bypass_csp=True)
    page, foreign, problems = window.new_page(), [], []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)

    def answer(route):
        if route.request.url.startswith((served, "data:", "blob:")):
            return route.continue_()
        foreign.append(route.request.url)
        return route.abort()

    window.route("**/*", answer)
    page.goto(served)
    page.locator("#go:not([disabled])").wait_for(timeout=60_000)
    yield page, foreign
    window.close()
    assert problems == []


def test_the_page_translates_without_another_origin(tab, joint):
    page, foreign = tab
    texts = distinct(200)
    page.fill("#source", "\n".join(["", *texts]))
    page.keyboard.press("Control+Enter")
    page.locator("#state", has_text="Done").wait_for(timeout=120_000)
    assert page.locator("#target p").all_text_contents() == ["", *outputs(joint["words"], texts)[0]]
    assert foreign == []


def test_the_page_leaves_out_a_line_that_is_too_long(tab):
    page, _ = tab
    page.fill("#source", "the cat\n" + "the " * 3000)
    page.click("#go")
    page.locator("#state", has_text="1 line has more than 2048 tokens").wait_for(timeout=60_000)


def test_the_page_can_be_used_without_sight(tab):
    from axe_playwright_python.sync_playwright import Axe

    page, _ = tab
    assert Axe().run(page).response["violations"] == []


def test_a_page_opened_as_a_file_says_what_to_do(browser, client, joint, tmp_path):
    runtime = client("node") / "node_modules"
    export_onnx(joint["words"], tmp_path / "out", ExportOptions(verified=False, page=str(runtime)))
    page = browser.new_page()
    page.goto((tmp_path / "out" / "index.html").as_uri())
    page.locator("#state", has_text="python3 -m http.server").wait_for()
    page.close()
