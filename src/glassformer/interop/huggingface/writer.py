"""Export a run to a folder that Hugging Face's transformers can load: Marian (post-norm) or Pegasus (pre-norm).

config.json, generation_config.json    sizes, special tokens, search settings
model.safetensors                      the weights in float32, each matrix once
vocab.json, source.spm, target.spm     the tokenizers, or tokenizer.json for words and characters
tokenizer_config.json, README.md       how to load the tokenizers, and the model card
habits.json, spellings.txt             how the training sources were written, for those who import the folder

Tokens keep the ids that they have in the run. `<bos>`, with which the decoder starts, is also the padding token,
because CTranslate2's converter starts the decoder with the padding token (docs/decisions/export.md). Padding is masked,
so the embedding of the padding token does not matter.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glassformer.bundle import Bundle
from glassformer.decoding.hypothesis import score_text
from glassformer.decoding.options import Quantization
from glassformer.errors import ConfigError
from glassformer.interop.activations import OF_HUGGING_FACE, foreign_names
from glassformer.interop.ctranslate2.model import position_table, positions_of
from glassformer.interop.exporting import (
    EXPORTER,
    ExportOptions,
    check_order,
    check_quantization,
    check_trained,
    have_one_vocabulary,
    is_written_by_us,
    languages_of,
    normalising,
    replaced_folder,
    sentencepiece_model,
    weights_of,
)
from glassformer.interop.huggingface.fast_tokenizer import fast_tokenizer
from glassformer.interop.huggingface.model_card import model_card
from glassformer.interop.torch.state_dicts import HUGGING_FACE, Family
from glassformer.interop.verification import Verification, verify_outside
from glassformer.model.config import ModelConfig, NormPlace
from glassformer.text.tokenizer import TOKENIZER_KINDS, Tokenizer
from glassformer.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, SPECIALS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "HUGGING_FACE_QUANTIZATIONS",
    "check_hugging_face",
    "export_hugging_face",
    "hugging_face_weights",
    "in_stream_order",
    "stream_in_halves",
]

HUGGING_FACE_QUANTIZATIONS: tuple[Quantization, ...] = ("float32",)

_PACKAGES = "transformers sentencepiece"

_LONGEST_OUTPUT = 512
"""Maximum number of tokens of an output, as in published Marian models; users of the folder can change it."""

Arrays = dict[str, "NDArray[np.float32]"]


def export_hugging_face(bundle: Bundle, folder: Path, options: ExportOptions) -> Verification | None:
    """Write a run's model for transformers into a folder; return how closely transformers reproduces the run.

    Raises:
        CheckpointError: the weights are missing or damaged, the folder cannot be written, or transformers gives
            different log probabilities.
        ConfigError: transformers cannot express the model, the number format is not float32, the run does not name its
            languages, or the folder exists and is not an export.
        MissingDependencyError: transformers is not installed.
    """
    check_quantization(options.quantization, HUGGING_FACE_QUANTIZATIONS, "Hugging Face's transformers")
    check_trained(bundle)
    check_order(bundle)
    check_hugging_face(bundle)
    languages_of(bundle)
    with replaced_folder(folder, is_written_by_us) as temporary:
        _write(bundle, temporary, options)
        return verify_outside("huggingface", _PACKAGES, bundle, temporary, options)


def check_hugging_face(bundle: Bundle) -> None:
    """Refuse a model that neither Marian nor Pegasus can express.

    Raises:
        ConfigError: a setting has a value that neither supports; the message names a format that supports this value.
    """
    config = bundle.model_config
    width = config.d_model / config.heads
    for name in ("d_k", "d_v"):
        if getattr(config, name) != width:
            raise _cannot(name, f"d_model / heads = {width:g}", getattr(config, name), "onnx")
    if not foreign_names(config.activation).hugging_face:
        known = f"one of {', '.join(dict.fromkeys(OF_HUGGING_FACE.values()))}"
        raise _cannot("activation", known, config.activation, "onnx")
    if config.positions not in ("interleaved", "halves"):
        raise _cannot("positions", "interleaved or halves", config.positions)
    if config.final_norm != (config.norm == "pre"):
        raise _cannot("final_norm", f"{not config.final_norm} with {config.norm}-norm", config.final_norm)
    if config.norm == "pre" and not (have_one_vocabulary(bundle) and config.tie_embeddings):
        raise ConfigError(
            "tokenizer.joint: expected true with pre-norm, as Pegasus has one embedding, got false; train with "
            "tokenizer.joint = true, or export --to ctranslate2"
        )

    _check_tokenizers(bundle)


def _cannot(name: str, expected: str, got: object, able: str = "ctranslate2") -> ConfigError:
    return ConfigError(
        f"model.{name}: expected {expected}, as Hugging Face's Marian and Pegasus have, got {got}; export --to {able}"
    )


def _write(bundle: Bundle, folder: Path, options: ExportOptions) -> None:
    from safetensors.numpy import save_file

    folder.mkdir(parents=True)
    weights = folder / "model.safetensors"
    weights.touch()
    mode = weights.stat().st_mode
    save_file(hugging_face_weights(weights_of(bundle), bundle.model_config), weights, {"format": "pt"})
    weights.chmod(mode)  # safetensors 0.8 makes the file readable by its owner only, regardless of the umask
    files = {
        "config.json": _config(bundle),
        "generation_config.json": _generation(bundle),
        **_tokenizer(bundle, folder),
    }
    for name, content in files.items():
        text = json.dumps(content, ensure_ascii=False, indent=1)
        (folder / name).write_text(text + "\n", encoding="utf-8", newline="\n")
    card = model_card(
        bundle, options, _LOADING.format(name=json.dumps(bundle.folder.name, ensure_ascii=False)), _notes(bundle)
    )
    (folder / "README.md").write_text(card, encoding="utf-8", newline="\n")
    bundle.source_facts.save(folder)


# The weights


def hugging_face_weights(weights: Mapping[str, Any], config: ModelConfig) -> Arrays:
    """Return a run's weights under Marian's and Pegasus' names, each matrix once, reordered for positions "halves"."""
    import numpy as np

    ours = {name: np.asarray(weight, np.float32) for name, weight in weights.items()}
    if config.positions == "interleaved":
        order = stream_in_halves(config.d_model)
        ours = {name: in_stream_order(name, weight, order) for name, weight in ours.items()}
    bias = ours.pop("output.bias", None)
    theirs = dict(_renamed(ours, HUGGING_FACE))
    if config.tie_embeddings and config.tie_output:
        theirs["model.shared.weight"] = theirs.pop("model.encoder.embed_tokens.weight")
    elif config.tie_embeddings:  # transformers ties no embeddings if the output matrix is separate
        for name in _EMBEDDINGS[config.norm]:
            theirs[name] = theirs["model.encoder.embed_tokens.weight"]
    if config.norm == "pre":  # without the tables, transformers computes them, but warns that Pegasus lacks weights
        table = position_table("halves", positions_of(config), config.d_model)
        theirs |= {name: table.copy() for name in HUGGING_FACE.positions}
    if bias is not None:
        theirs["final_logits_bias"] = bias[None, :]
    return {name: np.ascontiguousarray(weight) for name, weight in theirs.items()}


