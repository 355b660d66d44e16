"""Import a folder of Hugging Face's transformers: Marian (such as OPUS-MT) or Pegasus.

Marian is the paper's post-norm Transformer; Pegasus is pre-norm with a final norm on each stack. Both add biases to the
logits, and both start the decoder with a start token, which is often `<pad>`. Neither has our token `<bos>`, so the
import adds this token: its embedding is a copy of the start token's embedding, and its output bias is so low that its
probability is 0.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast, get_args

from torch import Tensor

from glassformer.bundle import SourceFacts, put_weights
from glassformer.errors import CheckpointError, ConfigError, VocabularyError, either, quoted
from glassformer.interop.activations import OF_HUGGING_FACE
from glassformer.interop.exporting import EXPORTER
from glassformer.interop.huggingface.writer import in_stream_order, stream_in_halves
from glassformer.interop.importing import (
    OUR_IDS,
    Imported,
    check_target,
    lookup_tokenizer,
    reordered,
    write_run,
)
from glassformer.interop.torch.state_dicts import HUGGING_FACE, import_state_dict, is_sinusoidal, recognised
from glassformer.interop.torch.weight_files import read_state_dicts
from glassformer.model.transformer import Transformer
from glassformer.system.files import read_any_json, read_bytes
from glassformer.text.marian import MarianTokenizer
from glassformer.text.normalisation import Normalisation
from glassformer.text.subwords import SentencePieceTokenizer, load_processor
from glassformer.text.tokenizer import TOKENIZER_KINDS, KindName, Tokenizer
from glassformer.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, SPECIALS

__all__ = ["import_hugging_face", "is_hugging_face"]

T = TypeVar("T")

_CONFIG, _GENERATION, _TOKENIZER = "config.json", "generation_config.json", "tokenizer_config.json"
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
"""The possible files with weights, of which the first that exists is read. An index lists the files of a model that is
stored in several files."""

_PEGASUS_MODEL = "spiece.model"
"""The sentencepiece model in published Pegasus folders, for source and target; such a folder has no vocab.json."""
_PEGASUS_OFFSET = 103
"""The number that Pegasus adds to the ids of its sentencepiece model."""

_SPM = {"source.spm": "vocab.json", "target.spm": "target_vocab.json"}
"""The sentencepiece models of source and target, and their vocabularies if source and target have separate
vocabularies."""

_TABLES = HUGGING_FACE.positions
_SINUSOIDS = 1e-5
"""A position table that differs from the sinusoids by at most this much counts as sinusoidal. Computing the table in
float32 makes a difference of 1e-6. A table that was saved in half precision differs more, and is kept."""

_DEFAULTS: Mapping[str, Any] = {
    "activation_function": "gelu",
    "scale_embedding": False,
    "encoder_layers": 12,
    "decoder_layers": 12,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "encoder_ffn_dim": 4096,
    "decoder_ffn_dim": 4096,
    "d_model": 1024,
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
}
"""The values of fields that config.json leaves out, for Marian and Pegasus."""
_IDS: Mapping[str, Mapping[str, Any]] = {
    "marian": {"pad_token_id": 58100, "eos_token_id": 0, "decoder_start_token_id": 58100},
    "pegasus": {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0},
}
_FIXED: Mapping[str, tuple[Any, ...]] = {
    "normalize_embedding": (False,),
    "extra_pos_embeddings": (0,),
    "static_position_embeddings": (True,),
    "add_bias_logits": (False,),
    "is_encoder_decoder": (True,),
    "forced_bos_token_id": (None,),
}
"""Fields of old config.json files, with the only values that glassformer's Transformer supports."""
_OTHERS = {
    "t5": "relative positions and RMS norm",
    "mt5": "relative positions and RMS norm",
    "umt5": "relative positions and RMS norm",
    "bart": "a layer norm on the embeddings",
    "mbart": "a layer norm on the embeddings",
    "plbart": "a layer norm on the embeddings",
    "blenderbot-small": "a layer norm on the embeddings",
    "m2m_100": "a first target token that is forced, and sources that begin with a language",
    "fsmt": "positions that begin at 2, and a decoder that starts with </s>",
    "whisper": "convolutions",
}
"""Kinds of models that cannot be imported, each with the part that glassformer's Transformer does not have."""


class _Side(NamedTuple):
    """The vocabulary of the source or of the target."""

    tokens: dict[int, str]
    """The tokens by their ids in the folder."""
    order: list[int]
    """The folder's id of each token, in the order of our ids."""


