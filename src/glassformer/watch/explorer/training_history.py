"""The training of a run as data for a page: the curves of its losses, and a few snapshots with 8 bits per weight."""

import copy
import math
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from glassformer.bundle import put_weights
from glassformer.decoding.transformer_step import padded, target_log_probs
from glassformer.jobs import METRICS_FILE, SNAPSHOTS, read_log
from glassformer.model.transformer import Transformer
from glassformer.training.snapshots import Snapshots
from glassformer.watch.explorer.packing import as_base64, dequantised, quantised
from glassformer.watch.explorer.remote import snapshot_halves

__all__ = ["progress", "shrunk", "shrunk_bytes", "snapshots_in", "spread"]

MOST_POINTS = 200
"""Maximum number of points of a curve."""


def progress(folder: Path) -> dict[str, Any]:
    """Return the curves of the losses, and the step of the run's weights."""
    lines = [line for line in read_log(folder / METRICS_FILE) if math.isfinite(line.get("loss", math.nan))]
    kinds = {"loss": "step", "validation": "validation"}
    curve = {
        name: _thinned([[line["step"], line["loss"]] for line in lines if line["type"] == kind])
        for name, kind in kinds.items()
    }
    kept = [line["step"] for line in lines if line.get("best") or line.get("kept")]
    return {"step": kept[-1] if kept else None, "curve": curve}


def spread(steps: Sequence[int], count: int, final: int | None) -> list[int]:
    """Return `count` of these steps, about evenly spaced on a logarithmic scale that ends with `final`.

    `final` is the step of the run's own weights, which every page has; None means the last of `steps`.
    """
    if len(steps) <= count:
        return list(steps)
    if count <= 0:
        return []
    end = max(final or 0, steps[-1])
    ended = end > steps[-1]
    aims = np.linspace(math.log(end), math.log(steps[0]), count + ended)
    free = set(steps)
    for aim in aims[ended:]:
        free.remove(min(free, key=lambda step: abs(math.log(step) - aim)))
    return [step for step in steps if step not in free]


def snapshots_in(folder: Path) -> dict[int, Path]:
    """Return the files of a run's snapshots by step, oldest first."""
    return Snapshots(folder / SNAPSHOTS, keep=0).paths()


def shrunk_bytes(model: Transformer) -> int:
    """Return the size of a snapshot with 8 bits per weight, in bytes."""
    return sum(part.nbytes for weight in model.parameters() for part in quantised(weight.detach().cpu().numpy()))


def shrunk(step: int, path: Path, model: Transformer, trace: Mapping[str, Any]) -> dict[str, Any]:
    """Return a snapshot with 8 bits per weight, and the change of log p of the page's translation by the rounding."""
    names = [name for name, _ in model.named_parameters()]
    largest = float(torch.finfo(torch.half).max)  # if training has diverged, weights may be infinite
    halves = [
        np.nan_to_num(half.astype("float32"), posinf=largest, neginf=-largest) for half in snapshot_halves(path, model)
    ]
    parts = [quantised(half) for half in halves]
    early, log_probs = copy.deepcopy(model), []
    for weights in (halves, map(dequantised, parts)):
        put_weights(early, {name: torch.from_numpy(one) for name, one in zip(names, weights, strict=True)}, str(path))
        log_probs.append(_log_prob(early, trace["source_ids"], trace["target_ids"]))
    loss = abs(log_probs[0] - log_probs[1])
    return {"step": step, "data": as_base64(chain.from_iterable(parts)), "loss": loss}


def _log_prob(model: Transformer, source: Sequence[int], target: Sequence[int]) -> float:
    """Return the log probability of all tokens of a target except its first, `<bos>`."""
    output = [*target[1:], model.config.pad_id]
    return target_log_probs(model, *(padded(model, [ids]) for ids in (source, target, output))).sum().item()


def _thinned(items: Sequence[Any], most: int = MOST_POINTS) -> list[Any]:
    """Return at most `most` of the items, evenly spaced, including the first and the last."""
    if len(items) <= most:
        return list(items)
    return [items[round(place * (len(items) - 1) / (most - 1))] for place in range(most)]