_EMBEDDINGS = {
    "post": ("model.decoder.embed_tokens.weight",),
    "pre": ("model.shared.weight", "model.decoder.embed_tokens.weight"),
}
"""The names of the source embedding's copies if Marian (post) or Pegasus (pre) ties no embeddings."""


def stream_in_halves(d_model: int) -> list[int]:
    """Return the order of the residual stream that turns interleaved sinusoids into halves: 0, 2, 4, …, 1, 3, …"""
    return [*range(0, d_model, 2), *range(1, d_model, 2)]


def in_stream_order(name: str, weight: Any, order: Sequence[int]) -> Any:
    """Return a weight (an array or a tensor) for a reordered residual stream; `name` is our name of the weight."""
    if name.endswith(("output_projection.weight", "output_projection.bias", "contract.weight", "contract.bias")):
        return weight[order]  # weights that write to the residual stream
    if ".norm." in name:
        return weight[order]
    if name.endswith((".input_projection.bias", ".expand.bias", "output.bias")):
        return weight
    # weights that read from the residual stream: embeddings, the output matrix, the first matrix of each sub-layer
    return weight[:, order]


def _renamed(weights: Mapping[str, Any], family: Family) -> Iterator[tuple[str, Any]]:
    """Yield the weights under a family's names; a weight with several names there is divided by rows."""
    import numpy as np

    names = dict(_names(family, weights))
    for name, weight in weights.items():
        theirs = names[name]
        yield from zip(theirs, np.split(weight, len(theirs)), strict=True)


