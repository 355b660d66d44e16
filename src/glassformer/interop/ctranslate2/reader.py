"""Import a folder of CTranslate2 as a run.

A CTranslate2 model has no tokenizer: the programs that use the model cut texts into tokens. An export by glassformer
contains its tokenizers; other folders often contain the sentencepiece models from training.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from glassformer.bundle import CONFIG, TOKENIZER, Bundle, SourceFacts, put_weights
from glassformer.errors import CheckpointError, ConfigError, VocabularyError, quoted, remedy
from glassformer.interop.ctranslate2.folder import CTranslate2Folder, read_ctranslate2
from glassformer.interop.ctranslate2.model import heads_first, with_heads_in_order
from glassformer.interop.ctranslate2.weights import (
    Floats,
    ImportedRow,
    imported_rows,
    imported_weights,
    starts_from_zeros,
)
from glassformer.interop.importing import Imported, LookupKind, check_target, lookup_tokenizer, write_run
from glassformer.model.alignment import Alignment
from glassformer.model.config import ModelConfig
from glassformer.model.transformer import Transformer
from glassformer.system.files import read_bytes
from glassformer.text.marian import MarianTokenizer
from glassformer.text.normalisation import SPACE_MARK
from glassformer.text.subwords import load_processor
from glassformer.text.tokenizer import Tokenizer

__all__ = ["ForeignTexts", "import_ctranslate2_run", "is_ctranslate2"]

_PAIR = ("source.spm", "target.spm")
"""The names of the source's and the target's sentencepiece model in Hugging Face's folders."""
_FIELDS = {"bos_token": str, "eos_token": str, "unk_token": str, "add_source_bos": bool, "add_source_eos": bool}
_KINDS = {str: "a token", bool: "true or false"}
KNOWN_PIECES = 0.25
"""Minimum share of a sentencepiece model's pieces that the vocabulary must contain; with a smaller share, the
sentencepiece model belongs to a different model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTexts:
    """How texts are cut into tokens for a CTranslate2 model, because the model's folder does not say so."""

    sentencepiece: Sequence[Path] = ()
    """The files of sentencepiece models: one for both source and target, or one for each; by default, those in the
    folder."""
    kind: LookupKind | None = None
    """How texts are cut into tokens without a sentencepiece model; by default, what each vocabulary shows."""
    source_eos: bool | None = None
    """Whether sources end with `eos_token` although `add_source_eos` is false; None = not known."""
    prefix: str = ""
    """The first token of each target, if the model's `decoder_start_token` is null."""


class _SpecialTokens(NamedTuple):
    """The special tokens in `config.json`, and whether sources get them."""

    bos: str
    eos: str
    unk: str
    start: str
    source_bos: bool
    source_eos: bool


def is_ctranslate2(folder: Path) -> bool:
    """Return whether a folder holds a model of CTranslate2."""
    return (folder / "model.bin").exists()


def import_ctranslate2_run(
    source: Path,
    folder: Path,
    texts: ForeignTexts | None = None,
    *,
    origin: str = "",
    languages: tuple[str, str] | None = None,
    decoding: Mapping[str, Any] | None = None,
    source_facts: SourceFacts | None = None,
) -> Imported:
    """Write a run with the model of a CTranslate2 folder.

    Args:
        source: the folder with model.bin, the vocabularies and, since CTranslate2 3.0, config.json.
        folder: the folder to write, which must be empty or absent.
        texts: how texts are cut into tokens, which the folder does not say.
        origin: the name of the imported model; by default, the name of the folder.
        languages: the languages of source and target; by default, the run's languages if glassformer exported it.
        decoding: settings of the section [decoding]; by default, the run's settings if glassformer exported it.
        source_facts: how the training sources were written; by default, what the run knows if glassformer exported it.

    Raises:
        CheckpointError: a file is missing or damaged, or the run cannot be written.
        ConfigError: the model computes something that glassformer's Transformer cannot, or `folder` is not empty.
        VocabularyError: a vocabulary or a sentencepiece model does not fit the weights.
    """
    check_target(folder)
    texts = texts or ForeignTexts()
    files = read_ctranslate2(source)
    tokens = _special_tokens(files.config, texts)
    sides = _sides(files, tokens)
    config, weights = imported_weights(files, *sides)
    own = _own(source, sides)
    if own:
        config = replace(config, **_untold(own.model_config, config))
        languages = languages or own.configuration.data.languages
        decoding = decoding or asdict(own.configuration.decoding)
    if own and own.alignment:
        weights = _in_own_order(weights, own.alignment.of_prediction, config)
    tokenizers = (own.source_tokenizer, own.target_tokenizer) if own else _tokenizers(source, sides, tokens, texts)
    model = Transformer(config).eval()
    put_weights(model, {name: torch.from_numpy(weight) for name, weight in weights.items()}, str(source))
    bundle = write_run(
        model,
        tokenizers,
        folder,
        origin=origin or source.resolve().name,
        languages=languages or ("", ""),
        decoding=decoding,
        alignment=own.alignment if own else None,
        source_facts=source_facts or (own.source_facts if own else None),
    )
    return Imported(bundle, "a model of CTranslate2", 0.0)


