"""Import a state dict as a run: reorder the embeddings to a run's token ids, and make tokenizers of vocabularies."""

import json
import pickle
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

from glassformer.bundle import Bundle, SourceFacts, put_weights
from glassformer.errors import CheckpointError, ConfigError, VocabularyError, quoted, shortened
from glassformer.interop.exporting import replaced_folder
from glassformer.interop.torch.state_dicts import import_state_dict, norm_difference, recognised
from glassformer.interop.torch.weight_files import read_state_dicts
from glassformer.model.alignment import Alignment
from glassformer.model.config import ModelConfig
from glassformer.model.transformer import Transformer
from glassformer.recipes.toml import from_dict, model_config, model_section
from glassformer.system.files import check_regular
from glassformer.text.normalisation import SPACE_MARK, Normalisation
from glassformer.text.tokenizer import CharacterTokenizer, Tokenizer, WordTokenizer
from glassformer.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, SPECIALS, Vocabulary

__all__ = [
    "NEVER_WRITTEN",
    "OUR_IDS",
    "ForeignTokens",
    "Imported",
    "LookupKind",
    "SpecialIds",
    "check_target",
    "import_run",
    "lookup_tokenizer",
    "read_vocabulary",
    "reordered",
    "special_ids",
    "write_run",
]

LARGEST_VOCABULARY = 200_000_000
"""Maximum size of a vocabulary file, in bytes."""

LONGEST_TEXT = 256
"""Maximum of the setting `data.max_length` in an imported run, in tokens."""

NEVER_WRITTEN = -1e9
"""The output bias of a token that the original model does not have; its probability is then 0 in float32 and
float64."""

NAMES = (
    ("<pad>", "[PAD]", "<blank>"),
    ("<bos>", "<sos>", "<s>", "[BOS]"),
    ("<eos>", "</s>", "[EOS]"),
    ("<unk>", "[UNK]"),
)
"""The usual names of the special tokens, in the order of `SPECIALS`."""


LookupKind = Literal["words", "characters"]
"""The kinds of tokenizers that need no more than a vocabulary."""

OUR_IDS: Mapping[str, Any] = {"pad_id": PAD_ID, "bos_id": BOS_ID, "eos_id": EOS_ID}
"""The ids of the special tokens in every run, as fields of ModelConfig."""


class SpecialIds(NamedTuple):
    """The ids of the special tokens in a foreign vocabulary."""

    pad: int
    bos: int
    eos: int
    unk: int


class Imported(NamedTuple):
    """An imported run."""

    bundle: Bundle
    title: str
    """The title of the family of models to which the imported model belongs."""
    difference: float
    """Largest difference between a logit of the imported model and of the original, on random tokens; 0 if both compute
    the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTokens:
    """The tokens of an imported model, which a state dict does not contain."""

    source: Sequence[str]
    """The tokens of the source, by id."""
    target: Sequence[str]
    """The tokens of the target, by id."""
    special_ids: SpecialIds | None = None
    """The ids of the special tokens in both vocabularies; by default, the ids of the tokens with the usual names."""
    kind: LookupKind | None = None
    """How texts are cut into these tokens; by default, what each vocabulary shows (see `lookup_tokenizer`)."""
    source_bos: bool = False
    """Whether the sources began with `<bos>` when the model was trained."""


def import_run(
    source: Path,
    folder: Path,
    tokens: ForeignTokens,
    *,
    heads: int,
    renames: Mapping[str, str] | None = None,
    prefix: str | None = None,
    languages: tuple[str, str] = ("", ""),
    settings: Mapping[str, Any] | None = None,
) -> Imported:
    """Write a run with the model of a state dict; return the run and how the model was recognised.

    The folder appears only when it is complete.

    Args:
        source: the file of the state dict: safetensors, or a file of `torch.save`. For a model in several files, the
            index or any of the files.
        folder: the folder to write, which must be empty or absent.
        tokens: the vocabularies and the special tokens.
        heads: number of heads of each attention.
        renames: parts of names in the file → their replacements, for copies of a tutorial with different names.
        prefix: the beginning of the names of the model's tensors; needed if a file holds several models.
        languages: the languages of source and target, as BCP 47 tags.
        settings: fields of ModelConfig that the state dict does not show.

    Raises:
        CheckpointError: the file is damaged, its names belong to no known model or to several models, or the folder
            cannot be written.
        ConfigError: a setting is missing or impossible, or the folder is not empty.
        VocabularyError: a vocabulary does not fit the weights.
    """
    check_target(folder)
    ids = [tokens.special_ids or special_ids(side, name) for name, side in _sides(tokens)]
    state_dicts = {
        place: {_renamed(name, renames or {}): tensor for name, tensor in state.items()}
        for place, state in read_state_dicts(source).items()
    }
    family, state = recognised(state_dicts, prefix)
    # The ids in OUR_IDS are right only after the tokens have been reordered.
    model = import_state_dict(state, family=family, heads=heads, **OUR_IDS, **(settings or {})).float()
    orders = []
    for (name, side), own in zip(_sides(tokens), ids, strict=True):
        rows = getattr(model.config, f"{name}_vocab_size")
        if len(side) != rows:
            raise VocabularyError(f"{name}: expected {rows} tokens, one for each row of the embedding, got {len(side)}")
        if len({*own} & {*range(rows)}) < len(own):
            raise ConfigError(f"--special-ids: expected four different ids from 0 to {rows - 1}, got {quoted([*own])}")
        orders.append([*own, *(id for id in range(rows) if id not in own)])
    model = reordered(model, *orders)
    tokenizers = [
        lookup_tokenizer(
            tokens.kind,
            [*SPECIALS, *(side[id] for id in order[len(SPECIALS) :])],
            with_bos=tokens.source_bos and name == "source",
        )
        for (name, side), order in zip(_sides(tokens), orders, strict=True)
    ]
    bundle = write_run(model, (tokenizers[0], tokenizers[1]), folder, origin=source.name, languages=languages)
    return Imported(bundle, family.title, norm_difference(model) if family.unbiased_norm else 0.0)


def check_target(folder: Path) -> None:
    """Refuse a folder that an imported run cannot be written to.

    Raises:
        ConfigError: the folder exists and is not empty, or it is a file.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} exists and is not an empty folder; choose another folder")


