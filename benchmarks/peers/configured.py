"""The training loop of glassformer in this checkout or another checkout, with any recipe or configuration."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import torch

from glassformer.jobs.speed.sample import read_sample
from glassformer.model.transformer import Transformer
from glassformer.recipes.toml import load, model_config
from glassformer.system.machine import keep_memory
from glassformer.training import gradients
from glassformer.training.loop import steps
from glassformer.training.reports import StepReport


class Configured:
    """Trains as `glassformer train` does, on a sample of the corpus, without validation."""

    def __init__(self, configuration: str, settings: Sequence[str], data: str | None) -> None:
        sample = read_sample(load(configuration, settings, data))
        training = replace(sample.configuration.training, minutes=0.0, steps=10**9, validate_every=0)
        # `glassformer.jobs.run` calls the same two functions. In older checkouts, the number of products does not
        # depend on the corpus.
        keep = getattr(gradients, "products_to_keep", None)
        keep_memory(*([keep(sample.examples)] if keep else []))
        torch.manual_seed(1)
        model = Transformer(model_config(sample.configuration, sample.source_vocabulary, sample.target_vocabulary))
        coming = steps(model, sample.examples, training, seed=1)
        self.updates = (report for report in coming if isinstance(report, StepReport))

    def steps(self, count: int) -> float:
        """Take the next steps; return the loss of the last step."""
        *_, last = islice(self.updates, count)
        return last.loss

    def versions(self) -> dict[str, str]:
        """Return the versions of Python and PyTorch."""
        return {"python": sys.version.split()[0], "torch": version("torch")}


def make(_: Path, precision: str, *, configuration: str, settings: Sequence[str], path: str | None) -> Configured:
    return Configured(configuration, [*settings, f'training.precision="{precision}"'], path)
