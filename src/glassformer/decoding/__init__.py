"""Decoding: greedy search, beam search and sampling of token ids, from anything that implements the `Step` protocol.

Importing this package does not import torch: the searches, which need it, are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glassformer.decoding.beam import beam_search
    from glassformer.decoding.ensemble import EnsembleStep
    from glassformer.decoding.greedy_search import greedy
    from glassformer.decoding.hypothesis import Hypothesis, length_penalty
    from glassformer.decoding.sampling import sample
    from glassformer.decoding.search_trace import SearchStep, SearchTree
    from glassformer.decoding.step import Step

__all__ = [
    "EnsembleStep",
    "Hypothesis",
    "SearchStep",
    "SearchTree",
    "Step",
    "beam_search",
    "greedy",
    "length_penalty",
    "sample",
]

_HOME = {
    "EnsembleStep": "ensemble",
    "Hypothesis": "hypothesis",
    "SearchStep": "search_trace",
    "SearchTree": "search_trace",
    "Step": "step",
    "beam_search": "beam",
    "greedy": "greedy_search",
    "length_penalty": "hypothesis",
    "sample": "sampling",
}


def __getattr__(name: str) -> Any:
    """Return a public name, importing its module now."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
