"""The subjects of an inspection: a model, a run in a folder, or a translator."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch

from glassformer.bundle import Bundle
from glassformer.errors import ConfigError
from glassformer.model.transformer import Transformer

__all__ = ["Trained", "as_it_is", "model_and_run"]


@runtime_checkable
class Trained(Protocol):
    """A model with its run, such as a Translator."""

    @property
    def model(self) -> Transformer:
        """The PyTorch model."""

    @property
    def bundle(self) -> Bundle:
        """The run's configuration and tokenizers."""


def model_and_run(subject: "Transformer | Trained | str | Path") -> tuple[Transformer, Bundle | None]:
    """Return the model, and its run if the model belongs to a run.

    Raises:
        CheckpointError: the folder is not a run.
        ConfigError: the subject is neither a model, nor a run, nor a translator.
    """
    if isinstance(subject, Transformer):
        return subject, None
    if isinstance(subject, str | Path):
        bundle = Bundle.load(subject)
        return bundle.model(), bundle
    if isinstance(subject, Trained):
        return subject.model, subject.bundle
    raise ConfigError(
        f"cannot check a {type(subject).__name__}: give a Transformer, the folder of a run, or a Translator"
    )


@contextmanager
def as_it_is(model: Transformer) -> Iterator[None]:
    """Put a model into evaluation mode within the context; restore its mode and torch's random state afterwards."""
    training = [part for part in model.modules() if part.training]
    model.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            yield
    finally:
        for part in training:
            part.training = True
