"""Token ids from a model: greedy search, beam search and sampling, over anything that keeps to the `Step` protocol."""

from glassformer.decoding.beam import beam_search
from glassformer.decoding.greedy import greedy
from glassformer.decoding.hypothesis import Hypothesis, length_penalty
from glassformer.decoding.sampling import sample
from glassformer.decoding.search_trace import SearchStep, SearchTree
from glassformer.decoding.step import Step

__all__ = ["Hypothesis", "SearchStep", "SearchTree", "Step", "beam_search", "greedy", "length_penalty", "sample"]
