"""The whole configuration of a job: what to train, on what, how, and how to decode. One dataclass a section."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from glassformer.errors import ConfigError
from glassformer.text.cleaning import CleaningConfig
from glassformer.text.files import Format, files_of, format_of
from glassformer.text.tokenizer import TokenizerConfig

__all__ = [
    "Configuration",
    "DataConfig",
    "DecodingConfig",
    "EmbeddingsConfig",
    "Precision",
    "RunConfig",
    "TrainingConfig",
]

Files = str | tuple[str, ...]
"""One file, glob or URL, or several."""

_SIDES = ("source", "valid_source", "test_source")

Metric = Literal["bleu", "chrf", "exact", "word_error", "wer", "per", "cer", "none", "auto"]
Optimiser = Literal["auto", "adam", "adamw", "muon"]
Precision = Literal["auto", "fp32", "bf16", "fp16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """[run]: where a job keeps what it makes."""

    directory: str = ""
    """Folder of the run; "runs/" and the configuration's name unless given."""
    seed: int = 1
    """Seed of the initialisation, the order of the data, and dropout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """[data]: a built-in task, or a parallel corpus: two files of equal length, or one TSV or JSONL file.

    Where a file is named, a list of files, a glob ("train.*.en.gz") or a URL that fsspec can open will do as well; a
    name that ends in .gz, .zst or .xz is unpacked.
    """

    task: str = ""
    """A built-in corpus: "copy" or "english-french"."""
    directory: str = ""
    """Folder that the file names below are relative to; the current one unless given (`--data`)."""
    source: Files = ""
    """Training source, one sentence a line; or a .tsv or .jsonl file that holds source and target."""
    target: Files = ""
    """Training target, line by line the translation of `source`; not needed with .tsv and .jsonl files."""
    source_column: int | str | None = None
    """Column of the source: in TSV its number from 0 or its name in the first line (0 unless given), in JSONL the
    field's name ("source" unless given)."""
    target_column: int | str | None = None
    """Column of the target (1, and "target")."""
    valid_source: Files = ""
    """Validation source; unless given, `valid_lines` pairs are held out of the training data."""
    valid_target: Files = ""
    """Validation target."""
    test_source: Files = ""
    """Test source: only looked at to find out whether training pairs are in it too."""
    test_target: Files = ""
    """Test target."""
    prepared: str = ""
    """Folder for the prepared corpus, which several runs may share; "prepared" in the run's folder unless given."""
    valid_lines: int = 500
    """How many pairs are held out (never more than a tenth) when no validation files are given."""
    max_length: int = 256
    """Longest training sentence, in tokens; longer pairs are left out, and counted."""

    def __post_init__(self) -> None:
        """Check that there is one corpus, whole."""
        if bool(self.task) == bool(self.source):
            got = f"task = {self.task!r}, source = {self.source!r}"
            raise ConfigError(
                f"data: expected either a built-in task or source files, got {got}: give them, such as "
                "--set data.source=train.en --set data.target=train.de"
            )
        if self.task:
            self._check_task()
        for name in _SIDES:
            _check_pair(name, getattr(self, name), getattr(self, name.replace("source", "target")))
        self._check_columns()
        _check_minimum("data", self, valid_lines=1, max_length=2)

    def _check_task(self) -> None:
        """Refuse what names files: a built-in task has none."""
        for name in ("directory", "target", "valid_source", "valid_target", "test_source", "test_target"):
            if value := getattr(self, name):
                option = " (--data)" if name == "directory" else ""
                raise ConfigError(f"data.{name} = {value!r}{option} has no effect on a built-in task: leave it out")

    def _check_columns(self) -> None:
        """Refuse columns where no file has any, and numbers where columns have names only."""
        formats = {format_of(file) for name in _SIDES for file in files_of(getattr(self, name))} - {"lines"}
        for name in ("source_column", "target_column"):
            column = getattr(self, name)
            if column is not None and not formats:
                raise ConfigError(
                    f"data.{name} = {column!r} has no effect on files of plain lines: leave it out, or give .tsv or "
                    ".jsonl files"
                )
            if isinstance(column, int) and (column < 0 or "jsonl" in formats):
                expected = "the name of a field" if "jsonl" in formats else "a number from 0, or a name"
                raise ConfigError(f"data.{name} = {column!r}: expected {expected}")


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
    """Size of a batch: target (or source) tokens, padding included; 0 = by the corpus."""
    accumulate: int = 1
    """Batches whose gradients are summed up for one update."""
    workers: int = 1
    """Processes that share each update, on CPUs: faster than as many threads of one process; 0 = one for each core."""
    init_std: float = 0.0
    """Standard deviation with which all matrices start, embeddings included, such as 0.02 (as BERT and its like): in
    small models it is learned from sooner; 0 = by each one's shape (Xavier)."""
    learning_rate: float = 0.0
    """Peak of the learning rate; 0 = the paper's, (d_model · warmup)^-0.5."""
    schedule: Literal["paper", "cosine", "constant"] = "paper"
    """After the warm-up: down with 1/√step (5.3), down to 0 at the end along a cosine, or level."""
    warmup: int = 4000
    """Updates in which the rate rises linearly to its peak; 0 = by the corpus, and so the peak if it is not given."""
    label_smoothing: float = 0.1
    """Share ε of the target's probability that is spread over the whole vocabulary (5.4)."""
    r_drop: float = 0.0
    """Weight α of R-Drop: each pair passes twice, and the two distributions shall agree although dropout differs; a
    step takes twice as long, and small corpora are overfitted later; 0 = off."""
    optimiser: Optimiser = "adam"
    """Adam as in the paper (5.3), AdamW with `weight_decay`, or Muon for matrices with Adam for the rest, which learns
    more in a step; "auto" = by the corpus."""
    beta1: float = 0.9
    """Decay of Adam's mean of gradients."""
    beta2: float = 0.98
    """Decay of Adam's mean of squared gradients."""
    epsilon: float = 1e-9
    """Adam's ε."""
    weight_decay: float = 0.0
    """Decay of matrices by AdamW and Muon; biases, norms and embeddings have none."""
    clip_norm: float = 0.0
    """Gradients are scaled down to this norm when theirs is larger; 0 = never."""
    precision: Precision = "fp32"
    """Arithmetic of matrix products; weights, norms, softmax and loss stay in fp32. "auto" = bf16 where that is faster
    than fp32. fp16, for GPUs without bf16, scales the loss so that no gradient gets too small for it."""
    device: str = "auto"
    """Where the model is trained: "cpu", "cuda" or another of PyTorch's; "auto" = a GPU where there is one."""
    validate_every: int = 1000
    """Steps between validations; 0 = only at the end."""
    metric: Metric = "none"
    """A score of greedy translations of the validation set, at every validation; "auto" = BLEU for sentences, exact
    match for words."""
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
    ema: float = 0.0
    """Decay of a moving average of the weights, such as 0.999, which is then validated and kept; 0 = off."""
    log_every: int = 50
    """Steps between lines of metrics.jsonl."""

    def __post_init__(self) -> None:
        """Check each number's range, and that no setting is given in vain."""
        _check_minimum("training", self, steps=0, minutes=0, batch_tokens=0, accumulate=1, workers=0, learning_rate=0)
        _check_minimum("training", self, warmup=0, validate_every=0, metric_lines=1, patience=0, checkpoint_every=1)
        _check_minimum("training", self, keep_checkpoints=1, average=0, log_every=1, clip_norm=0, weight_decay=0)
        _check_minimum("training", self, snapshots=0, r_drop=0, init_std=0)
        for name in ("label_smoothing", "beta1", "beta2", "ema"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ConfigError(f"training.{name} = {getattr(self, name)!r}: expected a number in [0, 1)")
        if not 0.0 < self.epsilon < math.inf:
            raise ConfigError(f"training.epsilon = {self.epsilon!r}: expected a number above 0")
        self._check_combinations()

    def _check_combinations(self) -> None:
        if self.weight_decay and self.optimiser == "adam":
            raise ConfigError('training.weight_decay has no effect with optimiser = "adam": choose "adamw" or "muon"')
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
    cleaning: CleaningConfig = field(default_factory=CleaningConfig)
    tokenizer: TokenizerConfig = field(default_factory=lambda: TokenizerConfig(kind="auto", vocab_size=0))
    """Chosen by the corpus where the section is absent."""
    model: Mapping[str, Any] = field(default_factory=dict)
    """Fields of ModelConfig, or a `preset` and what differs from it; the vocabulary's size comes from the tokenizer.
    Chosen by the corpus where the preset is "auto", or neither it nor a size is given."""
    embeddings: EmbeddingsConfig = field(default_factory=EmbeddingsConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)


def _check_minimum(section: str, config: object, **minima: int) -> None:
    for name, minimum in minima.items():
        if not minimum <= getattr(config, name) < math.inf:
            raise ConfigError(f"{section}.{name} = {getattr(config, name)!r}: expected a number of at least {minimum}")


def _check_pair(name: str, source: Files, target: Files) -> None:
    other = name.replace("source", "target")
    both = _format(name, source) not in (None, "lines")
    if target and not source:
        raise ConfigError(f"data.{name} is missing, but {other} = {target!r} is given")
    if target and both:
        raise ConfigError(f"data.{other} = {target!r} would be ignored: {source!r} holds source and target")
    if source and not both and not target:
        raise ConfigError(
            f"data.{other} is missing: give the translation of {name} = {source!r}, or one .tsv or .jsonl file"
        )
    if _format(other, target) not in (None, "lines"):
        raise ConfigError(
            f"data.{other} = {target!r} holds source and target: give it as data.{name}, and leave {other} out"
        )


def _format(name: str, files: Files) -> Format | None:
    """Return the format that these files share; None when there are none."""
    formats = {format_of(file): file for file in files_of(files) if files}
    if "" in formats.values():
        raise ConfigError(f"data.{name} = {files!r}: expected the name of a file, not an empty one")
    if len(formats) > 1:
        raise ConfigError(
            f"data.{name}: {' and '.join(map(repr, formats.values()))} are of different formats: expected files of "
            "lines, .tsv or .jsonl files in one list"
        )
    return next(iter(formats), None)
