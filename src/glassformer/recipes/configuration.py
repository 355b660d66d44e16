"""The whole configuration of a job: what to train, on what, how, and how to decode. One dataclass a section."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from glassformer.errors import ConfigError
from glassformer.text.tokenizer import TokenizerConfig

__all__ = [
    "Configuration",
    "DataConfig",
    "DecodingConfig",
    "EmbeddingsConfig",
    "RunConfig",
    "TrainingConfig",
]

Metric = Literal["bleu", "chrf", "exact", "wer", "per", "cer", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """[run]: where a job keeps what it makes."""

    directory: str = ""
    """Folder of the run; "runs/" and the configuration's name unless given."""
    seed: int = 1
    """Seed of the initialisation, the order of the data, and dropout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """[data]: a built-in task, or a parallel corpus: two files of equal length, or one TSV file (plain or .gz)."""

    task: str = ""
    """A built-in corpus: "copy" or "english-french"."""
    directory: str = ""
    """Folder that the file names below are relative to; the current one unless given (`--data`)."""
    source: str = ""
    """Training source, one sentence a line; or a .tsv file that holds source and target."""
    target: str = ""
    """Training target, line by line the translation of `source`; not needed with a .tsv file."""
    valid_source: str = ""
    """Validation source; unless given, `valid_lines` pairs are held out of the training data."""
    valid_target: str = ""
    """Validation target."""
    valid_lines: int = 500
    """How many pairs are held out (never more than a tenth) when no validation files are given."""
    max_length: int = 256
    """Longest training sentence, in tokens; longer pairs are left out, and counted."""

    def __post_init__(self) -> None:
        """Check that there is one corpus, whole."""
        if bool(self.task) == bool(self.source):
            got = f"task = {self.task!r}, source = {self.source!r}"
            raise ConfigError(f"data: expected either a built-in task or source files, got {got}")
        if self.task and self.directory:
            raise ConfigError(
                f"data.directory = {self.directory!r} (--data) has no effect on a built-in task: leave it out"
            )
        for name in ("source", "valid_source"):
            _check_pair(name, getattr(self, name), getattr(self, name.replace("source", "target")))
        _check_minimum("data", self, valid_lines=1, max_length=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingsConfig:
    """[embeddings]: pretrained vectors, in word2vec or fastText text format (.vec), for words of the vocabulary."""

    source: str = ""
    """Vectors of the source words; their width must be model.d_model."""
    target: str = ""
    """Vectors of the target words; with a joint vocabulary, `source` serves both."""
    freeze: bool = False
    """Keep the embedding matrix as it is during training."""

    def __post_init__(self) -> None:
        """Check that there is something to freeze."""
        if self.freeze and not (self.source or self.target):
            raise ConfigError("embeddings.freeze = true without vectors: give embeddings.source, or leave it out")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """[training]: how long, in which steps, at which rate."""

    steps: int = 0
    """Updates of the weights in all; 0 = as many as `minutes` allows (100 000 if neither is given, as in the paper)."""
    minutes: float = 0.0
    """Time for training, validation included; 0 = no limit."""
    batch_tokens: int = 4096
    """Size of a batch: target (or source) tokens, padding included."""
    accumulate: int = 1
    """Batches whose gradients are summed up for one update."""
    learning_rate: float = 0.0
    """Peak of the learning rate; 0 = the paper's, (d_model · warmup)^-0.5."""
    schedule: Literal["paper", "cosine", "constant"] = "paper"
    """After the warm-up: down with 1/√step (5.3), down to 0 at the end along a cosine, or level."""
    warmup: int = 4000
    """Updates in which the rate rises linearly to its peak."""
    label_smoothing: float = 0.1
    """Share ε of the target's probability that is spread over the whole vocabulary (5.4)."""
    optimiser: Literal["adam", "adamw"] = "adam"
    """Adam as in the paper (5.3), or AdamW with `weight_decay`."""
    beta1: float = 0.9
    """Decay of Adam's mean of gradients."""
    beta2: float = 0.98
    """Decay of Adam's mean of squared gradients."""
    epsilon: float = 1e-9
    """Adam's ε."""
    weight_decay: float = 0.0
    """AdamW's decay of matrices; biases, norms and embeddings have none."""
    clip_norm: float = 0.0
    """Gradients are scaled down to this norm when theirs is larger; 0 = never."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """Arithmetic of matrix products; bf16 keeps weights, norms, softmax and loss in fp32."""
    validate_every: int = 1000
    """Steps between validations; 0 = only at the end."""
    metric: Metric = "none"
    """A score of greedy translations of the validation set, at every validation."""
    metric_lines: int = 500
    """How many validation lines are translated for it."""
    best_by: Literal["loss", "metric"] = "loss"
    """What decides which weights are kept as the best."""
    patience: int = 0
    """Validations without improvement after which training ends; 0 = never."""
    checkpoint_every: int = 1000
    """Steps between checkpoints, from which a stopped run goes on; one is also written at the end."""
    keep_checkpoints: int = 5
    """How many of the latest checkpoints are kept."""
    snapshots: int = 0
    """How many snapshots are kept for playing the training back: half-precision weights of the latest steps that are
    powers of two (from 8); 0 = none."""
    average: int = 0
    """At the end, the mean of so many latest checkpoints replaces the best weights if it validates better; 0 = off."""
    log_every: int = 50
    """Steps between lines of metrics.jsonl."""

    def __post_init__(self) -> None:
        """Check each number's range, and that no setting is given in vain."""
        _check_minimum("training", self, steps=0, minutes=0, batch_tokens=1, accumulate=1, learning_rate=0, warmup=1)
        _check_minimum("training", self, validate_every=0, metric_lines=1, patience=0, checkpoint_every=1)
        _check_minimum("training", self, keep_checkpoints=1, average=0, log_every=1, clip_norm=0, weight_decay=0)
        _check_minimum("training", self, snapshots=0)
        for name in ("label_smoothing", "beta1", "beta2"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ConfigError(f"training.{name} = {getattr(self, name)!r}: expected a number in [0, 1)")
        if not 0.0 < self.epsilon < math.inf:
            raise ConfigError(f"training.epsilon = {self.epsilon!r}: expected a number above 0")
        self._check_combinations()

    def _check_combinations(self) -> None:
        if self.weight_decay and self.optimiser == "adam":
            raise ConfigError('training.weight_decay has no effect with optimiser = "adam": choose "adamw"')
        if self.best_by == "metric" and self.metric == "none":
            raise ConfigError('training.best_by = "metric" needs training.metric, such as "bleu"')
        if self.average > self.keep_checkpoints:
            raise ConfigError(
                f"training.average = {self.average} needs as many checkpoints, but keep_checkpoints = "
                f"{self.keep_checkpoints}: raise it"
            )

    @property
    def last_step(self) -> int:
        """The step at which training ends at the latest."""
        return self.steps or (100_000 if not self.minutes else 2**62)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingConfig:
    """[decoding]: how translations are searched when the command says nothing else. Paper: §6.1."""

    beam_size: int = 4
    """Hypotheses that are followed side by side; 1 = greedy."""
    length_penalty: float = 0.6
    """α of score = log_prob / ((5 + length) / 6)^α; 0 = the plain sum."""

    def __post_init__(self) -> None:
        """Check each number's range."""
        _check_minimum("decoding", self, beam_size=1, length_penalty=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A whole job. `glassformer.recipes.toml` reads and writes it."""

    data: DataConfig
    run: RunConfig = field(default_factory=RunConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: Mapping[str, Any] = field(default_factory=dict)
    """Fields of ModelConfig, or a `preset` and what differs from it; the vocabulary's size comes from the tokenizer."""
    embeddings: EmbeddingsConfig = field(default_factory=EmbeddingsConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)


def _check_minimum(section: str, config: object, **minima: int) -> None:
    for name, minimum in minima.items():
        if not minimum <= getattr(config, name) < math.inf:
            raise ConfigError(f"{section}.{name} = {getattr(config, name)!r}: expected a number of at least {minimum}")


def _check_pair(name: str, source: str, target: str) -> None:
    both = source.removesuffix(".gz").endswith(".tsv")
    other = name.replace("source", "target")
    if source and both and target:
        raise ConfigError(f"data.{other} = {target!r} would be ignored: {source!r} holds source and target")
    if source and not both and not target:
        raise ConfigError(f"data.{other} is missing: give the translation of {name} = {source!r}, or one .tsv file")
    if target and not source:
        raise ConfigError(f"data.{name} is missing, but {other} = {target!r} is given")