def is_hugging_face(folder: Path) -> bool:
    """Return whether a folder holds a model of Hugging Face's transformers."""
    path = folder / _CONFIG
    return path.is_file() and "model_type" in _object(path)


def import_hugging_face(
    source: Path, folder: Path, *, languages: tuple[str, str] | None = None, settings: Mapping[str, Any] | None = None
) -> Imported:
    """Write a run with the model in a folder of Hugging Face's transformers.

    Args:
        source: the folder with config.json, the weights, vocab.json, source.spm, target.spm, perhaps target_vocab.json.
        folder: the folder to write, which must be empty or absent.
        languages: the languages of source and target; by default, the languages in tokenizer_config.json.
        settings: fields of ModelConfig that replace the folder's values, such as `dropout`.

    Raises:
        CheckpointError: a file is missing or damaged, or a weight is missing or unknown.
        ConfigError: the model computes something that glassformer's Transformer cannot, or `folder` is not empty.
        VocabularyError: a vocabulary does not fit the weights.
    """
    check_target(folder)
    config = _checked_config(source)
    state = _normal_names(_state(source), config)
    model = _model(state, config, settings or {})
    own = config.get(EXPORTER)
    if isinstance(own, dict):
        model, tokenizers = _in_own_order(source, model, own), _own_tokenizers(source, own)
    else:
        sides = _sides(source, config, (model.config.source_vocab_size, model.config.target_vocab_size))
        model = reordered(model, sides[0].order, sides[1].order, never=_invented(sides[1]))
        tokenizers = _tokenizers(source, sides)
    kind = str(config["model_type"]).capitalize()
    bundle = write_run(
        model,
        tokenizers,
        folder,
        origin=source.resolve().name,
        languages=languages or _languages(source),
        decoding=_decoding(config),
        source_facts=SourceFacts.load(source) if isinstance(own, dict) else None,
    )
    return Imported(bundle, f"{kind} of Hugging Face's transformers", 0.0)


def _checked_config(source: Path) -> dict[str, Any]:
    """Return the content of config.json, with defaults for missing fields; refuse a model that cannot be imported."""
    path = source / _CONFIG
    given = _object(path)
    kind = str(given.get("model_type"))
    if kind not in _IDS:
        need = f", which has {_OTHERS[kind]}" if kind in _OTHERS else ""
        raise ConfigError(f"{path}: model_type: expected marian or pegasus, got {quoted(kind)}{need}")
    generation = _optional(source / _GENERATION)
    ids = {name: value for name, value in generation.items() if name in _IDS[kind]}
    present = {name: value for name, value in {**ids, **given}.items() if value is not None}
    config = {**_DEFAULTS, **_IDS[kind], "num_beams": generation.get("num_beams"), **present}
    before = (kind == "pegasus",)
    for name, allowed in {**_FIXED, "normalize_before": before, "add_final_layer_norm": before}.items():
        if name in config and config[name] not in allowed:
            raise ConfigError(f"{path}: {name}: expected {quoted(allowed[0])} with {kind}, got {quoted(config[name])}")
    for name, default in {**_DEFAULTS, **_IDS[kind]}.items():
        _check_type(path, name, config[name], default)
    for name in ("attention_heads", "ffn_dim"):
        one, other = config[f"encoder_{name}"], config[f"decoder_{name}"]
        if one != other:
            raise ConfigError(f"{path}: decoder_{name}: expected the encoder's {one}, got {other}; both must be equal")
    if config["activation_function"] not in OF_HUGGING_FACE:
        raise ConfigError(
            f"{path}: activation_function: expected {', '.join(OF_HUGGING_FACE)}, got "
            f"{quoted(config['activation_function'])}"
        )
    return config


def _check_type(path: Path, name: str, value: Any, default: Any) -> None:
    kinds: tuple[type, ...] = (int, float) if isinstance(default, float) else (type(default),)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise ConfigError(f"{path}: {name}: expected {type(default).__name__}, got {quoted(value)}")


def _state(source: Path) -> dict[str, Tensor]:
    """Return all tensors of a folder, from one file or from several files."""
    found = next((source / name for name in _WEIGHTS if (source / name).exists()), None)
    if found is None:
        raise CheckpointError(f"{source} holds no weights; expected one of {', '.join(_WEIGHTS)}")
    _, tensors = recognised(read_state_dicts(found), families={"": HUGGING_FACE})
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}


