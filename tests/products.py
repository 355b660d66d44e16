"""The 8-bit products of CTranslate2 in a new process, which chooses its library and instructions by its environment."""

import os
import subprocess
import sys

__all__ = ["products_overflow"]

_PROGRAM = """
import sys
sys.modules["torch"] = None  # CTranslate2 would import it, which takes seconds, and needs it only for bfloat16
from glassformer.interop.ctranslate2.saturation import saturates_int8
print(saturates_int8())
"""


def products_overflow(**environment: str) -> bool:
    """Return whether sums of 8-bit products overflow in a process with these environment variables, besides our own."""
    command = [sys.executable, "-c", _PROGRAM]
    return subprocess.check_output(command, env={**os.environ, **environment}, text=True) == "True\n"
