"""Models and pages for the tests of the explorer, which drive a real browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SMALL = {"d_model": 24, "heads": 4, "d_ff": 32, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("browser")


@pytest.fixture
def make_translator(tmp_path: Path) -> Callable[..., Any]:
    """Return a function that makes a translator of words with a random model, whose every parameter matters."""
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
        extra_length: int = 50,
        **model: Any,
    ) -> Translator:
        values = {
            "data": {"source": "a.tsv"},
            "tokenizer": {"kind": "words", "joint": False},
            "model": {**SMALL, **model},
        }
        decoding = {"beam_size": 3, "length_penalty": 0.6, "extra_length": extra_length}
        configuration = from_dict({**values, "decoding": decoding})
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
                # Outputs of a random model hardly ever end, so <eos> gets a share of the last norms' biases.
                bias = (
                    made.decoder.norm if config.norm == "pre" else made.decoder.layers[-1].feed_forward_residual.norm
                ).bias
                made.output.weight[config.eos_id] += bias * 4 / bias.square().sum()
        return Translator(bundle, made)

    return make


@pytest.fixture
def explore(page: Any, tmp_path: Path) -> Callable[..., Any]:
    """Return a function that opens a translator's page from its file, and returns the tab when the view is ready."""
    from glassformer.explorer.page import page_html
    from glassformer.explorer.payload import LIMITS, payload

    def open_page(
        translator: Any,
        sentence: str = "the black cat sleeps .",
        *,
        fragment: str = "",
        limits: Any = LIMITS,
        **more: Any,
    ) -> Any:
        path = tmp_path / "page.html"
        path.write_bytes(page_html(payload(translator, sentence, limits=limits) | more).encode("utf-8", "replace"))
        page.goto(path.as_uri() + fragment)
        page.evaluate("() => glassformer.ready.then(() => null)")
        return page

    return open_page