def _names(family: Family, weights: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield our name of each weight, with its names in a family."""
    for ours, theirs in family.outside.items():
        for part in ("weight", "bias"):
            yield ours.format(p=part, n=part), [theirs.format(p=part, n=part)]
    for stack, parts in family.parts.items():
        layers = {name.split(".")[2] for name in weights if name.startswith(f"{stack}.layers.")}
        for i in layers:
            layer = family.layer.format(stack=stack, i=i)
            for ours, names in parts.items():
                several = [names] if isinstance(names, str) else names
                for part in ("weight", "bias"):
                    yield (
                        f"{stack}.layers.{i}.{ours.format(p=part, n=part)}",
                        [f"{layer}.{one.format(p=part, n=part)}" for one in several],
                    )


# The configurations


def _config(bundle: Bundle) -> dict[str, Any]:
    config = bundle.model_config
    shared = config.tie_embeddings and (config.tie_output or config.norm == "pre")
    model_type, architecture = _kind(config.norm)
    sizes: dict[str, Any] = {}
    for side in ("encoder", "decoder"):
        sizes[f"{side}_layers"] = getattr(config, f"{side}_layers")
        sizes[f"{side}_attention_heads"], sizes[f"{side}_ffn_dim"] = config.heads, config.d_ff
    # CTranslate2's converter still reads these two fields of Pegasus, which transformers 5 no longer has.
    read_by_converters = {"normalize_before": config.norm == "pre", "normalize_embedding": False}
    return {
        "architectures": [architecture],
        "model_type": model_type,
        EXPORTER: {
            "positions": config.positions,
            "kinds": [tokenizer.kind for _, tokenizer in _sides(bundle)],
            "normalisations": [tokenizer.normalisation for _, tokenizer in _sides(bundle)],
            "joint": bundle.source_tokenizer is bundle.target_tokenizer,
        },
        "vocab_size": config.source_vocab_size,
        **({} if shared or config.norm == "pre" else {"decoder_vocab_size": config.target_vocab_size}),
        "d_model": config.d_model,
        **sizes,
        "activation_function": foreign_names(config.activation).hugging_face[0],
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout,
        "scale_embedding": True,
        "static_position_embeddings": True,
        "max_position_embeddings": positions_of(config),
        "share_encoder_decoder_embeddings": shared,
        "tie_word_embeddings": config.tie_output,
        **read_by_converters,
        "is_encoder_decoder": True,
        **_SPECIAL_IDS,
        "torch_dtype": "float32",
    }


_SPECIAL_IDS = {
    "pad_token_id": BOS_ID,
    "bos_token_id": BOS_ID,
    "eos_token_id": EOS_ID,
    "decoder_start_token_id": BOS_ID,
    "forced_eos_token_id": EOS_ID,
}


def _kind(norm: NormPlace) -> tuple[str, str]:
    """Return transformers' model type and class."""
    match norm:
        case "post":
            return "marian", "MarianMTModel"
        case "pre":
            return "pegasus", "PegasusForConditionalGeneration"


def _generation(bundle: Bundle) -> dict[str, Any]:
    return {
        **_SPECIAL_IDS,
        "bad_words_ids": [[PAD_ID], [BOS_ID]],
        "max_length": _LONGEST_OUTPUT,
        "num_beams": bundle.configuration.decoding.beam_size,
    }


# The tokenizers


def _vocabulary(tokenizer: Tokenizer) -> dict[str, int]:
    return {token: id for id, token in enumerate(tokenizer.tokens(range(len(tokenizer))))}


def _tokenizer(bundle: Bundle, folder: Path) -> dict[str, Any]:
    """Write the sentencepiece models, if there are any, and return the content of the JSON files."""
    _, bos, eos, unk = SPECIALS
    languages = dict(zip(("source_lang", "target_lang"), languages_of(bundle), strict=True))
    config = {
        **languages,
        "pad_token": bos,
        "bos_token": bos,
        "eos_token": eos,
        "model_max_length": positions_of(bundle.model_config),
    }
    if not _is_cut_by_sentencepiece(bundle):
        # If `unk_token` is not set, decoding writes "<unk>", as our tokenizer does.
        cleaning = {"clean_up_tokenization_spaces": False}
        return {
            "tokenizer.json": fast_tokenizer(bundle.source_tokenizer),
            "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", **config, **cleaning},
        }
    for side, tokenizer in _sides(bundle):
        (folder / f"{side}.spm").write_bytes(sentencepiece_model(tokenizer, side, "ctranslate2"))
    separate = not have_one_vocabulary(bundle)
    more = {"unk_token": unk, "separate_vocabs": separate, "sp_model_kwargs": {}}
    return {
        "vocab.json": _vocabulary(bundle.source_tokenizer),
        **({"target_vocab.json": _vocabulary(bundle.target_tokenizer)} if separate else {}),
        "tokenizer_config.json": {"tokenizer_class": "MarianTokenizer", **config, **more},
    }


