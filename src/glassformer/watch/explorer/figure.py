"""One head's attention as a picture for a paper or a slide."""

from collections.abc import Mapping
from textwrap import fill
from typing import Any, Literal

import numpy as np
import torch

from glassformer.decoding.transformer_step import padded
from glassformer.errors import ConfigError, quoted
from glassformer.model.taps import record
from glassformer.translator import Translator
from glassformer.watch.pictures import Picture, heat_map

__all__ = ["AttentionFamily", "head_figure"]

AttentionFamily = Literal["encoder", "cross", "decoder"]
_PLACES = {
    "encoder": ("encoder", "self_attention"),
    "cross": ("decoder", "cross_attention"),
    "decoder": ("decoder", "self_attention"),
}
"""The stack and the sub-layer of each family of attention."""
NARROWEST, LETTERS = 6.4, 11
"""The minimum width in inches, so that the title fits, and the letters of the caption in an inch."""


def head_figure(
    translator: Translator, shown: Mapping[str, Any], translation: str, family: AttentionFamily, layer: int, head: int
) -> Picture:
    """Return one head's weights for the sentence of a page's payload; cells that a mask hides are empty.

    Raises:
        ConfigError: the family, the layer or the head does not exist.
    """
    model, config, ids = translator.model, translator.bundle.model_config, shown["trace"]
    stack, sublayer = _PLACES.get(family, ("", ""))
    if not stack:
        raise ConfigError(f"family: expected one of {', '.join(_PLACES)}, got {quoted(family)}")
    layers = getattr(config, f"{stack}_layers")
    for name, value, count, least in (("layer", layer, layers, -layers), ("head", head, config.heads, 0)):
        if not least <= value < count:
            raise ConfigError(f"{name}: expected a number from {least} to {count - 1}, got {value}")
    name = f"{stack}.layers.{layer % layers}.{sublayer}.weights"
    source, target = (padded(model, [ids[f"{side}_ids"]]) for side in ("source", "target"))
    with torch.no_grad(), record(model, name) as trace:
        model(source, target)
    weights = trace[name][0, head].float().cpu().numpy()
    if family == "decoder":
        weights = np.where(np.triu(np.ones(weights.shape, bool), 1), np.nan, weights)
    tokens = {
        "encoder": translator.bundle.source_tokenizer.tokens(ids["source_ids"]),
        "decoder": translator.bundle.target_tokenizer.tokens(ids["target_ids"]),
    }
    columns = tokens["decoder" if family == "decoder" else "encoder"]
    # A row of the decoder reads one word and writes the next.
    written = translator.bundle.target_tokenizer.tokens([*ids["target_ids"][1:], config.eos_id])
    pairs = zip(tokens["decoder"], written, strict=True)
    rows = columns if stack == "encoder" else [f"{read} → {word}" for read, word in pairs]
    label, sentences = f"{name}, head {head}", f"{shown['sentence']} → {translation}"
    width = max(NARROWEST, 0.34 * len(columns))
    return heat_map(
        weights,
        rows,
        columns,
        alt=f"{label}: {sentences}",
        title=label,
        column_label=f"{fill(sentences, round(LETTERS * width))}\nglassformer · {shown['name']}",
        limit=1.0,
        width=width,
    )
