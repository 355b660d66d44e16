"""Compute with `tg2fa_translit`: read {"words", "source", "target"} as JSON, print {"texts", "double", "single"}."""

import json
import sys

import torch
from tg2fa_translit import decode, transformer

asked = json.load(sys.stdin)
model = transformer.transformer
texts = [decode.decode(model, word) for word in asked["words"]]


def logits(dtype):
    """Return the logits (target, vocabulary) of each pair of ids, in a number format."""
    model.to(dtype)
    found = []
    for source, target in zip(asked["source"], asked["target"], strict=True):
        src, trg = torch.tensor(source)[:, None], torch.tensor(target)[:, None]
        no_mask = torch.zeros(len(src), len(src), dtype=torch.bool)
        causal = torch.ones(len(trg), len(trg), dtype=torch.bool).triu(1)
        with torch.no_grad():
            found.append(model(src, trg, no_mask, causal, None, None, None)[:, 0].tolist())
    return found


double = logits(torch.float64)
json.dump({"texts": texts, "double": double, "single": logits(torch.float32)}, sys.stdout)