def _special_tokens(config: Mapping[str, Any], texts: ForeignTexts) -> _SpecialTokens:
    """Return the special tokens; refuse a model whose special tokens a run cannot have."""
    values: dict[str, Any] = {"add_source_bos": False, "add_source_eos": False, **config}
    for name, kind in _FIELDS.items():
        if not isinstance(values.get(name), kind):
            raise CheckpointError(
                f"config.json: {name}: expected {_KINDS[kind]}, got {quoted(values.get(name))}; correct the file"
            )
    start = values.get("decoder_start_token", values["bos_token"])
    if start is None and not texts.prefix:
        raise ConfigError(
            "config.json: decoder_start_token: expected a token, got null, because this model's callers give the first "
            "token of each target; write this token, such as a token for the target language, into config.json"
        )
    if start is not None and texts.prefix:
        raise ConfigError(
            f"target_prefix: expected none beside decoder_start_token = {quoted(start)}, got {quoted(texts.prefix)}; "
            "a model with both cannot be imported, because a run's outputs begin with only one fixed token"
        )
    source_eos = values["add_source_eos"] or texts.source_eos
    if source_eos is None:
        raise ConfigError(
            f"add_source_eos is false: the model adds no {quoted(values['eos_token'])} to sources, but the programs "
            "that use the model may add it; give --source-eos if they do (as with models of Hugging Face), or "
            "--no-source-eos if sources have no end (OpenNMT)"
        )
    return _SpecialTokens(
        bos=values["bos_token"],
        eos=values["eos_token"],
        unk=values["unk_token"],
        start=texts.prefix if start is None else _text("decoder_start_token", start),
        source_bos=values["add_source_bos"],
        source_eos=source_eos,
    )


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise CheckpointError(f"config.json: {name}: expected a token, got {quoted(value)}; correct the file")
    return value


def _sides(files: CTranslate2Folder, tokens: _SpecialTokens) -> tuple[list[ImportedRow], list[ImportedRow]]:
    """Return the vocabulary rows of source and target: the same list twice if both share one vocabulary."""
    rows = partial(imported_rows, bos=tokens.bos, eos=tokens.eos, unk=tokens.unk)
    target = rows(files.target, start=tokens.start, zero_start=starts_from_zeros(files))
    if not tokens.source_bos and files.source == files.target:
        return target, target
    source = rows(files.source, start=tokens.bos if tokens.source_bos else None)
    return (target, target) if source == target else (source, target)


def _own(source: Path, sides: Sequence[Sequence[ImportedRow]]) -> Bundle | None:
    """Return the bundle of a folder that glassformer exported; None for any other folder."""
    if not ((source / CONFIG).exists() and (source / TOKENIZER).exists()):
        return None
    bundle = Bundle.load(source)
    for name, rows, tokenizer in zip(
        ("source", "target"), sides, (bundle.source_tokenizer, bundle.target_tokenizer), strict=True
    ):
        if tokenizer.tokens(range(len(tokenizer))) != [row.token for row in rows]:
            raise VocabularyError(
                f"{source / TOKENIZER}: expected the {name} tokens of CTranslate2's vocabulary, got different tokens; "
                "export the run again"
            )
    return bundle


