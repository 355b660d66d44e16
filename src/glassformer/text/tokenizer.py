"""Tokenizers: their common methods, the table of their kinds, and their configuration, training, saving and loading.

A kind of tokenizer is a class with the methods of `Tokenizer` and a row in `TOKENIZER_KINDS`. The explorer's page
tokenizes in TypeScript, so each kind also has a function in `web/engine/tokenizers.ts`, which gets the result of
`to_dict`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, get_args, runtime_checkable

from glassformer.errors import CheckpointError, ConfigError, VocabularyError, either, nearest, quoted
from glassformer.settings import Range, check_fields
from glassformer.system.files import read_json, write_json
from glassformer.text.characters import CharacterTokenizer
from glassformer.text.marian import MarianTokenizer
from glassformer.text.normalisation import SPACE_MARK, Normalisation
from glassformer.text.reversal import forward_of
from glassformer.text.subwords import BYTES, LEAST_COVERAGE, SentencePieceTokenizer
from glassformer.text.vocabulary import SPECIALS
from glassformer.text.words import WordTokenizer

__all__ = [
    "TOKENIZER_KINDS",
    "CharacterTokenizer",
    "MarianTokenizer",
    "SentencePieceTokenizer",
    "SubwordTokenizer",
    "Tokenizer",
    "TokenizerConfig",
    "TokenizerKind",
    "WordTokenizer",
    "load_tokenizers",
    "save_tokenizers",
    "train_tokenizers",
]

KindName = Literal["words", "characters", "bpe", "unigram", "marian"]
"""The keys of `TOKENIZER_KINDS`, as the type of the configuration's settings."""


@runtime_checkable
class Tokenizer(Protocol):
    """Text ↔ ids. Every text is normalised first: see `normalise`."""

    @property
    def kind(self) -> str:
        """How texts are cut: a key of `TOKENIZER_KINDS`."""

    @property
    def normalisation(self) -> Normalisation | None:
        """How texts are normalised. None for the kind "marian", whose models have a normalisation of their own."""

    @property
    def pad_id(self) -> int:
        """The id of `<pad>`, 0."""

    @property
    def bos_id(self) -> int:
        """The id of `<bos>`, 1."""

    @property
    def eos_id(self) -> int:
        """The id that ends a sentence: the id of `<eos>`, 2.

        If the sources of an imported model had no `<eos>` in training, this is the id of `<pad>`, 0, which is masked.
        """

    @property
    def unk_id(self) -> int:
        """The id of `<unk>`, 3."""

    def __len__(self) -> int:
        """Return the size of the vocabulary, special tokens included."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of the text's tokens, without `<bos>` and `<eos>`; unknown tokens are `<unk>`."""

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return what `encode` returns for each text, faster where possible."""

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of these ids; special ids are skipped, except that unknown tokens appear as "<unk>"."""

    def decode_all(self, sentences: Sequence[Sequence[int]]) -> list[str]:
        """Return what `decode` returns for the ids of each sentence, faster where possible."""

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the token of each id in a readable form; special tokens appear as "<eos>" and so on."""

    def split(self, text: str) -> list[str]:
        """Return the text's tokens, including tokens outside the vocabulary."""

    def join(self, tokens: Iterable[str]) -> str:
        """Return the text of these tokens, as `split` returns them."""

    def save(self, stem: Path) -> None:
        """Write the tokenizer to one or more files named `stem` plus a suffix."""

    def to_dict(self) -> dict[str, Any]:
        """Return the tokenizer as plain data for the explorer's page: "kind", "tokens" by id, and fields of its kind.

        Raises:
            VocabularyError: the page cannot tokenize texts as this tokenizer does.
        """


