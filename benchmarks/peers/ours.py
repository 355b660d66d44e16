"""glassformer exactly as in its commands: the training loop of `train` and the translator of `translate`.

The other peers read a list of batches, which this training loop made from the task's sentences. The loop itself does
not read the list: it makes its batches as always, and each batch is compared with the list.
"""

import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from benchmarks.peers.task import EXAMPLES, Batch, Task, read_sentences, read_task
from glassformer.corpus.batching import Examples
from glassformer.decoding.options import EngineName, Quantization
from glassformer.model.config import ModelConfig
from glassformer.model.transformer import Transformer
from glassformer.recipes.configuration import TrainingConfig
from glassformer.system.machine import keep_memory
from glassformer.training.gradients import products_to_keep
from glassformer.training.loop import steps
from glassformer.training.reports import StepReport
from glassformer.translator import Translator

RUN = "run"
"""The folder of the trained run."""
QUANTIZATIONS: dict[str, Quantization] = {"fp32": "float32", "bf16": "bfloat16", "int8": "int8"}
"""The name of each precision for `glassformer translate --quantization`."""


class Ours:
    """Trains the task's model, or translates with the run in the same folder."""

    def __init__(self, folder: Path, precision: str, workers: int, engine: EngineName) -> None:
        self.folder, self.precision = folder, precision
        if (folder / RUN).exists():
            quantization = QUANTIZATIONS[precision]
            self.translator = Translator.load(folder / RUN, engine=engine, quantization=quantization, workers=workers)
            return
        task = read_task(folder)
        torch.manual_seed(task.seed)
        source, target = read_sentences(folder / EXAMPLES)
        examples = Examples(source=source, target=target)
        keep_memory(products_to_keep(examples))  # the same as in `glassformer.jobs.run`
        self.updates = 0
        self.reports = steps(
            Transformer(model_config(task)),
            examples,
            training_config(task, precision, workers),
            seed=task.seed,
        )

    def update(self, batch: Batch, number: int, rate: float | None) -> float:
        """Take the loop's next step; its batch must equal this batch of the list."""
        if number != self.updates or rate is not None:
            raise ValueError(f"expected batch {self.updates} without a learning rate, got {number} and {rate}")
        report = next(self.reports)
        if not isinstance(report, StepReport) or report.target_tokens != batch.target_tokens:
            raise ValueError(f"batch {number}: expected {batch.target_tokens} target tokens, got {report}")
        self.updates += 1
        return report.loss

    def translate_texts(self, texts: Sequence[str], beam_size: int, batch_size: int) -> list[str]:
        """Translate as `glassformer translate` does: in its own batches, or one text at a time (batch size 1)."""
        parcels = [texts] if batch_size > 1 else [[text] for text in texts]
        translate = self.translator.translate
        return [one.text for some in parcels for one in translate(some, beam_size=beam_size, log_probs=False)]

    def versions(self) -> dict[str, str]:
        """Return the versions of Python, PyTorch and glassformer."""
        return {"python": sys.version.split()[0], **{name: version(name) for name in ("torch", "glassformer")}}


def make(folder: Path, precision: str, *, workers: int = 1, engine: EngineName = "torch") -> Ours:
    return Ours(folder, precision, workers, engine)


def model_config(task: Task) -> ModelConfig:
    """Return the reference model, with positions in halves, because some peers support only these."""
    return ModelConfig(
        vocab_size=task.vocabulary,
        d_model=task.d_model,
        heads=task.heads,
        d_ff=task.d_ff,
        encoder_layers=task.encoder_layers,
        decoder_layers=task.decoder_layers,
        dropout=task.dropout,
        positions="halves",
    )


def training_config(task: Task, precision: Any, workers: int = 1) -> TrainingConfig:
    """Return the training settings of the reference work."""
    return TrainingConfig(
        batch_tokens=task.batch_tokens,
        learning_rate=task.learning_rate,
        schedule="constant",
        warmup=1,
        label_smoothing=task.smoothing,
        precision=precision,
        workers=workers,
        validate_every=0,
    )