def write_run(
    model: Transformer,
    tokenizers: tuple[Tokenizer, Tokenizer],
    folder: Path,
    *,
    origin: str,
    languages: tuple[str, str] = ("", ""),
    decoding: Mapping[str, Any] | None = None,
    alignment: Alignment | None = None,
    source_facts: SourceFacts | None = None,
) -> Bundle:
    """Write a run with an imported model; return the run's bundle.

    The folder appears only when it is complete.

    Args:
        model: the model, whose special tokens have the ids of `SPECIALS`.
        tokenizers: the tokenizers of source and target; the same object twice means a joint vocabulary.
        folder: the folder to write, which must be empty or absent.
        origin: the name of the file or folder that was imported.
        languages: the languages of source and target, as BCP 47 tags.
        decoding: settings of the section [decoding].
        alignment: the heads that align words.
        source_facts: how the sources of the training were written.

    Raises:
        CheckpointError: the folder cannot be written.
        ConfigError: the folder is not empty, or a setting is impossible.
    """
    check_target(folder)
    source, target = tokenizers
    joint = source is target
    kinds = {} if source.kind == target.kind else {"target_kind": target.kind}
    values = {
        "data": {
            "source_language": languages[0],
            "target_language": languages[1],
            "max_length": min(LONGEST_TEXT, model.config.longest),
        },
        "tokenizer": {"kind": source.kind, **kinds, "joint": joint, "vocab_size": max(len(source), len(target))},
        "model": model_section(model.config),
        "decoding": dict(decoding or {}),
        "run": {"directory": str(folder)},
    }
    configuration = from_dict(values)
    bundle = Bundle(
        folder=folder,
        configuration=configuration,
        model_config=model_config(configuration, len(source), len(target)),
        source_tokenizer=source,
        target_tokenizer=target,
        alignment=alignment,
        origin=origin,
        **(source_facts or SourceFacts())._asdict(),
    )
    with replaced_folder(folder, is_ours=lambda _: False) as temporary:
        temporary.mkdir()
        replace(bundle, folder=temporary).save(model)
    return bundle


def read_vocabulary(path: Path) -> list[str]:
    """Return the tokens in a vocabulary file, by id.

    The file has one token per line, or is JSON: a list of tokens, or an object that maps tokens to ids. It may also be
    a pickle of plain values.

    Raises:
        CheckpointError: the file cannot be read.
        VocabularyError: the content is not a vocabulary, or its ids have gaps.
    """
    check_regular(path)
    try:
        if path.stat().st_size > LARGEST_VOCABULARY:
            raise CheckpointError(f"{path}: expected at most {LARGEST_VOCABULARY:,} bytes, got {path.stat().st_size:,}")
        if path.suffix in (".pkl", ".pickle"):
            with path.open("rb") as file:
                content = _PlainUnpickler(file).load()
        elif path.suffix == ".json":
            content = json.loads(path.read_text(encoding="utf-8"))
        else:
            return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, ValueError, RecursionError, EOFError, pickle.UnpicklingError, MemoryError) as error:
        raise CheckpointError(f"{path} cannot be read: {shortened(str(error))}; correct the file") from error
    for name in ("itos", "stoi", "tokens", "vocab"):
        if isinstance(content, dict) and isinstance(content.get(name), list | dict):
            content = content[name]
    if isinstance(content, dict):
        content = _by_id(content, path)
    if not isinstance(content, list) or not all(isinstance(token, str) for token in content):
        raise VocabularyError(f"{path}: expected a list of tokens, or an object that maps tokens to ids")
    return content


