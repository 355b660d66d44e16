"""The options of decoding for users. Imports no other module of ours, so that the command line starts quickly."""

from typing import Literal

__all__ = ["EngineName", "Quantization"]

EngineName = Literal["auto", "torch", "ctranslate2"]
"""Name of an engine; "auto" chooses the fastest engine that gives the same outputs."""
Quantization = Literal[
    "float32", "bfloat16", "float16", "int16", "int8", "int8_float32", "int8_bfloat16", "int8_float16"
]
"""Number format of the matrices, by CTranslate2's names: as trained, in fewer bits, or as integers; the other numbers
then have the type after the underscore. The torch engine supports the first two, and int8."""
