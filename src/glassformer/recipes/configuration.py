"""The configuration of a job (its data, model, training, decoding and so on), with one dataclass per section."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal

from glassformer.corpus.cleaning import CleaningConfig
from glassformer.corpus.files import Format, files_of, format_of, unread
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
    "Schedule",
    "TrainingConfig",
    "settings_of_outputs",
]

Files = str | tuple[str, ...]
"""One or several files, globs or URLs."""

TOKENIZER_FACTS = ("vocab_size", "source_vocab_size", "target_vocab_size", "pad_id", "bos_id", "eos_id")
"""Fields of ModelConfig that the tokenizers of a run decide. Therefore, no file contains these fields."""
IMPORT_FACTS = ("final_norm", "output_bias")
"""Fields of ModelConfig that only imported models change from the defaults. The runs' files contain such changes."""
MODEL_FACTS = (*TOKENIZER_FACTS, *IMPORT_FACTS)
"""Fields of ModelConfig that are not settings: they are not allowed in [model] of a configuration file."""

NOT_CONTENT = ("directory", "prepared", "cache", "source_language", "target_language")
"""Fields of [data] for the place and the languages of a corpus, which do not affect its content."""

_LANGUAGE = re.compile(r"([A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*)?")

OTHER_SPLITS = ("valid", "test", "replay")
"""The corpora in [data] other than the training pairs, by the prefix of their fields."""
_SIDES = ("source", *(f"{split}_source" for split in OTHER_SPLITS))