def _normal_names(state: dict[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the state dict with shared matrices under all their names, and with the output biases as a vector.

    Sinusoidal position tables are left out.
    """
    state = dict(state)
    if "final_logits_bias" in state:
        state["lm_head.bias"] = state.pop("final_logits_bias").reshape(-1)
    shared = state.pop("model.shared.weight", None)
    if config.get("share_encoder_decoder_embeddings", True):
        first, second = (f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder"))
        for name, other in ((first, shared), (second, state.get(first, shared))):
            if other is not None:
                state.setdefault(name, other)
    if "model.decoder.embed_tokens.weight" in state and config.get("tie_word_embeddings", True):
        state["lm_head.weight"] = state["model.decoder.embed_tokens.weight"]
    tables = [state.get(name) for name in _TABLES]
    if all(table is None or is_sinusoidal(table, "halves", _SINUSOIDS) for table in tables):
        for name in _TABLES:
            state.pop(name, None)
    return state


def _model(state: Mapping[str, Tensor], config: Mapping[str, Any], settings: Mapping[str, Any]) -> Transformer:
    """Return the model, with the token ids of the folder; refuse sizes in config.json that contradict the weights."""
    if not config["scale_embedding"]:
        # Our model multiplies all embeddings by √d_model, but the model in the folder does not.
        scale = 1 / math.sqrt(config["d_model"])
        names = [f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder")]
        state = {name: tensor * scale if name in names else tensor for name, tensor in state.items()}
    model = import_state_dict(
        state,
        family=HUGGING_FACE,
        heads=config["encoder_attention_heads"],
        **OUR_IDS,  # valid only after the embeddings have been reordered
        **{
            "norm": "pre" if config["model_type"] == "pegasus" else "post",
            "positions": "learned" if _TABLES[0] in state else "halves",
            "activation": OF_HUGGING_FACE[config["activation_function"]],
            **{name: float(config[name]) for name in ("dropout", "attention_dropout", "activation_dropout")},
            **settings,
        },
    )
    for ours, theirs in (
        ("encoder_layers", "encoder_layers"),
        ("decoder_layers", "decoder_layers"),
        ("d_model", "d_model"),
        ("d_ff", "encoder_ffn_dim"),
    ):
        if getattr(model.config, ours) != config[theirs]:
            raise CheckpointError(
                f"{_CONFIG}: {theirs}: expected {getattr(model.config, ours)}, as in the weights, got {config[theirs]}"
            )
    return model


def _in_own_order(source: Path, model: Transformer, own: Mapping[str, Any]) -> Transformer:
    """Return the model of an exported run, with its residual stream in our order.

    The tokens of an exported run already have our ids. The export reorders the residual stream of interleaved
    positions.

    Raises:
        CheckpointError: config.json names unknown positions.
    """
    match own.get("positions"):
        case "interleaved":
            pass
        case "halves":
            return model
        case other:
            raise CheckpointError(
                f"{source / _CONFIG}: {EXPORTER}: positions: expected interleaved or halves, got {quoted(other)}; "
                "export the run again"
            )
    halves = stream_in_halves(model.config.d_model)
    order = [halves.index(place) for place in range(len(halves))]
    weights = {name: in_stream_order(name, weight.detach(), order) for name, weight in model.named_parameters()}
    restored = Transformer(replace(model.config, positions="interleaved"))
    put_weights(restored, weights, "the imported model")
    return restored.eval()


def _own_tokenizers(source: Path, own: Mapping[str, Any]) -> tuple[Tokenizer, Tokenizer]:
    """Return the tokenizers of an exported run."""
    found: list[Tokenizer] = []
    kinds = own.get("kinds")
    if not isinstance(kinds, list) or len(kinds) != len(_SPM):
        raise CheckpointError(
            f"{source / _CONFIG}: {EXPORTER}: expected the kinds of two tokenizers, got {quoted(kinds)}"
        )
    normalisations = own.get("normalisations")
    if not isinstance(normalisations, list) or len(normalisations) != len(_SPM):
        normalisations = [None] * len(_SPM)  # an export of an older version
    for name, kind, normalisation in zip(_SPM, kinds, normalisations, strict=True):
        if not isinstance(kind, str) or kind not in TOKENIZER_KINDS:
            known = either([*TOKENIZER_KINDS])
            raise CheckpointError(
                f"{source / _CONFIG}: {EXPORTER}: kinds: expected {known}, got {quoted(kind)}; export the run again"
            )
        if normalisation not in (None, *get_args(Normalisation)):
            raise CheckpointError(
                f"{source / _CONFIG}: {EXPORTER}: normalisations: expected {either(get_args(Normalisation))}, got "
                f"{quoted(normalisation)}; export the run again"
            )
        found.append(_own_tokenizer(source, name, cast(KindName, kind), normalisation))
    return (found[0], found[0]) if own.get("joint") is True else (found[0], found[1])


def _own_tokenizer(source: Path, name: str, kind: KindName, normalisation: Normalisation | None) -> Tokenizer:
    """Return a tokenizer of an exported run; `name` is the file of its sentencepiece model."""
    match kind:
        case "bpe" | "unigram":
            return _readable(source / name, partial(SentencePieceTokenizer, kind, normalisation=normalisation))
        case "marian":
            stored = source / _SPM[name] if _separate(source) else source / "vocab.json"
            return _readable(source / name, partial(MarianTokenizer, tokens=[*_object(stored)]))
        case "words" | "characters":
            tokens, ends = _own_vocabulary(source / "tokenizer.json")
            return lookup_tokenizer(kind, tokens, normalisation=normalisation, **ends)


def _own_vocabulary(path: Path) -> tuple[list[str], dict[str, bool]]:
    """Return the tokens in a tokenizer.json by id, and whether texts begin with `<bos>` and end with `<eos>`."""
    match _object(path):
        case {"model": {"vocab": dict(ids)}, "post_processor": {"special_tokens": dict(added)}}:
            return [*map(str, ids)], {"with_bos": SPECIALS[BOS_ID] in added, "with_eos": SPECIALS[EOS_ID] in added}
        case _:
            raise CheckpointError(f"{path}: expected a vocabulary and the special tokens of texts; copy the file again")


def _sides(source: Path, config: Mapping[str, Any], sizes: tuple[int, int]) -> tuple[_Side, _Side]:
    """Return the vocabularies of source and target; without target_vocab.json, both are the same vocabulary."""
    names = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", **dict(_token_names(source))}
    special = [config[f"{name}_token_id"] for name in ("pad", "decoder_start", "eos")]
    if (source / _PEGASUS_MODEL).exists():
        tokens = _pegasus_tokens(source / _PEGASUS_MODEL, sizes[0])
        path = source / _PEGASUS_MODEL
    else:
        path = source / ("target_vocab.json" if _separate(source) else "vocab.json")
        tokens = _vocabulary(path, sizes[1])
    for name, id in zip(("pad", "decoder_start", "eos"), special, strict=True):
        if id not in tokens:
            raise ConfigError(
                f"{source / _CONFIG}: {name}_token_id: expected an id of the vocabulary, got {quoted(id)}"
            )
    target = _Side(tokens, _order([*special, _id_of(tokens, names["unk_token"], path)], tokens))
    if not _separate(source):
        return target, target
    path = source / "vocab.json"
    tokens = _vocabulary(path, sizes[0])
    pad, eos, unk = (_id_of(tokens, names[f"{name}_token"], path) for name in ("pad", "eos", "unk"))
    return _Side(tokens, _order([pad, pad, eos, unk], tokens)), target


def _order(special: Sequence[int], tokens: Mapping[int, str]) -> list[int]:
    """Return the folder's ids in the order of our ids: the special tokens, then all other tokens in their order."""
    pad, _, *others = special
    # The start token's id occurs twice: as <bos>, and as its own token unless it is also another special token.
    return [*special, *(id for id in sorted(tokens) if id not in (pad, *others))]


def _invented(side: _Side) -> list[int]:
    """Return the ids of the special tokens that the original model does not have, and that must never be written.

    They are `<bos>`, and `<pad>` if the folder uses another special token as padding.
    """
    pad, _, *others = side.order[: len(SPECIALS)]
    return [BOS_ID, *([PAD_ID] if pad in others else [])]


def _vocabulary(path: Path, rows: int) -> dict[int, str]:
    """Return the tokens of a vocabulary by id, one for each row of the embedding."""
    content = _object(path)
    if wrong := [id for id in content.values() if not (isinstance(id, int) and 0 <= id < rows)]:
        raise VocabularyError(f"{path}: expected ids below {rows}, the rows of the embedding, got {quoted(wrong[0])}")
    tokens = {id: token for token, id in content.items()}
    if len(tokens) < len(content):
        raise VocabularyError(f"{path}: expected a different id for each token; an id occurs more than once")
    return _named_rows(tokens, rows)


def _named_rows(tokens: Mapping[int, str], rows: int) -> dict[int, str]:
    """Return the token of each row of the embedding; a row without a token gets a name that no text contains."""
    return {id: tokens.get(id, f"<row {id}>") for id in range(rows)}


def _id_of(tokens: Mapping[int, str], token: str, path: Path) -> int:
    id = next((id for id, other in tokens.items() if other == token), None)
    if id is None:
        raise VocabularyError(
            f"{path}: expected the token {quoted(token)} in the vocabulary, which does not have it; copy the file again"
        )
    return id


def _pegasus_tokens(path: Path, rows: int) -> dict[int, str]:
    """Return Pegasus' tokens by id: 105 special tokens, then the model's pieces from the unknown piece on."""
    processor = _readable(path, load_processor)
    tokens = {0: "<pad>", 1: "</s>", **{id: f"<mask_{id - 1}>" for id in (2, 3)}}
    tokens |= {id: f"<unk_{id - 2}>" for id in range(4, _PEGASUS_OFFSET + 2)}
    pieces = min(processor.get_piece_size(), rows - _PEGASUS_OFFSET)
    tokens |= {id + _PEGASUS_OFFSET: processor.id_to_piece(id) for id in range(2, pieces)}
    if tokens.get(_PEGASUS_OFFSET + processor.unk_id()) is None:
        raise VocabularyError(f"{path}: expected a model whose unknown piece has the id 2, got {processor.unk_id()}")
    tokens[_PEGASUS_OFFSET + processor.unk_id()] = "<unk>"
    return _named_rows(tokens, rows)


def _tokenizers(source: Path, sides: tuple[_Side, _Side]) -> tuple[Tokenizer, Tokenizer]:
    if (source / _PEGASUS_MODEL).exists():
        both = _tokenizer(source / _PEGASUS_MODEL, sides[0])
        return both, both
    first, second = (_tokenizer(source / name, side) for name, side in zip(_SPM, sides, strict=True))
    return first, second


def _tokenizer(path: Path, side: _Side) -> Tokenizer:
    rest = [side.tokens[id] for id in side.order[len(SPECIALS) :]]
    # The folder's vocabulary may contain a token that only looks like one of our special tokens.
    tokens = [*SPECIALS, *(f"[{token}]" if token in SPECIALS else token for token in rest)]
    found: Tokenizer = _readable(path, partial(MarianTokenizer, tokens=tokens))
    return found


def _readable(path: Path, make: Callable[[bytes], T]) -> T:
    """Call `make` with the bytes of a sentencepiece model file, and return the result; errors name the file."""
    try:
        return make(read_bytes(path))
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror}; copy the file again") from error
    except VocabularyError as error:
        raise VocabularyError(f"{path}: {error}") from error


def _separate(source: Path) -> bool:
    return _optional(source / _TOKENIZER).get("separate_vocabs") is True


def _token_names(source: Path) -> Iterator[tuple[str, str]]:
    """Yield the fields of tokenizer_config.json for special tokens, each with its token as text."""
    for name, value in _optional(source / _TOKENIZER).items():
        text = value.get("content") if isinstance(value, dict) else value
        if name in ("pad_token", "eos_token", "unk_token") and isinstance(text, str):
            yield name, text


def _languages(source: Path) -> tuple[str, str]:
    """Return the languages in tokenizer_config.json; "" for an entry that is not the tag of a single language."""
    given = _optional(source / _TOKENIZER)
    found = [given.get(f"{side}_lang") for side in ("source", "target")]
    tags = [tag if isinstance(tag, str) and tag.isalpha() and len(tag) in (2, 3) else "" for tag in found]
    return tags[0], tags[1]


def _decoding(config: Mapping[str, Any]) -> dict[str, Any]:
    beams = config["num_beams"]
    return {"beam_size": beams} if isinstance(beams, int) and beams >= 1 else {}


def _optional(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; an empty object if the file does not exist."""
    return _object(path) if path.exists() else {}


def _object(path: Path) -> dict[str, Any]:
    content = read_any_json(path)
    if not isinstance(content, dict):
        raise CheckpointError(f"{path}: expected a JSON object, got {quoted(content)}; copy the file again")
    return content
