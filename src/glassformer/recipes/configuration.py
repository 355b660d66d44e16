"""The configuration of a job, such as its data, model, training and decoding: one dataclass per section."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal

from glassformer.corpus.cleaning import CleaningConfig
from glassformer.corpus.files import Format, files_of, format_of
from glassformer.errors import ConfigError, quoted
from glassformer.settings import Range, check_fields
from glassformer.text.tokenizer import TokenizerConfig

__all__ = [
    "IMPORT_FACTS",
    "MODEL_FACTS",
    "NOT_CONTENT",
    "OF_SAMPLING",
    "OTHER_SPLITS",
    "TOKENIZER_FACTS",
    "Configuration",
    "DataConfig",
    "DecodingConfig",
    "EmbeddingsConfig",
    "Precision",
    "RunConfig",
    "TrainingConfig",
    "settings_of_outputs",
]

Files = str | tuple[str, ...]
"""One file, glob or URL, or several."""

TOKENIZER_FACTS = ("vocab_size", "source_vocab_size", "target_vocab_size", "pad_id", "bos_id", "eos_id")
"""Fields of ModelConfig that the tokenizers of a run decide, so that no file contains them."""
IMPORT_FACTS = ("final_norm", "output_bias")
"""Fields of ModelConfig that differ from their defaults only in imported models; the files of their runs say so."""
MODEL_FACTS = (*TOKENIZER_FACTS, *IMPORT_FACTS)
"""Fields of ModelConfig that are not settings: [model] of a configuration file does not accept them."""

NOT_CONTENT = ("directory", "prepared", "cache", "source_language", "target_language")
"""Fields of [data] that say where a corpus lies and what its languages are called, but not what it contains."""

_LANGUAGE = re.compile(r"([A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*)?")

OTHER_SPLITS = ("valid", "test", "replay")
"""The corpora of [data] beside the training pairs, by the prefix of their fields."""
_SIDES = ("source", *(f"{split}_source" for split in OTHER_SPLITS))

MetricName = Literal["bleu", "chrf", "exact", "word_error", "wer", "per", "cer", "none", "auto"]
Optimiser = Literal["auto", "adam", "adamw", "muon"]
Precision = Literal["auto", "fp32", "bf16", "fp16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """[run]: the folder and the seed of a job."""

    directory: str = ""
    """Folder of the run; by default, "runs/" followed by the configuration's name."""
    seed: Annotated[int, Range(0, 2**63 - 1)] = 1
    """Seed of the initialisation, the order of the data, and dropout."""

    def __post_init__(self) -> None:
        """Check each value."""
        check_fields("run", self)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """[data]: a built-in task, or a parallel corpus: two files of equal length, or one TSV or JSONL file.

    Instead of a file, you may name a list of files, a glob ("train.*.en.gz") or a URL that fsspec can open. Files are
    decompressed if their name ends in .gz, .zst or .xz.
    """

    task: str = ""
    """A built-in corpus: "copy" or "english-french"."""
    directory: str = ""
    """Folder that the file names below are relative to (`--data` sets it); by default, the current folder."""
    source: Files = ""
    """Training source, one sentence per line; or a .tsv or .jsonl file with both source and target."""
    target: Files = ""
    """Training target, line by line the translation of `source`; not needed with .tsv and .jsonl files."""
    source_column: Annotated[int | str | None, Range(0, 10**6)] = None
    """Column of the source. In TSV, its number from 0, or its name in the first line; by default 0. In JSONL, the
    field's name; by default "source"."""
    target_column: Annotated[int | str | None, Range(0, 10**6)] = None
    """Column of the target, given in the same way; by default 1 in TSV, and "target" in JSONL."""
    valid_source: Files = ""
    """Validation source; by default, `valid_lines` pairs of the training data are held out for validation."""
    valid_target: Files = ""
    """Validation target."""
    test_source: Files = ""
    """Test source. `evaluate` and `compare` score a run on it, and `prepare` reports training pairs that also occur in
    it."""
    test_target: Files = ""
    """Test target."""
    reverse_target: bool = False
    """Learn to write targets from right to left, last token first. Texts keep their order in all files and outputs.
    Such a run scores and proposes outputs for `--rescore`, because it errs elsewhere than a run from left to right."""
    replay_source: Files = ""
    """Source of an earlier corpus that fine-tuning replays, so that the model forgets less of it; only with
    training.start_from."""
    replay_target: Files = ""
    """Target of the replayed corpus; without it, the run in training.start_from translates `replay_source` once."""
    replay_share: Annotated[float, Range(0, 0.99)] = 0.3
    """Share of the pairs of an epoch that are replayed, drawn again in each epoch."""
    source_language: str = ""
    """Language of the source, as a BCP 47 tag such as "en" or "pt-BR", for exported models."""
    target_language: str = ""
    """Language of the target, by which BLEU also cuts texts; "fr-fonipa" is French in the letters of the IPA."""
    prepared: str = ""
    """Folder for the prepared corpus, which several runs may share, or its URL, such as "s3://bucket/corpus"; by
    default, "prepared" in the run's folder."""
    cache: str = ""
    """Folder of this machine for copies of corpora whose `prepared` is a URL; by default, "~/.cache/glassformer"."""
    valid_lines: Annotated[int, Range(1, 10**12)] = 500
    """Number of training pairs held out for validation, at most a tenth of all, if no validation files are given."""
    max_length: Annotated[int, Range(2, 10**7)] = 256
    """Maximum length of a training sentence, in tokens; pairs with a longer side are left out, and counted."""

    def __post_init__(self) -> None:
        """Check each value."""
        check_fields("data", self)
        for name in ("source_language", "target_language"):
            if not _LANGUAGE.fullmatch(getattr(self, name)):
                raise ConfigError(
                    f"data.{name}: expected a BCP 47 tag, such as en or pt-BR, got {quoted(getattr(self, name))}"
                )

    def check_corpus(self) -> None:
        """Check that the section names exactly one corpus, and that its files belong together.

        It is not called for an imported run, which names no corpus.

        Raises:
            ConfigError: neither `task` nor `source` is given, or both are; or the files do not belong together.
        """
        if bool(self.task) == bool(self.source):
            got = f"task = {quoted(self.task)} and source = {quoted(self.source)}"
            raise ConfigError(
                f"data: expected a built-in task or source files, got {got}; name one of them, such as "
                "--set data.source=train.en --set data.target=train.de"
            )
        if self.task:
            self._check_task()
        for name in _SIDES:
            source, target = getattr(self, name), getattr(self, name.replace("source", "target"))
            if name != "replay_source" or target or _format(name, source) != "lines":
                _check_pair(name, source, target)
        self._check_columns()

    def _check_task(self) -> None:
        """Refuse fields that name files: a built-in task has none."""
        for name in (
            "directory",
            "target",
            *(f"{split}_{side}" for split in OTHER_SPLITS for side in ("source", "target")),
        ):
            if value := getattr(self, name):
                option = " (--data)" if name == "directory" else ""
                raise ConfigError(
                    f"data.{name}: expected no value with a built-in task, got {quoted(value)}{option}; leave it out"
                )

    def _check_columns(self) -> None:
        """Refuse columns for plain files, which have none, and column numbers for JSONL files."""
        formats = {format_of(file) for name in _SIDES for file in files_of(getattr(self, name))} - {"lines"}
        for name in ("source_column", "target_column"):
            column = getattr(self, name)
            if column is not None and not formats:
                raise ConfigError(
                    f"data.{name}: expected no value with plain files, got {quoted(column)}; leave it out, or name "
                    ".tsv or .jsonl files"
                )
            if isinstance(column, int) and "jsonl" in formats:
                raise ConfigError(f"data.{name}: expected the name of a field of JSONL files, got {column}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingsConfig:
    """[embeddings]: pretrained vectors, in word2vec or fastText text format (.vec), for words of the vocabulary."""

    source: str = ""
    """Vectors of the source words; their width must be model.d_model."""
    target: str = ""
    """Vectors of the target words; with a joint vocabulary, `source` serves both."""
    freeze: bool = False
    """Keep the embedding matrix unchanged during training."""

    def __post_init__(self) -> None:
        """Check that there are vectors to freeze."""
        check_fields("embeddings", self)
        if self.freeze and not (self.source or self.target):
            raise ConfigError(
                "embeddings.freeze: expected false without vectors, got true; set embeddings.source, or leave it out"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """[training]: length, batches, objective, optimiser, validation and checkpoints of a training run."""

    steps: Annotated[int, Range(0, 10**12)] = 0
    """Total number of weight updates; 0 = as many as `minutes` allows. Training needs `steps`, `minutes` or `patience`;
    with `patience` alone, it ends after at most 100 000 updates, the number in the paper."""
    minutes: Annotated[float, Range(0, 10**7)] = 0.0
    """Time for training, validation included; 0 = no limit."""
    batch_tokens: Annotated[int, Range(0, 10**9)] = 4096
    """Maximum number of tokens on either side of a batch, including padding; 0 = chosen from the corpus."""
    accumulate: Annotated[int, Range(1, 10**6)] = 1
    """Batches whose gradients are summed up for one update."""
    workers: Annotated[int, Range(0, 1024)] = 1
    """Processes that share each update on CPUs, faster than the same number of threads; 0 = one for each core. Under
    torchrun, which starts the processes itself, 0 or 1."""
    timeout: Annotated[float, Range(1, 10**6)] = 600.0
    """Seconds that the processes started by torchrun wait for one that does not answer, before training ends; longer
    than any update takes."""
    start_from: str = ""
    """Folder of a run to fine-tune: training starts from its weights, with its tokenizers, vocabulary and model."""
    init_std: Annotated[float, Range(0, 10)] = 0.0
    """Standard deviation of the initial values of all matrices, including embeddings; 0 = derived from the shape of
    each matrix (Xavier). With 0.02, as in BERT, small models learn sooner."""
    learning_rate: Annotated[float, Range(0, 10)] = 0.0
    """Peak learning rate; 0 = the paper's, (d_model · warmup)^-0.5; if `warmup` is 0, too, chosen from the corpus."""
    schedule: Literal["paper", "cosine", "constant"] = "paper"
    """Learning rate after the warm-up: "paper" falls with 1/√step (5.3), "cosine" falls along a cosine to 0 at the end,
    "constant" stays at the peak."""
    warmup: Annotated[int, Range(0, 10**12)] = 4000
    """Number of updates in which the learning rate rises linearly to its peak; 0 = chosen from the corpus. With
    `minutes`, the rise ends after a quarter of the time at the latest."""
    label_smoothing: Annotated[float, Range(0, 0.999)] = 0.1
    """Share ε of the target's probability that is spread over the whole vocabulary (5.4)."""
    r_drop: Annotated[float | Literal["auto"], Range(0, 1000)] = 0.0
    """Weight α of R-Drop: each pair passes through the model twice with different dropout, and the loss includes the
    divergence between the two outputs. Steps take twice as long; models overfit small corpora later. 0 = off; "auto" =
    chosen from the corpus."""
    optimiser: Optimiser = "adam"
    """Adam as in the paper (5.3), AdamW with `weight_decay`, or Muon, which learns more per step and leaves all weights
    but matrices to Adam; "auto" = chosen from the corpus."""
    epsilon: Annotated[float, Range(1e-30, 1)] = 1e-9
    """Adam's ε."""
    weight_decay: Annotated[float, Range(0, 100)] = 0.0
    """Weight decay of matrices by AdamW and Muon; biases, norms and embeddings do not decay, nor does the output
    projection with Muon."""
    clip_norm: Annotated[float, Range(0, 10**9)] = 0.0
    """Maximum norm of the gradients: larger gradients are scaled down to it; 0 = no limit."""
    precision: Precision = "fp32"
    """Number format of matrix products; weights, norms, softmax and loss stay in float32. "auto" = bf16 if it is faster
    than float32. "fp16", for GPUs without bf16, scales the loss so that gradients do not underflow."""
    device: str = "auto"
    """Device to train on: "cpu", "cuda" or another device of PyTorch; "auto" = a GPU if there is one."""
    validate_every: Annotated[int, Range(0, 10**12)] = 1000
    """Steps between validations; 0 = only at the end."""
    metric: MetricName = "none"
    """Metric by which each validation scores greedy translations of the validation set; "auto" = BLEU for sentences,
    exact match for words."""
    metric_lines: Annotated[int, Range(1, 10**12)] = 500
    """Number of validation lines that are translated for `metric`."""
    best_by: Literal["loss", "metric"] = "loss"
    """The validation result that decides which weights are the best: the loss, or `metric`."""
    patience: Annotated[int, Range(0, 10**12)] = 0
    """Number of validations without improvement after which training ends; 0 = no limit."""
    checkpoint_every: Annotated[int, Range(1, 10**12)] = 1000
    """Steps between checkpoints, from which a stopped run resumes; the last step has a checkpoint, too."""
    keep_checkpoints: Annotated[int, Range(1, 10**6)] = 5
    """Number of latest checkpoints that are kept."""
    snapshots: Annotated[int, Range(0, 1000)] = 0
    """Number of snapshots that are kept for playing the training back: half-precision weights of the latest steps that
    are powers of two (from 8); 0 = none."""
    average: Annotated[int, Range(0, 10**6)] = 0
    """Number of latest checkpoints whose mean replaces the best weights at the end, if it validates better; 0 = off."""
    ema: Annotated[float, Range(0, 0.999999)] = 0.0
    """Decay of a moving average of the weights, such as 0.999, which is then validated and kept; 0 = off."""
    log_every: Annotated[int, Range(1, 10**12)] = 50
    """Steps between the updates that metrics.jsonl reports."""

    def __post_init__(self) -> None:
        """Check each value, and that no setting is ignored."""
        check_fields("training", self)
        if self.weight_decay and self.optimiser == "adam":
            raise ConfigError(
                f'training.weight_decay: expected 0 with optimiser = "adam", got {self.weight_decay}; choose "adamw" '
                'or "muon"'
            )
        if self.best_by == "metric" and self.metric == "none":
            raise ConfigError('training.best_by: expected "loss" without training.metric, got "metric"; set the metric')
        if self.start_from and self.init_std:
            raise ConfigError(
                f"training.init_std: expected 0 with training.start_from, which gives the initial weights, got "
                f"{self.init_std}; leave it out"
            )
        if self.average > self.keep_checkpoints:
            raise ConfigError(
                f"training.average: expected at most keep_checkpoints = {self.keep_checkpoints}, got {self.average}; "
                "raise keep_checkpoints"
            )

    def check_limit(self) -> None:
        """Check that training has a limit; the configuration of an imported run has none.

        Raises:
            ConfigError: `steps`, `minutes` and `patience` are all 0.
        """
        if not (self.steps or self.minutes or self.patience):
            raise ConfigError(
                "training.steps: expected training.steps, training.minutes or training.patience above 0, got 0 for all "
                "three; set a limit, such as --set training.minutes=60"
            )

    @property
    def last_step(self) -> int:
        """The step at which training ends at the latest."""
        return self.steps or (2**62 if self.minutes else 100_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingConfig:
    """[decoding]: beam search and sampling. Paper: §6.1.

    A run has these settings; override them in commands by `--set decoding.NAME=VALUE`, in Python by `NAME=VALUE`.
    """

    beam_size: Annotated[int, Range(1, 1000)] = 4
    """Number of hypotheses that beam search keeps at each step; 1 = greedy search."""
    length_penalty: Annotated[float, Range(-100, 100)] = 0.6
    """Exponent α of the length penalty: score = log_prob / ((5 + length) / 6)^α; 0 = rank by log_prob."""
    max_source: Annotated[int, Range(1, 10**9)] = 1024
    """Longest source that is translated, in tokens, `<eos>` included."""
    extra_length: Annotated[int, Range(0, 10**6)] = 50
    """Number of tokens by which an output may be longer than its source."""
    shortlist: Annotated[int, Range(0, 10**6)] = 0
    """Choose output tokens among the N most frequent tokens and the 20 that each source token suggests; 0 = among all.
    This makes decoding faster, such as 500 for 16 000 tokens or 2 000 for 32 000. Explanations, and outputs that must
    begin with or contain given words, are searched among all tokens. Log probabilities count all tokens in any case."""
    retry: bool = False
    """Search suspicious outputs again: greedily, by sampling, then in parts. The first output that sets off no guard is
    kept, or else the least suspicious one."""
    protect: bool = True
    """Keep addresses, placeholders, tags and numbers of three digits or more as they are in the source."""
    protect_also: tuple[str, ...] = ()
    """Keep these texts, too, such as `ORD-*`: a `*` stands for up to 100 characters of a line, as few as possible; at
    the end, for all characters up to the next white space."""
    temperature: Annotated[float, Range(1e-9, 1e9)] = 1.0
    """Sampling: divisor of the log probabilities; below 1, outputs are more predictable; above 1, more varied."""
    top_k: Annotated[int, Range(0, 10**9)] = 0
    """Sampling: draw among the k most probable tokens; 0 = among all."""
    top_p: Annotated[float, Range(1e-9, 1)] = 1.0
    """Sampling: draw among the most probable tokens that together have this probability; 1 = among all."""
    seed: Annotated[int, Range(-(2**63), 2**63 - 1)] = 1
    """Sampling: seed of the random numbers, which depend only on this seed and the text's position in the input."""

    def __post_init__(self) -> None:
        """Check each value."""
        check_fields("decoding", self)
        for pattern in self.protect_also:
            if not pattern.strip("* ") or len(pattern) > LONGEST_PATTERN:
                raise ConfigError(
                    f"decoding.protect_also: expected texts of up to {LONGEST_PATTERN} characters that are not only "
                    f"wildcards, got {quoted(pattern)}; add letters"
                )


LONGEST_PATTERN = 100
"""Maximum number of characters of a text in `decoding.protect_also`."""
OF_SAMPLING = ("temperature", "top_k", "top_p", "seed")
"""Settings of [decoding] that only sampling reads."""


def settings_of_outputs(decoding: DecodingConfig) -> dict[str, Any]:
    """Return the settings that decide the outputs of beam search, by name, as JSON gives them back."""
    values = {name: value for name, value in asdict(decoding).items() if name not in OF_SAMPLING}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The configuration of a whole job, which `glassformer.recipes.toml` reads and writes."""

    data: DataConfig
    run: RunConfig = field(default_factory=RunConfig)
    cleaning: CleaningConfig = field(default_factory=CleaningConfig)
    tokenizer: TokenizerConfig = field(default_factory=lambda: TokenizerConfig(kind="auto", vocab_size=0))
    """The tokenizer section; if it is missing, chosen from the corpus."""
    model: Mapping[str, Any] = field(default_factory=dict)
    """Fields of ModelConfig, and optionally a `preset` that they override; without `MODEL_FACTS`.
    Chosen from the corpus if the preset is "auto", or if the section has neither a preset nor a size."""
    embeddings: EmbeddingsConfig = field(default_factory=EmbeddingsConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)


def _check_pair(name: str, source: Files, target: Files) -> None:
    other = name.replace("source", "target")
    both = _format(name, source) not in (None, "lines")
    if target and not source:
        raise ConfigError(f"data.{name}: expected the source of data.{other} = {quoted(target)}, got nothing")
    if target and both:
        raise ConfigError(
            f"data.{other}: expected no value with {quoted(source)}, which holds source and target, got "
            f"{quoted(target)}; leave it out"
        )
    if source and not both and not target:
        raise ConfigError(
            f"data.{other}: expected the translation of data.{name} = {quoted(source)}, got nothing; name its file, or "
            "one .tsv or .jsonl file with both sides"
        )
    if _format(other, target) not in (None, "lines"):
        raise ConfigError(
            f"data.{other}: expected a file with one side, got {quoted(target)}, which holds source and target; name "
            f"it in data.{name}, and leave data.{other} out"
        )


def _format(name: str, files: Files) -> Format | None:
    """Return the format that these files share, or None if there are no files."""
    formats = {format_of(file): file for file in files_of(files) if files}
    if "" in formats.values():
        raise ConfigError(f"data.{name}: expected names of files, got an empty name in {quoted(files)}")
    if len(formats) > 1:
        got = " and ".join(quoted(file) for file in formats.values())
        raise ConfigError(f"data.{name}: expected files of one format (plain lines, .tsv or .jsonl), got {got}")
    return next(iter(formats), None)