MetricName = Literal["bleu", "chrf", "exact", "word_error", "wer", "per", "cer", "none", "auto"]
Optimiser = Literal["auto", "adam", "adamw", "muon"]
Precision = Literal["auto", "fp32", "bf16", "fp16"]
Schedule = Literal["paper", "cosine", "constant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """[run]: the folder and the seed of a job."""

    directory: str = ""
    """Folder of the run; by default, "runs/" followed by the configuration's name."""
    seed: Annotated[int, Range(0, 2**63 - 1)] = 1
    """Seed of the random numbers for initialisation, the order of the data, and dropout."""

    def __post_init__(self) -> None:
        """Check each value."""
        check_fields("run", self)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """[data]: a built-in task or a parallel corpus. A corpus is two files of equal length, or one TSV or JSONL file.

    Instead of a file, you can name a list of files, a glob ("train.*.en.gz") or a URL that fsspec can open. Files are
    decompressed if their names end in .gz, .zst or .xz.
    """

    task: str = ""
    """A built-in corpus: "copy" or "english-french"."""
    directory: str = ""
    """Folder of the files in [data]: their names are relative to this folder. By default, the current folder; `--data`
    sets this field."""
    source: Files = ""
    """Training source, with one sentence per line; or a .tsv or .jsonl file with both source and target."""
    target: Files = ""
    """Training target: line n is the translation of line n of `source`. Not needed with .tsv and .jsonl files."""
    source_column: Annotated[int | str | None, Range(0, 10**6)] = None
    """Column of the source. In TSV: the column's number from 0 (by default 0), or its name in the first line. In JSONL:
    the field's name (by default "source")."""
    target_column: Annotated[int | str | None, Range(0, 10**6)] = None
    """Column of the target, in the same form as `source_column`; by default, 1 in TSV and "target" in JSONL."""
    valid_source: Files = ""
    """Validation source; by default, `valid_lines` pairs of the training data are held out for validation."""
    valid_target: Files = ""
    """Validation target."""
    test_source: Files = ""
    """Test source. `evaluate` and `compare` score a run on the test files, and `prepare` reports training pairs that
    also occur in these files."""
    test_target: Files = ""
    """Test target."""
    reverse_target: bool = False
    """Learn to write targets from right to left, last token first. Texts keep their order in all files and outputs.
    Such a run is useful for `--rescore`, because it makes different errors than a run that writes from left to right.
    """
    replay_source: Files = ""
    """Source of an earlier corpus whose pairs fine-tuning replays, so that the model forgets less of this corpus. Only
    with training.start_from."""
    replay_target: Files = ""
    """Target of the replayed corpus; by default, the run in training.start_from translates `replay_source` once."""
    replay_share: Annotated[float, Range(0, 0.99)] = 0.3
    """Share of the pairs in an epoch that come from the replayed corpus; each epoch draws these pairs again."""
    source_language: str = ""
    """Language of the source, as a BCP 47 tag such as "en" or "pt-BR", for exported models."""
    target_language: str = ""
    """Language of the target, as a BCP 47 tag; BLEU also splits texts by the rules of this language. "fr-fonipa" stands
    for French in phonetic letters (IPA)."""
    prepared: str = ""
    """Folder or URL of the prepared corpus, such as "s3://bucket/corpus"; by default, "prepared" in the run's folder.
    Several runs may share a prepared corpus."""
    cache: str = ""
    """Folder on this machine for copies of prepared corpora, if `prepared` is a URL; by default,
    "~/.cache/glassformer"."""
    valid_lines: Annotated[int, Range(1, 10**12)] = 500
    """Number of training pairs that are held out for validation if no validation files are given; at most a tenth of
    all pairs."""
    max_length: Annotated[int, Range(2, 10**7)] = 256
    """Maximum length of a training sentence, in tokens. Pairs with a longer side are left out, and their number is
    reported."""

    def __post_init__(self) -> None:
        """Check each value."""
        check_fields("data", self)
        for name in ("source_language", "target_language"):
            if not _LANGUAGE.fullmatch(getattr(self, name)):
                raise ConfigError(
                    f"data.{name}: expected a BCP 47 tag, such as en or pt-BR, got {quoted(getattr(self, name))}"
                )

    @property
    def languages(self) -> tuple[str, str]:
        """The languages of source and target, as BCP 47 tags; "" = unknown."""
        return self.source_language, self.target_language

    def check_corpus(self) -> None:
        """Check that the section names exactly one corpus, and that its files belong together.

        Do not call this method for an imported run, because its configuration names no corpus.

        Raises:
            ConfigError: neither `task` nor `source` is given, or both are; or the files do not belong together.
        """
        if bool(self.task) == bool(self.source):
            got = f"task = {quoted(self.task)} and source = {quoted(self.source)}"
            raise ConfigError(
                f"data: expected a built-in task or source files, got {got}; name a task or files, such as "
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
        """Raise an error for fields that name files, because a built-in task has no files."""
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
        """Raise an error for columns of plain files, which have no columns, and for column numbers of JSONL files."""
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
    """File of vectors for the source words; the width of the vectors must be model.d_model."""
    target: str = ""
    """File of vectors for the target words; with a joint vocabulary, `source` is used for both sides by default."""
    freeze: bool = False
    """Keep the embedding matrices with pretrained vectors unchanged during training."""

    def __post_init__(self) -> None:
        """Check that there are vectors to freeze."""
        check_fields("embeddings", self)
        if self.freeze and not (self.source or self.target):
            raise ConfigError(
                "embeddings.freeze: expected false without vectors, got true; set embeddings.source, or omit freeze"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """[training]: length, batches, objective, optimiser, validation and checkpoints of a training run."""

    steps: Annotated[int, Range(0, 10**12)] = 0
    """Total number of weight updates; 0 = as many as `minutes` allows. Set `steps`, `minutes` or `patience`. With
    `patience` alone, training ends after at most 100 000 updates, the number in the paper."""
    minutes: Annotated[float, Range(0, 10**7)] = 0.0
    """Time limit for training, including validation, in minutes; 0 = no limit."""
    batch_tokens: Annotated[int, Range(0, 10**9)] = 4096
    """Maximum number of tokens on each side of a batch, including padding; 0 = chosen from the corpus."""
    accumulate: Annotated[int, Range(1, 10**6)] = 1
    """Number of batches whose gradients are added up for one update."""
    workers: Annotated[int, Range(0, 1024)] = 1
    """Number of processes that share each update on CPUs, which is faster than the same number of threads; 0 = one per
    core. With torchrun, which starts the processes itself, set 0 or 1."""
    timeout: Annotated[float, Range(1, 10**6)] = 600.0
    """Number of seconds that processes started by torchrun wait for a process that does not answer, before training
    ends. Set more seconds than any update takes."""
    start_from: str = ""
    """Folder of a run to fine-tune: training starts from the run's weights, with its tokenizers, vocabulary and model.
    """
    init_std: Annotated[float, Range(0, 10)] = 0.0
    """Standard deviation of the initial values of all matrices, including embeddings; 0 = derived from the shape of
    each matrix (Xavier). With 0.02, as in BERT, small models learn faster at first."""
    learning_rate: Annotated[float, Range(0, 10)] = 0.0
    """Peak learning rate; 0 = the paper's rate, (d_model · warmup)^-0.5. If `warmup` is also 0, the rate is chosen from
    the corpus."""
    schedule: Schedule = "paper"
    """Learning rate after the warm-up: "paper" falls with 1/√step (5.3), "cosine" falls along a cosine to 0 at the end,
    "constant" stays at the peak."""
    warmup: Annotated[int, Range(0, 10**12)] = 4000
    """Number of updates in which the learning rate rises linearly to its peak; 0 = chosen from the corpus. With
    `minutes`, the warm-up ends after a quarter of the time at the latest."""
    label_smoothing: Annotated[float, Range(0, 0.999)] = 0.1
    """Share ε of the correct token's probability that is spread over the whole vocabulary (5.4)."""
    r_drop: Annotated[float | Literal["auto"], Range(0, 1000)] = 0.0
    """Weight α of R-Drop: each pair passes through the model twice with different dropout, and the loss includes the
    divergence between both outputs. With R-Drop, steps take twice as long, but models overfit small corpora later. 0 =
    off; "auto" = chosen from the corpus."""
    optimiser: Optimiser = "adam"
    """Optimiser: Adam as in the paper (5.3), AdamW with `weight_decay`, or Muon; "auto" = chosen from the corpus. Muon
    learns more per step; it updates only matrices, and Adam updates all other weights."""
    epsilon: Annotated[float, Range(1e-30, 1)] = 1e-9
    """The ε of Adam, which avoids division by zero."""
    weight_decay: Annotated[float, Range(0, 100)] = 0.0
    """Weight decay of matrices with AdamW and Muon. Biases, norms and embeddings do not decay; with Muon, the output
    projection does not decay either."""
    clip_norm: Annotated[float, Range(0, 10**9)] = 0.0
    """Maximum norm of the gradients; larger gradients are scaled down to this norm. 0 = no limit."""
    precision: Precision = "fp32"
    """Number format of matrix products; weights, norms, softmax and loss stay in float32. "auto" = bf16 if it is faster
    than float32. "fp16", for GPUs without bf16, scales the loss so that gradients do not underflow."""
    device: str = "auto"
    """Device to train on: "cpu", "cuda" or another device of PyTorch; "auto" = a GPU if there is one."""
    validate_every: Annotated[int, Range(0, 10**12)] = 1000
    """Number of steps between two validations; 0 = validate only at the end."""
    metric: MetricName = "none"
    """Metric with which each validation scores greedy translations of validation lines, which take less time than those
    of the beam that `evaluate` uses; "auto" = BLEU for sentences, and exact match for words."""
    metric_lines: Annotated[int, Range(1, 10**12)] = 500
    """Number of validation lines that are translated for `metric`."""
    best_by: Literal["loss", "metric"] = "loss"
    """Validation result that decides which weights are the best: the loss or `metric`."""
    patience: Annotated[int, Range(0, 10**12)] = 0
    """Number of validations without improvement after which training ends; 0 = no limit."""
    checkpoint_every: Annotated[int, Range(1, 10**12)] = 1000
    """Number of steps between two checkpoints. A stopped run resumes from its latest checkpoint. The last step also
    gets a checkpoint."""
    keep_checkpoints: Annotated[int, Range(1, 10**6)] = 5
    """Number of latest checkpoints that are kept."""
    snapshots: Annotated[int, Range(0, 1000)] = 0
    """Number of snapshots to keep, with which the training can be replayed; 0 = none. Snapshots are half-precision
    weights of the latest steps whose numbers are powers of two (from 8)."""
    average: Annotated[int, Range(0, 10**6)] = 0
    """Number of latest checkpoints whose mean is validated at the end, and replaces the best weights if it is better;
    0 = off."""
    ema: Annotated[float, Range(0, 0.999999)] = 0.0
    """Decay of a moving average of the weights, such as 0.999; 0 = off. If it is on, the average is validated and kept
    in place of the weights."""
    log_every: Annotated[int, Range(1, 10**12)] = 50
    """Number of steps between two updates that are reported in metrics.jsonl."""

    def __post_init__(self) -> None:
        """Check each value, and check that no setting would be ignored."""
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
                f"{self.init_std}; leave init_std out"
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
        """The last possible step: the limit on the number of steps."""
        return self.steps or (2**62 if self.minutes else 100_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingConfig:
    """[decoding]: beam search and sampling. Paper: §6.1.

    A run stores these settings. Override a setting with `--set decoding.NAME=VALUE` in commands, or with `NAME=VALUE`
    in Python.
    """

    beam_size: Annotated[int, Range(1, 1000)] = 4
    """Number of hypotheses that beam search keeps at each step; 1 = greedy search."""
    length_penalty: Annotated[float, Range(-100, 100)] = 0.6
    """Exponent α of the length penalty: score = log_prob / ((5 + length) / 6)^α; 0 = rank by log_prob."""
    max_source: Annotated[int, Range(1, 10**9)] = 1024
    """Maximum length of a source that is translated, in tokens, including `<eos>`."""
    extra_length: Annotated[int, Range(0, 10**6)] = 50
    """Maximum number of tokens by which an output may be longer than its source."""
    shortlist: Annotated[int, Range(0, 10**6)] = 0
    """Number N of frequent tokens in a shortlist; 0 = no shortlist. With a shortlist, a search chooses only among the N
    most frequent tokens and the 20 tokens that each source token suggests, which makes decoding faster. Try N = 500 for
    a vocabulary of 16 000 tokens, and 2 000 for 32 000. Explanations, and outputs that must begin with or contain given
    words, do not use the shortlist. Log probabilities always count all tokens."""
    retry: bool = False
    """Search suspicious outputs again: greedily, then by sampling, then in parts. The first output that sets off no
    guard is kept; if there is none, the least suspicious output is kept."""
    protect: bool = True
    """Keep addresses, placeholders, tags and numbers of three digits or more unchanged in the output, and copy texts
    without a letter."""
    protect_also: tuple[str, ...] = ()
    """More texts to keep unchanged in the output, such as `ORD-*`. A `*` stands for up to 100 characters of a line, as
    few as possible; a `*` at the end stands for all characters up to the next white space."""
    split: bool = True
    """Translate the sentences of a line one by one, if few of the training sources had several sentences, and without
    the marks around the line, such as "1."; false = the model reads each line as it is."""
    recase: bool = True
    """Read lines in capitals, in lower case or in title case as if they were written like the training sources, if few
    of these were in such a case. Lines in capitals get translations in capitals."""
    temperature: Annotated[float, Range(1e-9, 1e9)] = 1.0
    """Sampling: divisor of the log probabilities. Values below 1 make outputs more predictable, and values above 1 make
    outputs more varied."""
    top_k: Annotated[int, Range(0, 10**9)] = 0
    """Sampling: draw among the k most probable tokens; 0 = among all tokens."""
    top_p: Annotated[float, Range(1e-9, 1)] = 1.0
    """Sampling: draw among the most probable tokens that together have this probability; 1 = among all tokens."""
    seed: Annotated[int, Range(-(2**63), 2**63 - 1)] = 1
    """Sampling: seed of the random numbers, which depend only on this seed and the text's position in the input."""

    def __post_init__(self) -> None:
        """Check each value."""
        check_fields("decoding", self)
        for pattern in self.protect_also:
            if not pattern.strip("* ") or len(pattern) > LONGEST_PATTERN:
                raise ConfigError(
                    f"decoding.protect_also: expected texts of up to {LONGEST_PATTERN} characters that are not only "
                    f"wildcards, got {quoted(pattern)}; add letters, or shorten the text"
                )


LONGEST_PATTERN = 100
"""Maximum number of characters of a text in `decoding.protect_also`."""
OF_SAMPLING = ("temperature", "top_k", "top_p", "seed")
"""Settings of [decoding] that only sampling uses."""


def settings_of_outputs(decoding: DecodingConfig) -> dict[str, Any]:
    """Return the settings that decide the outputs of beam search, by name, with lists in place of tuples as in JSON."""
    values = {name: value for name, value in asdict(decoding).items() if name not in OF_SAMPLING}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The configuration of a whole job, which `glassformer.recipes.toml` reads and writes."""

    data: DataConfig
    run: RunConfig = field(default_factory=RunConfig)
    cleaning: CleaningConfig = field(default_factory=CleaningConfig)
    tokenizer: TokenizerConfig = field(default_factory=lambda: TokenizerConfig(kind="auto", vocab_size=0))
    """The tokenizer section; if the section is missing, the tokenizer is chosen from the corpus."""
    model: Mapping[str, Any] = field(default_factory=dict)
    """Fields of ModelConfig except `MODEL_FACTS`, and optionally a `preset`, which the other fields override. The model
    is chosen from the corpus if the preset is "auto", or if the section has neither a preset nor a size."""
    embeddings: EmbeddingsConfig = field(default_factory=EmbeddingsConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)


def _check_pair(name: str, source: Files, target: Files) -> None:
    other = name.replace("source", "target")
    both = _format(name, source) not in (None, "lines")
    if target and not source:
        raise ConfigError(
            f"data.{name}: expected the source of data.{other} = {quoted(target)}, got nothing; name its file"
        )
    if target and both:
        raise ConfigError(
            f"data.{other}: expected no value with {quoted(source)}, which holds source and target, got "
            f"{quoted(target)}; leave it out"
        )
    if source and not both and not target:
        advice = unread(files_of(source)[0]) or "name its file, or one .tsv or .jsonl file with both sides"
        raise ConfigError(
            f"data.{other}: expected the translation of data.{name} = {quoted(source)}, got nothing; {advice}"
        )
    if _format(other, target) not in (None, "lines"):
        raise ConfigError(
            f"data.{other}: expected a file with one side, got {quoted(target)}, which holds source and target; name "
            f"this file in data.{name}, and leave data.{other} out"
        )


def _format(name: str, files: Files) -> Format | None:
    """Return the format that these files share, or None if there are no files."""
    formats = {format_of(file): file for file in files_of(files) if files}
    if "" in formats.values():
        raise ConfigError(f"data.{name}: expected names of files, got an empty name in {quoted(files)}; leave it out")
    if len(formats) > 1:
        got = " and ".join(quoted(file) for file in formats.values())
        raise ConfigError(
            f"data.{name}: expected files of one format (plain lines, .tsv or .jsonl), got {got}; "
            "convert some of the files"
        )
    return next(iter(formats), None)