@runtime_checkable
class SubwordTokenizer(Tokenizer, Protocol):
    """A tokenizer whose kind has `subwords` set: it can cut the same text in several ways."""

    def resampled(self, texts: Sequence[str], amount: float, seed: int) -> list[list[int]]:
        """Return the ids of the texts, cut at random as the seed decides; `amount` is `tokenizer.sampling`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerKind:
    """One kind of tokenizer."""

    train: "Callable[[Iterable[str], TokenizerConfig], Tokenizer]"
    """Returns a tokenizer trained on these lines; raises VocabularyError if no vocabulary can be made from the
    lines."""
    load: Callable[[Path, Normalisation | None], Tokenizer]
    """Returns the tokenizer that `save` wrote under this stem, with this normalisation; None = as its vocabulary
    shows."""
    subwords: bool = False
    """Whether words are cut into pieces: then the tokenizers are `SubwordTokenizer`s and the settings for subwords
    apply."""
    trainable: bool = True
    """Whether `train` makes tokenizers. If not, tokenizers of this kind come with imported models, and `train` raises
    VocabularyError."""
    open_ended: bool = False
    """Whether the number of different tokens keeps growing with the corpus, as with words but not with characters."""


def _subword_kind(kind: Literal["bpe", "unigram"]) -> TokenizerKind:
    return TokenizerKind(
        train=lambda lines, config: SentencePieceTokenizer.train(
            kind,
            lines,
            config.vocab_size,
            character_coverage=config.character_coverage,
            byte_fallback=config.byte_fallback,
            symbols=config.symbols,
        ),
        load=lambda stem, normalisation: SentencePieceTokenizer.load(kind, stem, normalisation),
        subwords=True,
    )


def _cannot_train(_lines: Iterable[str], _config: "TokenizerConfig") -> Tokenizer:
    raise VocabularyError(
        'tokenizer.kind = "marian" cannot be trained: its vocabulary comes with an imported model; choose another kind'
    )


TOKENIZER_KINDS: Mapping[str, TokenizerKind] = {
    "words": TokenizerKind(
        train=lambda lines, config: WordTokenizer.train(lines, config.vocab_size),
        load=WordTokenizer.load,
        open_ended=True,
    ),
    "characters": TokenizerKind(
        train=lambda lines, config: CharacterTokenizer.train(lines, config.vocab_size),
        load=CharacterTokenizer.load,
    ),
    "bpe": _subword_kind("bpe"),
    "unigram": _subword_kind("unigram"),
    "marian": TokenizerKind(
        train=_cannot_train, load=lambda stem, _: MarianTokenizer.load(stem), trainable=False, subwords=True
    ),
}
"""All kinds by name. `KindName` above and the page's table in `web/engine/tokenizers.ts` list the same names;
`recipes/defaults.py` chooses one of the kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerConfig:
    """How texts are cut into tokens.

    `glassformer.recipes.defaults.fit` replaces each "auto", and a vocabulary size of 0, by a value chosen from the
    corpus.

    Raises:
        ConfigError: a value is impossible, or would be ignored.
    """

    kind: Literal[KindName, "auto"] = "bpe"
    """"bpe" or "unigram" subwords by sentencepiece, "words", or "characters"; "auto" = chosen from the corpus. Imported
    models have "marian", subwords with a vocabulary of their own, which cannot be trained."""
    vocab_size: Annotated[int, Range(0, 10**7)] = 8000
    """Maximum number of tokens in a vocabulary, including the special tokens. A vocabulary of words or characters keeps
    the most frequent ones. 0 = chosen from the corpus."""
    joint: bool = True
    """Use one vocabulary for source and target."""
    target_kind: KindName | None = None
    """Kind of the target's tokenizer, if it differs from `kind`; only with joint = false."""
    character_coverage: Annotated[float, Range(LEAST_COVERAGE, 1)] = 1.0
    """Subwords only: the share of the text's characters that get a token; rarer characters become `<unk>`, or bytes."""
    symbols: tuple[str, ...] = ()
    """Subwords only: strings without white space that always become one token, such as tags."""
    sampling: Annotated[float | Literal["auto"], Range(0, 0.999)] = 0.0
    """Subwords only: cut the training text at random, again in each epoch. With "bpe", the probability of skipping a
    merge (BPE-dropout, usually 0.1); with "unigram", the exponent α of subword regularisation (0.2 to 0.5). A lower α
    varies the cuts more and makes more tokens: German texts get 1.13 times as many tokens with α = 0.3, and 2.05 times
    as many with α = 0.1. 0 = off; "auto" = chosen from the corpus."""
    byte_fallback: bool = False
    """Subwords only: spell unknown characters in bytes, with 256 more tokens, so that every text can be encoded."""

    def __post_init__(self) -> None:
        check_fields("tokenizer", self)
        if self.joint and self.target_kind:
            raise ConfigError(
                f"tokenizer.target_kind: expected no value with a joint vocabulary, got {quoted(self.target_kind)}; "
                "set tokenizer.joint = false, or leave out tokenizer.target_kind"
            )
        if self.vocab_size and self.vocab_size <= len(SPECIALS):
            raise ConfigError(
                f"tokenizer.vocab_size: expected more than the {len(SPECIALS)} special tokens, got {self.vocab_size}"
            )
        for place, symbol in enumerate(self.symbols):
            taken = (*SPECIALS, *(BYTES if self.byte_fallback else ()), *self.symbols[:place])
            if symbol.split() != [symbol] or SPACE_MARK in symbol or symbol in taken:
                raise ConfigError(
                    "tokenizer.symbols: expected different strings without white space, none of them special, "
                    f"got {quoted(symbol)}"
                )
        subwords_only = {"character_coverage": 1.0, "byte_fallback": False, "symbols": (), "sampling": 0.0}
        for name, default in subwords_only.items():
            if getattr(self, name) not in (default, "auto") and not self.has_subwords:
                subwords = [kind for kind, row in TOKENIZER_KINDS.items() if row.subwords]
                raise ConfigError(
                    f"tokenizer.{name}: expected its default with the kinds {' and '.join(self.kinds)}, got "
                    f"{quoted(getattr(self, name))}; leave it out, or choose the kind {either(subwords)}"
                )

    @property
    def kinds(self) -> tuple[KindName, KindName]:
        """The kinds of the source tokenizer and of the target tokenizer; "auto" counts as "unigram"."""
        kind: KindName = "unigram" if self.kind == "auto" else self.kind
        return kind, self.target_kind or kind

    @property
    def has_subwords(self) -> bool:
        """Whether sources or targets are cut into subwords."""
        return any(TOKENIZER_KINDS[kind].subwords for kind in self.kinds)


