"""Small random models, for tests and for files that tests write."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import torch

import glassformer as gf
from glassformer.bundle import Bundle
from glassformer.corpus.tasks import CLASSIC
from glassformer.model.config import Activation
from glassformer.recipes.configuration import Configuration
from glassformer.recipes.toml import from_dict, model_config
from glassformer.text.tokenizer import Tokenizer, train_tokenizers
from glassformer.translator import Translator

PRIMES: dict[str, Any] = {
    "source_vocab_size": 19,
    "target_vocab_size": 23,
    "d_model": 11,
    "heads": 3,
    "d_k": 5,
    "d_v": 7,
    "d_ff": 13,
    "encoder_layers": 2,
    "decoder_layers": 2,
}
"""Sizes that are all different, so that swapped axes cannot fit by accident."""
EVEN = {"d_model": 24, "heads": 4, "d_ff": 32, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
"""Sizes of a model for the explorer's page."""


def with_new_activations(
    kinds: Iterable[Mapping[str, Any]], among: Iterable[str] = get_args(Activation)
) -> dict[str, dict[str, Any]]:
    """Return, by name, a kind of model for each of these activations that no given kind has.

    With these kinds, a test also covers an activation that was added after the test was written.
    """
    present = {kind.get("activation", "relu") for kind in kinds}
    return {activation: {"activation": activation} for activation in among if activation not in present}


def random_model(**settings: Any) -> gf.Transformer:
    """Return a small random model in evaluation mode, with prime sizes by default, drawn from torch's generator.

    Every parameter is random, including biases and norms, so that a forgotten or misplaced parameter changes the
    result.
    """
    model = gf.Transformer(gf.ModelConfig(**{**PRIMES, **settings})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model


def new_bundle(
    folder: Path,
    configuration: Configuration,
    source: Sequence[str],
    target: Sequence[str],
    tokenizers: tuple[Tokenizer, Tokenizer] | None = None,
) -> Bundle:
    """Return the bundle of a run that is not yet written, with given tokenizers or with tokenizers of these texts."""
    tokenizers = tokenizers or train_tokenizers(source, target, configuration.tokenizer)
    return Bundle(
        folder=folder,
        configuration=configuration,
        model_config=model_config(configuration, *map(len, tokenizers)),
        source_tokenizer=tokenizers[0],
        target_tokenizer=tokenizers[1],
    )


def random_translator(
    folder: Path,
    source: str = "the cat sees a big black dog and sleeps .",
    target: str = "le chat voit un grand chien noir et dort .",
    name: str = "run",
    seed: int = 31,
    extra_length: int = 50,
    tokenizers: tuple[Tokenizer, Tokenizer] | None = None,
    **settings: Any,
) -> Translator:
    """Return a translator with a random model, in which every parameter matters, and write its run into the folder.

    Without given tokenizers, the translator splits texts into words.
    """
    values = {"data": {"source": "a.tsv"}, "tokenizer": {"kind": "words", "joint": False}}
    decoding = {"beam_size": 3, "length_penalty": 0.6, "extra_length": extra_length}
    configuration = from_dict({**values, "model": {**EVEN, **settings}, "decoding": decoding})
    bundle = new_bundle(folder / name, configuration, [source], [target], tokenizers)
    config = bundle.model_config
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = gf.Transformer(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.15)
            # Outputs of a random model hardly ever end, so the bias of the last norm is changed, which adds a constant
            # to the logit of <eos>.
            last = model.decoder.norm if config.norm == "pre" else model.decoder.layers[-1].feed_forward_residual.norm
            model.output.weight[config.eos_id] += last.bias * 4 / last.bias.square().sum()
    return Translator(bundle, model)


def pair_translator(folder: Path) -> Translator:
    """Return a translator of the explorer's story, with a random model and a run in the folder."""
    data = {"task": "english-french", "source_language": "en", "target_language": "fr"}
    configuration = from_dict({"data": data, "tokenizer": {"joint": False}, "model": EVEN})
    texts = ([getattr(example, side) for example in CLASSIC] for side in ("source", "target"))
    bundle = new_bundle(folder / "pair", configuration, *texts)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        return Translator(bundle, random_model(**bundle.model_config.to_dict()))
