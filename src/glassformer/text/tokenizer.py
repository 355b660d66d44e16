"""Tokenizers: what all of them can do, how they are configured, trained, saved and loaded."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal, Protocol, get_args, runtime_checkable

from glassformer.errors import CheckpointError, ConfigError, VocabularyError, nearest
from glassformer.text.characters import CharacterTokenizer
from glassformer.text.normalisation import SPACE_MARK
from glassformer.text.storage import read_json, write_json
from glassformer.text.subwords import SentencePieceTokenizer
from glassformer.text.vocabulary import SPECIALS
from glassformer.text.words import WordTokenizer

__all__ = [
    "CharacterTokenizer",
    "SentencePieceTokenizer",
    "Tokenizer",
    "TokenizerConfig",
    "WordTokenizer",
    "load_tokenizers",
    "save_tokenizers",
    "train_tokenizers",
]

Kind = Literal["words", "characters", "bpe", "unigram"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@runtime_checkable
class Tokenizer(Protocol):
    """Text ↔ ids. Every text is normalised first (see `normalise`)."""

    @property
    def kind(self) -> Kind:
        """How texts are cut."""

    @property
    def suffix(self) -> str:
        """The ending of the file that `save` writes."""

    @property
    def pad_id(self) -> int:
        """The id of `<pad>`, 0."""

    @property
    def bos_id(self) -> int:
        """The id of `<bos>`, 1."""

    @property
    def eos_id(self) -> int:
        """The id of `<eos>`, 2."""

    @property
    def unk_id(self) -> int:
        """The id of `<unk>`, 3."""

    def __len__(self) -> int:
        """Return the size of the vocabulary, special tokens included."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of the text's tokens, without `<bos>` and `<eos>`; unknown ones are `<unk>`."""

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return what `encode` returns for each text, in less time where that can be."""

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of these ids; special ids are skipped, an unknown token reads "<unk>"."""

    def decode_all(self, sentences: Sequence[Sequence[int]]) -> list[str]:
        """Return what `decode` returns for the ids of each sentence, in less time where that can be."""

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the token of each id in a readable form, special ones as "<eos>" and so on."""

    def split(self, text: str) -> list[str]:
        """Return the text's tokens, those that the vocabulary does not have too."""

    def save(self, path: Path) -> None:
        """Write the tokenizer to one file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerConfig:
    """How texts are cut into tokens. What is left to the corpus is chosen by `glassformer.recipes.defaults.fit`.

    Raises:
        ConfigError: a value is impossible, or would be ignored.
    """

    kind: Literal["words", "characters", "bpe", "unigram", "auto"] = "bpe"
    """"bpe" or "unigram" subwords by sentencepiece, "words", or "characters"; "auto" = by the corpus."""
    vocab_size: int = 8000
    """At most so many tokens, the four special ones included; of words and characters the most frequent. 0 = by the
    corpus."""
    joint: bool = True
    """One vocabulary for source and target."""
    source_kind: Kind | None = None
    """The source's kind where it differs from `kind`; only with joint = false."""
    target_kind: Kind | None = None
    """The target's kind where it differs from `kind`; only with joint = false."""
    character_coverage: float = 1.0
    """Subwords only: the share of the text's characters that get a token; the rarest are `<unk>`, or bytes."""
    symbols: tuple[str, ...] = ()
    """Subwords only: strings without white space that are always one token, such as tags."""
    sampling: float = 0.0
    """Subwords only: cut the training text anew in each epoch. With "bpe" the probability that a merge is passed over
    (BPE-dropout, usually 0.1), with "unigram" the α of its sampling (0.1 to 0.5: lower is wilder); 0 = off."""
    byte_fallback: bool = False
    """Subwords only: spell unknown characters in bytes, 256 more tokens, so that every text can be encoded."""

    def __post_init__(self) -> None:
        self._check_kinds()
        if self.vocab_size and self.vocab_size <= len(SPECIALS):
            raise ConfigError(
                f"tokenizer.vocab_size: expected more than the {len(SPECIALS)} special tokens, got {self.vocab_size}"
            )
        if not 0 < self.character_coverage <= 1:
            raise ConfigError(
                f"tokenizer.character_coverage: expected a share above 0, at most 1, got {self.character_coverage}"
            )
        if not 0 <= self.sampling < 1:
            raise ConfigError(f"tokenizer.sampling: expected a number from 0 to below 1, got {self.sampling}")
        for place, symbol in enumerate(self.symbols):
            if symbol.split() != [symbol] or SPACE_MARK in symbol or symbol in (*SPECIALS, *self.symbols[:place]):
                raise ConfigError(
                    f"tokenizer.symbols: expected strings without white space, none twice or special, got {symbol!r}"
                )
        subwords_only = {"character_coverage": 1.0, "byte_fallback": False, "symbols": (), "sampling": 0.0}
        for name, default in subwords_only.items():
            if getattr(self, name) != default and not {"bpe", "unigram"} & set(self.kinds):
                raise ConfigError(
                    f"tokenizer.{name} = {getattr(self, name)} has no effect on {' and '.join(self.kinds)}: "
                    "leave it out, or choose the kind bpe or unigram"
                )

    def _check_kinds(self) -> None:
        for name in ("kind", "source_kind", "target_kind"):
            value = getattr(self, name)
            if name == "kind" and value == "auto":
                continue
            if value not in KINDS and (value is not None or name == "kind"):
                raise ConfigError(
                    f"tokenizer.{name}: expected {_either(KINDS)}, got {value!r}{nearest(str(value), KINDS)}"
                )
            if self.joint and name != "kind" and value is not None:
                raise ConfigError(
                    f"tokenizer.{name} = {value!r} has no effect on a joint vocabulary: set tokenizer.joint = false, "
                    "or leave it out"
                )

    @property
    def kinds(self) -> tuple[Kind, Kind]:
        """The kind of the source's tokenizer and of the target's: of "auto", what suits sentences."""
        kind: Kind = "unigram" if self.kind == "auto" else self.kind
        return self.source_kind or kind, self.target_kind or kind