def _check_tokenizers(bundle: Bundle) -> None:
    source, target = bundle.source_tokenizer, bundle.target_tokenizer
    if _is_cut_by_sentencepiece(bundle):
        if source.eos_id != EOS_ID:
            raise ConfigError(
                "the source's tokenizer: expected sources that end with <eos>, which MarianTokenizer adds, got an "
                "imported model with sources without <eos>; export --to ctranslate2"
            )
        for side, tokenizer in _sides(bundle):
            sentencepiece_model(tokenizer, side, "ctranslate2")
    elif source.kind != target.kind or not have_one_vocabulary(bundle):
        kinds = " and ".join(dict.fromkeys((source.kind, target.kind)))
        raise ConfigError(
            f"tokenizer.joint: expected true with {kinds}, as one tokenizer.json holds one vocabulary, got false; "
            "train with tokenizer.joint = true, or export --to ctranslate2"
        )


def _is_cut_by_sentencepiece(bundle: Bundle) -> bool:
    return any(TOKENIZER_KINDS[tokenizer.kind].subwords for _, tokenizer in _sides(bundle))


def _sides(bundle: Bundle) -> tuple[tuple[str, Tokenizer], tuple[str, Tokenizer]]:
    return ("source", bundle.source_tokenizer), ("target", bundle.target_tokenizer)


# The model card

_LOADING = """```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

folder = {name}  # this folder
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForSeq2SeqLM.from_pretrained(folder)
batch = tokenizer(["A sentence."], return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))
```"""


def _notes(bundle: Bundle) -> list[str]:
    """Return the notes for users of the folder."""
    cutting = normalising(bundle.source_tokenizer, "transformers")
    notes = [
        *([f"{cutting[0].upper()}{cutting[1:]}."] if cutting and _is_cut_by_sentencepiece(bundle) else []),
        "transformers' beam search with a length penalty ranks by log_prob / length^α, glassformer's by "
        f"{score_text('log_prob', 'length', bundle.configuration.decoding)}. Greedy search does not use this formula.",
    ]
    if bundle.model_config.norm == "pre":
        notes.append(
            "`ct2-transformers-converter` converts this folder without loss. Append the end token to the source tokens "
            "yourself, because the converted configuration has `add_source_eos: false`."
        )
    else:
        notes.append(
            "**Do not convert this folder with `ct2-transformers-converter`**: its loader for Marian removes the last "
            "token of the vocabulary and starts the decoder with a zero embedding, so the result is a different model. "
            "`glassformer export --to ctranslate2` converts the run without loss."
        )
    return notes