def _in_own_order(weights: dict[str, Floats], alignment: Alignment, config: ModelConfig) -> dict[str, Floats]:
    """Return the weights with the heads in the order of the run; the export puts the heads that align words first."""
    order = heads_first(alignment, config)
    return with_heads_in_order(weights, config, alignment.layer, [order.index(head) for head in range(config.heads)])


def _untold(own: ModelConfig, found: ModelConfig) -> dict[str, Any]:
    """Return the fields of an exported run's configuration that the weights do not show."""
    names = ["dropout", "attention_dropout", "activation_dropout"]
    return {name: getattr(own, name) for name in (*names, *([] if found.positions == "learned" else ["max_length"]))}


def _tokenizers(
    source: Path, sides: Sequence[list[ImportedRow]], special: _SpecialTokens, texts: ForeignTexts
) -> tuple[Tokenizer, Tokenizer]:
    paths = [*texts.sentencepiece] or _models_in(source)
    of_source, of_target = ([row.token for row in rows] for rows in sides)
    with_eos = special.source_eos
    if not paths:
        source_tokenizer = _from_vocabulary(of_source, texts.kind, with_bos=special.source_bos, with_eos=with_eos)
        return source_tokenizer, _from_vocabulary(of_target, texts.kind)
    if special.source_bos:
        raise ConfigError(
            "add_source_bos: expected false with a sentencepiece model, got true: our tokenizer for such "
            "models adds no <bos>; such a model cannot be imported"
        )
    models = _sentencepiece(paths[0], of_source), _sentencepiece(paths[-1], of_target)
    target_tokenizer = MarianTokenizer(models[1], of_target)
    if with_eos and models[0] == models[1] and of_source == of_target:
        return target_tokenizer, target_tokenizer
    return MarianTokenizer(models[0], of_source, with_eos=with_eos), target_tokenizer


def _models_in(source: Path) -> list[Path]:
    """Return the sentencepiece models in a folder: one for both source and target, one for each of them, or none."""
    pair = [source / name for name in _PAIR]
    if all(path.exists() for path in pair):
        return pair
    found = sorted({*source.glob("*.spm"), *source.glob("*.model")})
    if len(found) > 1:
        raise ConfigError(
            f"{source} has several sentencepiece models, {', '.join(path.name for path in found)}; give "
            "--sentencepiece once for source and target, or twice: first the source's, then the target's"
        )
    return found


def _sentencepiece(path: Path, tokens: Sequence[str]) -> bytes:
    """Return the bytes of a sentencepiece model that fits a vocabulary."""
    try:
        model = read_bytes(path)
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror}; {remedy(error, 'correct the path')}") from error
    try:
        processor = load_processor(model)
    except VocabularyError as error:
        raise VocabularyError(f"{path}: {error}") from error
    pieces = {processor.id_to_piece(id) for id in range(processor.get_piece_size())}
    if (known := len(pieces & {*tokens})) < KNOWN_PIECES * len(pieces):
        raise VocabularyError(
            f"{path}: expected a sentencepiece model whose pieces are in the vocabulary, got a model with {known:,} of "
            f"{len(pieces):,} pieces in the vocabulary; give another file with --sentencepiece"
        )
    return model


def _from_vocabulary(
    tokens: Sequence[str], kind: LookupKind | None, *, with_bos: bool = False, with_eos: bool = True
) -> Tokenizer:
    """Return the tokenizer of words or characters with these tokens; refuse a vocabulary of sentencepiece pieces."""
    piece = next((token for token in tokens if token.startswith(SPACE_MARK) and len(token) > 1), None)
    if piece is not None:
        raise ConfigError(
            f"the vocabulary holds pieces of sentencepiece, such as {quoted(piece)}, but the folder has no "
            "sentencepiece model to cut texts into them; give it with --sentencepiece FILE"
        )
    return lookup_tokenizer(kind, tokens, with_bos=with_bos, with_eos=with_eos)