def _either(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + " or " + words[-1]


def train_tokenizers(
    source_lines: Iterable[str], target_lines: Iterable[str], config: TokenizerConfig
) -> tuple[Tokenizer, Tokenizer]:
    """Return the source's tokenizer and the target's: the same object twice when `config.joint`.

    The same lines and configuration always give the same tokenizers.

    Raises:
        ConfigError: the configuration still leaves a choice to the corpus.
        VocabularyError: there is no text, or a subword vocabulary has no room for all characters.
    """
    if config.kind == "auto" or not config.vocab_size:
        raise ConfigError(
            f"tokenizer.kind = {config.kind!r}, vocab_size = {config.vocab_size}: left to the corpus, which "
            "glassformer.recipes.defaults.fit looks at; or give both"
        )
    source_kind, target_kind = config.kinds
    if config.joint:
        joint = _train(source_kind, chain(source_lines, target_lines), config)
        return joint, joint
    return _train(source_kind, source_lines, config), _train(target_kind, target_lines, config)


def _train(kind: Kind, lines: Iterable[str], config: TokenizerConfig) -> Tokenizer:
    tokenizer: Tokenizer
    match kind:
        case "words":
            tokenizer = WordTokenizer.train(lines, config.vocab_size)
        case "characters":
            tokenizer = CharacterTokenizer.train(lines, config.vocab_size)
        case "bpe" | "unigram":
            tokenizer = SentencePieceTokenizer.train(
                kind,
                lines,
                config.vocab_size,
                character_coverage=config.character_coverage,
                byte_fallback=config.byte_fallback,
                symbols=config.symbols,
            )
    if len(tokenizer) == len(SPECIALS):
        raise VocabularyError(f"no {kind} vocabulary could be made: the lines hold no text")
    return tokenizer


def save_tokenizers(folder: Path, source: Tokenizer, target: Tokenizer) -> None:
    """Write both tokenizers into `folder`, which is made when it is not there.

    `tokenizer.json` says of which kinds they are and whether they are one; `joint.*`, or `source.*` and `target.*`,
    hold a vocabulary (`.json`) or a sentencepiece model (`.model`).
    """
    folder.mkdir(parents=True, exist_ok=True)
    joint = source is target
    write_json(folder / "tokenizer.json", {"joint": joint, "source": source.kind, "target": target.kind})
    for name, tokenizer in [("joint", source)] if joint else [("source", source), ("target", target)]:
        tokenizer.save(folder / f"{name}{tokenizer.suffix}")


def load_tokenizers(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """Return the source's tokenizer and the target's that `save_tokenizers` wrote: the same object twice when joint.

    Raises:
        CheckpointError: a file is missing or damaged, or written by a newer glassformer.
        VocabularyError: a file holds no usable vocabulary.
    """
    path = folder / "tokenizer.json"
    match read_json(path):
        case {"joint": True, "source": str(kind)}:
            joint = _load(kind, folder / "joint", path)
            return joint, joint
        case {"joint": False, "source": str(source), "target": str(target)}:
            return _load(source, folder / "source", path), _load(target, folder / "target", path)
    raise CheckpointError(f"{path}: expected 'joint', 'source' and 'target': is it a tokenizer's file?")


def _load(kind: str, stem: Path, path: Path) -> Tokenizer:
    match kind:
        case "words":
            return WordTokenizer.load(stem.with_suffix(WordTokenizer.suffix))
        case "characters":
            return CharacterTokenizer.load(stem.with_suffix(CharacterTokenizer.suffix))
        case "bpe" | "unigram":
            return SentencePieceTokenizer.load(kind, stem.with_suffix(SentencePieceTokenizer.suffix))
    raise CheckpointError(f"{path}: expected the kind {_either(KINDS)}, got {kind!r}{nearest(kind, KINDS)}")