def special_ids(tokens: Sequence[str], side: str = "vocabulary") -> SpecialIds:
    """Return the ids of the special tokens, found by their usual names.

    Raises:
        ConfigError: no token, or more than one, has a usual name of a special token.
    """
    found = []
    for ours, names in zip(SPECIALS, NAMES, strict=True):
        ids = [id for id, token in enumerate(tokens) if token in names]
        if len(ids) != 1:
            raise ConfigError(
                f"{side}: expected one token {' or '.join(names)} as {ours}, got {len(ids)} such tokens; give "
                "--special-ids PAD,BOS,EOS,UNK"
            )
        found += ids
    return SpecialIds(*found)


def lookup_tokenizer(
    kind: LookupKind | None,
    tokens: Sequence[str],
    *,
    normalisation: Normalisation | None = None,
    with_bos: bool = False,
    with_eos: bool = True,
) -> Tokenizer:
    """Return a tokenizer of words or characters with these tokens, listed by id; the special tokens come first.

    Without a kind, the tokens are characters if each is a single character, except tokens such as <mask> or [MASK].
    Without a normalisation, the tokens show it.

    Raises:
        VocabularyError: the tokens are not a vocabulary.
    """
    how: dict[str, Any] = {"normalisation": normalisation, "with_bos": with_bos, "with_eos": with_eos}
    match kind or _kind(tokens[len(SPECIALS) :]):
        case "words":
            return WordTokenizer(Vocabulary(tuple(tokens)), **how)
        case "characters":
            characters = tuple(SPACE_MARK if token == " " else token for token in tokens)
            return CharacterTokenizer(Vocabulary(characters), **how)


def _kind(tokens: Iterable[str]) -> LookupKind:
    ordinary = [token for token in tokens if not (len(token) > 2 and token[0] + token[-1] in ("<>", "[]"))]
    return "characters" if ordinary and all(len(token) == 1 for token in ordinary) else "words"


def reordered(
    model: Transformer, source: Sequence[int], target: Sequence[int], *, never: Collection[int] = ()
) -> Transformer:
    """Return the model with new token ids: token i gets the embedding that token `source[i]` or `target[i]` had.

    The special tokens come first, with the ids of `SPECIALS`. `source` and `target` may contain an old id more than
    once. If a target token is a copy that the original model does not have, its new id must be in `never`, so that the
    copy changes no probability.

    Args:
        model: the model.
        source: the old id of each source token.
        target: the old id of each target token.
        never: the new ids of target tokens that the model must never write: their output bias becomes `NEVER_WRITTEN`.

    Raises:
        ConfigError: the embeddings are tied, and `source` and `target` differ.
    """
    if model.config.tie_embeddings and list(source) != list(target):
        raise ConfigError("source and target share one embedding: expected one vocabulary for both, got two")
    sizes = {"vocab_size": None, "source_vocab_size": len(source), "target_vocab_size": len(target)}
    bias = {"output_bias": model.config.output_bias or bool(never)}
    config = ModelConfig.from_dict({**model.config.to_dict(), **OUR_IDS, **sizes, **bias})
    orders = {"source.tokens.weight": source, "target.tokens.weight": target}
    orders |= {"output.weight": target, "output.bias": target}
    weights = {
        name: weight.detach()[torch.tensor(orders[name])] if name in orders else weight.detach()
        for name, weight in model.named_parameters()
    }
    if never:
        weights.setdefault("output.bias", weights["source.tokens.weight"].new_zeros(len(target)))
        weights["output.bias"][list(never)] = NEVER_WRITTEN
    result = Transformer(config).to(next(model.parameters()).dtype)
    put_weights(result, weights, "the imported model")
    return result.eval()


class _PlainUnpickler(pickle.Unpickler):
    """Reads a pickle of plain values: objects, which could run code, are refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it holds an object of class {module}.{name}; save the tokens as JSON")


def _sides(tokens: ForeignTokens) -> tuple[tuple[str, Sequence[str]], tuple[str, Sequence[str]]]:
    return ("source", tokens.source), ("target", tokens.target)


def _renamed(name: str, renames: Mapping[str, str]) -> str:
    for old, new in renames.items():
        name = name.replace(old, new)
    return name


def _by_id(ids: Mapping[Any, Any], path: Path) -> list[Any]:
    if not all(isinstance(id, int) for id in ids.values()) or sorted(ids.values()) != list(range(len(ids))):
        raise VocabularyError(f"{path}: expected the ids 0 to {len(ids) - 1}, each once")
    return sorted(ids, key=lambda token: int(ids[token]))