def _expected_kind(got: str) -> str:
    kinds = [*TOKENIZER_KINDS]
    return f"expected {either(kinds)}, got {quoted(got)}{nearest(got, kinds)}"


def train_tokenizers(
    source_lines: Iterable[str], target_lines: Iterable[str], config: TokenizerConfig
) -> tuple[Tokenizer, Tokenizer]:
    """Return the source tokenizer and the target tokenizer: the same object twice if `config.joint`.

    The same lines and configuration always give the same tokenizers.

    Raises:
        ConfigError: `config.kind` is "auto" or `config.vocab_size` is 0; call `glassformer.recipes.defaults.fit` first.
        VocabularyError: the lines hold no text, or a subword vocabulary has no room for all characters.
    """
    if config.kind == "auto" or not config.vocab_size:
        raise ConfigError(
            f"tokenizer.kind = {config.kind!r}, vocab_size = {config.vocab_size}: both must be set; set them, or let "
            "glassformer.recipes.defaults.fit choose them from the corpus"
        )
    source_kind, target_kind = config.kinds
    if config.joint:
        joint = _train(source_kind, chain(source_lines, target_lines), config)
        return joint, joint
    return _train(source_kind, source_lines, config), _train(target_kind, target_lines, config)


def _train(kind: KindName, lines: Iterable[str], config: TokenizerConfig) -> Tokenizer:
    tokenizer = TOKENIZER_KINDS[kind].train(lines, config)
    if len(tokenizer) == len(SPECIALS):
        raise VocabularyError(f"no {kind} vocabulary could be made: the lines hold no text")
    return tokenizer


def save_tokenizers(folder: Path, source: Tokenizer, target: Tokenizer) -> None:
    """Write both tokenizers into `folder`, which is created if needed.

    `tokenizer.json` records the kinds of both tokenizers, whether source and target share one tokenizer, and their
    normalisation. The tokenizers themselves are in `joint.*`, or in `source.*` and `target.*`: a vocabulary (`.json`)
    or a sentencepiece model (`.model`). For a reversed target tokenizer, the tokenizer of the normal order is written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target = forward_of(target)
    joint = source is target
    content = {"joint": joint, "source": source.kind, "target": target.kind}
    # In an older or imported run, the two vocabularies may show two normalisations. They will show them again.
    if source.normalisation and source.normalisation == target.normalisation:
        content["normalisation"] = source.normalisation
    write_json(folder / "tokenizer.json", content)
    for name, tokenizer in [("joint", source)] if joint else [("source", source), ("target", target)]:
        tokenizer.save(folder / name)


def load_tokenizers(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """Return the source tokenizer and the target tokenizer from the files of `save_tokenizers`.

    If source and target share one tokenizer, the same object is returned twice. An older or an imported run does not
    name its normalisation; then the vocabularies show it (`normalisation_of`).

    Raises:
        CheckpointError: a file is missing or damaged, or written by a newer glassformer.
        VocabularyError: a file does not hold a usable vocabulary.
    """
    path = folder / "tokenizer.json"
    content = read_json(path)
    normalisation = content.get("normalisation")
    if normalisation not in (None, *get_args(Normalisation)):
        raise CheckpointError(
            f"{path}: normalisation: expected {either(get_args(Normalisation))}, got {quoted(normalisation)}; save the "
            "run's tokenizers again"
        )

    def loaded(kind: str, name: str) -> Tokenizer:
        if kind not in TOKENIZER_KINDS:
            raise CheckpointError(f"{path}: {_expected_kind(kind)}")
        return TOKENIZER_KINDS[kind].load(folder / name, normalisation)

    match content:
        case {"joint": True, "source": str(kind)}:
            joint = loaded(kind, "joint")
            return joint, joint
        case {"joint": False, "source": str(source), "target": str(target)}:
            return loaded(source, "source"), loaded(target, "target")
        case _:
            raise CheckpointError(f"{path}: expected 'joint', 'source' and 'target'; save the run's tokenizers again")
