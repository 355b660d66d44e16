"""Data of pages, made once for each model and sentence."""

import hashlib
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from glassformer.translator import Translator

__all__ = ["KEPT", "made"]

KEPT = 12
"""Number of payloads that a process keeps, here and in its tab, for the tests of the same model."""
_payloads: dict[str, dict[str, Any]] = {}


def made(data: Callable[..., dict[str, Any]], translator: Translator, sentence: str) -> dict[str, Any]:
    """Return `data(translator, sentence)`, which must not be changed; the last results are kept."""
    key = fingerprint(data, translator, sentence)
    _payloads[key] = found = _payloads.pop(key, None) or data(translator, sentence)  # the newest is the last
    if len(_payloads) > KEPT:
        del _payloads[next(iter(_payloads))]
    return found


def fingerprint(data: Callable[..., Any], translator: Translator, sentence: str) -> str:
    """Return a hash of everything on which a payload depends."""
    function, more = (data.func, [data.args, data.keywords]) if isinstance(data, partial) else (data, [])
    bundle, found = translator.bundle, hashlib.blake2b(digest_size=16)
    files = sorted((str(path), path.stat().st_mtime_ns) for path in bundle.folder.rglob("*") if path.is_file())
    tokenizers = [one.to_dict() for one in (bundle.source_tokenizer, bundle.target_tokenizer)]
    joint = bundle.source_tokenizer is bundle.target_tokenizer
    settings = [bundle.folder.name, bundle.configuration, bundle.model_config, bundle.alignment, bundle.origin]
    found.update(repr([function.__qualname__, more, sentence, settings, files, joint]).encode("utf-8", "replace"))
    found.update(json.dumps(tokenizers).encode())
    for name, weight in translator.model.state_dict().items():
        found.update(name.encode())
        found.update(weight.contiguous().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()
