"""Export a run to a folder of ONNX files for onnxruntime and, in a browser, for transformers.js.

`onnx/*.onnx`                          the encoder, and the decoder in three forms (`glassformer.interop.onnx.model`)
config.json, generation_config.json    sizes and special tokens
tokenizer.json                         the tokenizer; `source_…` and `target_…` if there are two vocabularies
tokenizer_config.json                  how transformers.js uses the tokenizer
index.html, runtime/                   with `page`: a page that translates (`glassformer.interop.onnx.browser`)

With 8-bit matrices, the file names in onnx/ end in "_quantized", as transformers.js expects.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from glassformer.bundle import Bundle
from glassformer.decoding.options import Quantization
from glassformer.errors import ConfigError
from glassformer.interop.ctranslate2.model import positions_of
from glassformer.interop.exporting import (
    EXPORTER,
    ExportOptions,
    check_order,
    check_quantization,
    check_trained,
    have_one_vocabulary,
    is_written_by_us,
    replaced_folder,
    weights_of,
)
from glassformer.interop.huggingface.fast_tokenizer import fast_tokenizer
from glassformer.interop.onnx.browser import check_runtime, write_onnx_page
from glassformer.interop.onnx.model import graph_files
from glassformer.interop.verification import Verification, verify_outside
from glassformer.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, SPECIALS

__all__ = ["ONNX_QUANTIZATIONS", "export_onnx", "onnx_remarks"]

PACKAGES = "onnxruntime tokenizers"

ONNX_QUANTIZATIONS: tuple[Quantization, ...] = ("float32", "int8")
_FILE_ENDS = {"float32": "", "int8": "_quantized"}
"""The ends of file names by number format, fixed by transformers.js."""
_DTYPES = {"float32": "fp32", "int8": "q8"}
"""The number formats, as transformers.js names them."""


def export_onnx(bundle: Bundle, folder: Path, options: ExportOptions) -> Verification | None:
    """Write a run's model as ONNX files into a folder; return how closely onnxruntime reproduces the run.

    Raises:
        CheckpointError: the weights are missing or damaged, the folder cannot be written, or onnxruntime gives
            different log probabilities.
        ConfigError: ONNX or tokenizer.json cannot express the run or the number format; the folder exists and is not an
            export; or a page is requested, but its files are missing, or the run has two vocabularies.
        MissingDependencyError: onnxruntime or tokenizers is not installed.
    """
    check_quantization(options.quantization, ONNX_QUANTIZATIONS, "ONNX")
    check_trained(bundle)
    check_order(bundle)
    if options.page:
        _check_page(bundle, options)
    with replaced_folder(folder, is_written_by_us) as temporary:
        _write(bundle, temporary, options)
        return verify_outside("onnx", PACKAGES, bundle, temporary, options)


def onnx_remarks(bundle: Bundle) -> Iterator[str]:
    """Yield remarks for users of the folder."""
    length = positions_of(bundle.model_config)
    yield f"the files hold {length} positions; onnxruntime fails for a longer source or output"
    if not have_one_vocabulary(bundle):
        yield (
            "transformers.js cannot open the folder: source and target have different vocabularies, in the files "
            "source_tokenizer.json and target_tokenizer.json; for transformers.js, train with tokenizer.joint = true"
        )


def _check_page(bundle: Bundle, options: ExportOptions) -> None:
    check_runtime(Path(options.page))
    if not have_one_vocabulary(bundle):
        raise ConfigError(
            "tokenizer.joint: expected true for a page, as transformers.js reads one vocabulary, got false; train with "
            "tokenizer.joint = true, or leave out --page"
        )


def _write(bundle: Bundle, folder: Path, options: ExportOptions) -> None:
    (folder / "onnx").mkdir(parents=True)
    narrow = options.quantization == "int8"
    for name, content in graph_files(weights_of(bundle), bundle.model_config, narrow=narrow).items():
        (folder / "onnx" / f"{name}{_FILE_ENDS[options.quantization]}.onnx").write_bytes(content)
    dtype = _DTYPES[options.quantization]
    contents = {
        "config.json": _config(bundle, dtype),
        "generation_config.json": _generation(),
        "tokenizer_config.json": _tokenizer_config(bundle),
        **_tokenizers(bundle),
    }
    for name, content in contents.items():
        text = json.dumps(content, ensure_ascii=False, indent=None if name.endswith("tokenizer.json") else 1)
        (folder / name).write_text(text + "\n", encoding="utf-8", newline="\n")
    if options.page:
        write_onnx_page(bundle, folder, Path(options.page), dtype)


def _config(bundle: Bundle, dtype: str) -> dict[str, Any]:
    """Return the config.json by which transformers.js finds the files and gets the shape of the cache."""
    config = bundle.model_config
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",  # for post-norm and pre-norm models, because transformers.js does not know Pegasus
        EXPORTER: {"norm": config.norm, "positions": config.positions},
        "vocab_size": config.target_vocab_size,
        "d_model": config.d_model,
        "encoder_layers": config.encoder_layers,
        "encoder_attention_heads": config.heads,
        "encoder_ffn_dim": config.d_ff,
        "decoder_layers": config.decoder_layers,
        "decoder_attention_heads": config.heads,
        "decoder_ffn_dim": config.d_ff,
        "max_position_embeddings": positions_of(config),
        "is_encoder_decoder": True,
        **_SPECIAL_IDS,
        "transformers.js_config": {"dtype": dtype},
    }


_SPECIAL_IDS = {
    "pad_token_id": PAD_ID,
    "bos_token_id": BOS_ID,
    "eos_token_id": EOS_ID,
    "decoder_start_token_id": BOS_ID,
}


def _generation() -> dict[str, Any]:
    """Return the search settings: greedy search, because transformers.js has no complete beam search."""
    return {**_SPECIAL_IDS, "forced_eos_token_id": EOS_ID, "bad_words_ids": [[PAD_ID], [BOS_ID]], "num_beams": 1}


def _tokenizer_config(bundle: Bundle) -> dict[str, Any]:
    names = dict(zip(("pad_token", "bos_token", "eos_token", "unk_token"), SPECIALS, strict=True))
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **names,
        "model_max_length": positions_of(bundle.model_config),
        "clean_up_tokenization_spaces": False,
    }


def _tokenizers(bundle: Bundle) -> dict[str, Any]:
    """Return the content of the tokenizers' files: one file if source and target have the same vocabulary, else two."""
    if have_one_vocabulary(bundle):
        return {"tokenizer.json": fast_tokenizer(bundle.source_tokenizer)}
    sides = {"source": bundle.source_tokenizer, "target": bundle.target_tokenizer}
    return {f"{side}_tokenizer.json": fast_tokenizer(tokenizer) for side, tokenizer in sides.items()}
