"""Decoding: greedy search, beam search and sampling of token ids, from anything that implements the `Step` protocol.

Importing this package does not import torch. The searches, which need torch, are imported on first use.
"""

from typing import TYPE_CHECKING

from glassformer.system.lazy import lazy_names

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

_MODULES = {
    "glassformer.decoding.beam": ("beam_search",),
    "glassformer.decoding.ensemble": ("EnsembleStep",),
    "glassformer.decoding.greedy_search": ("greedy",),
    "glassformer.decoding.hypothesis": ("Hypothesis", "length_penalty"),
    "glassformer.decoding.sampling": ("sample",),
    "glassformer.decoding.search_trace": ("SearchStep", "SearchTree"),
    "glassformer.decoding.step": ("Step",),
}

__getattr__ = lazy_names(__name__, _MODULES)
