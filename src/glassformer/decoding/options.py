"""Types of the decoding options. Imports no other glassformer module, so that the command line starts quickly."""

from typing import Literal

__all__ = ["EngineName", "Quantization"]

EngineName = Literal["auto", "torch", "ctranslate2"]
"""Name of an engine; "auto" chooses CTranslate2 where it gives the same outputs as torch, and torch otherwise."""
Quantization = Literal[
    "float32", "bfloat16", "float16", "int16", "int8", "int8_float32", "int8_bfloat16", "int8_float16"
]
"""Number format of the weight matrices, named as in CTranslate2. In a name with an underscore, the second part is the
type of all other numbers. The torch engine supports float32, bfloat16 and int8."""
