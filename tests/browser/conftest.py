"""A real Chromium for the tests of the explorer, without a network."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
SMALL = {"d_model": 24, "heads": 4, "d_ff": 32, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("browser")


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of the browser; in CI its absence is a failure."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None and os.environ.get("CI"):
        pytest.fail("no Chromium: `make test` installs it on Debian; elsewhere put `chromium` on the PATH")
    if path is None:
        pytest.skip("no Chromium on the PATH")
    return path


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Any]:
    """Return a headless browser that all tests of this process share."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """Return a fresh tab of 1280 × 800 that is offline; an error on the page fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, offline=True)
    page, problems = context.new_page(), []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    yield page
    context.close()
    assert problems == []


@pytest.fixture
def make_translator(tmp_path: Path) -> Callable[..., Any]:
    """Return a function that makes a translator of words with a random model, every parameter of which matters."""
    import torch

    import glassformer as gf
    from glassformer.bundle import Bundle
    from glassformer.recipes.toml import from_dict, model_config
    from glassformer.text.tokenizer import train_tokenizers
    from glassformer.translator import Translator

    def make(
        source: str = "the cat sees a big black dog and sleeps .",
        target: str = "le chat voit un grand chien noir et dort .",
        name: str = "run",
        seed: int = 31,
        **model: Any,
    ) -> Translator:
        values = {
            "data": {"source": "a.tsv"},
            "tokenizer": {"kind": "words", "joint": False},
            "model": {**SMALL, **model},
        }
        configuration = from_dict({**values, "decoding": {"beam_size": 3, "length_penalty": 0.6}})
        tokenizers = train_tokenizers([source], [target], configuration.tokenizer)
        config = model_config(configuration, *map(len, tokenizers))
        bundle = Bundle(
            folder=tmp_path / name,
            configuration=configuration,
            model_config=config,
            source_tokenizer=tokenizers[0],
            target_tokenizer=tokenizers[1],
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            made = gf.Transformer(config).eval()
            with torch.no_grad():
                for parameter in made.parameters():
                    parameter.add_(torch.randn_like(parameter), alpha=0.15)
                # Outputs of a random model hardly ever end: <eos> gets a share of every last norm's bias.
                bias = (
                    made.decoder.norm if config.norm == "pre" else made.decoder.layers[-1].feed_forward_residual.norm
                ).bias
                made.output.weight[config.eos_id] += bias * 4 / bias.square().sum()
        return Translator(bundle, made)

    return make


@pytest.fixture
def explore(page: Any, tmp_path: Path) -> Callable[..., Any]:
    """Return a function that opens a translator's page from its file, and returns the tab when the view is ready."""
    from glassformer.explorer.page import html
    from glassformer.explorer.payload import payload

    def open_page(translator: Any, sentence: str = "the black cat sleeps .", *, fragment: str = "", **more: Any) -> Any:
        path = tmp_path / "page.html"
        path.write_bytes(html(payload(translator, sentence) | more).encode("utf-8", "replace"))
        page.goto(path.as_uri() + fragment)
        page.evaluate("() => glassformer.ready.then(() => null)")
        return page

    return open_page
