"""Make the model of a run before its first step: random, with pretrained vectors, or with another run's weights."""

import torch

from glassformer.bundle import Bundle, load_weights
from glassformer.corpus.vectors import read_vectors
from glassformer.errors import ConfigError, quoted
from glassformer.jobs.starting_run import START
from glassformer.model.transformer import Transformer
from glassformer.training.checkpoint import CHECKPOINTS, Checkpoints

__all__ = ["initial_model"]


def initial_model(bundle: Bundle) -> Transformer:
    """Return the model of a run with the weights that it has before the first step."""
    settings = bundle.configuration.training
    torch.manual_seed(bundle.configuration.run.seed)
    model = Transformer(bundle.model_config)
    if settings.init_std:
        _initialise(model, settings.init_std)
    _load_embeddings(model, bundle, resumed=bool(Checkpoints(bundle.folder / CHECKPOINTS, 1).paths()))
    if settings.start_from:
        load_weights(model, bundle.folder / START)
    return model


@torch.no_grad()
def _initialise(model: Transformer, std: float) -> None:
    """Draw all matrices from a normal distribution; biases and norms do not change."""
    for weight in model.parameters():
        if weight.dim() > 1:
            weight.normal_(0.0, std)


def _load_embeddings(model: Transformer, bundle: Bundle, *, resumed: bool) -> None:
    """Load the pretrained vectors; if the run is resumed, only freeze them again: the checkpoint holds the values."""
    config = bundle.configuration.embeddings
    both = bundle.configuration.tokenizer.joint and not bundle.model_config.tie_embeddings
    sides = (
        ("source", config.source, model.source, bundle.source_tokenizer),
        ("target", config.target or (config.source if both else ""), model.target, bundle.target_tokenizer),
    )
    for name, path, embedding, tokenizer in sides:
        if not path:
            continue
        if resumed:
            embedding.tokens.weight.requires_grad_(not config.freeze)
            continue
        vectors, found = read_vectors(path, tokenizer.tokens(range(len(tokenizer))))
        if vectors.shape[1] != bundle.model_config.d_model:
            raise ConfigError(
                f"embeddings.{name}: expected vectors of width model.d_model = {bundle.model_config.d_model}, got "
                f"width {vectors.shape[1]} in {quoted(path)}; make the widths equal"
            )
        embedding.load_vectors(torch.from_numpy(vectors), torch.from_numpy(found), freeze=config.freeze)
