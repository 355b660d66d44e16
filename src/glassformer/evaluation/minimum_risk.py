"""Minimum Bayes risk: choose, from several outputs for one source, the output that is most similar to all others."""

from collections.abc import Sequence

import numpy as np

from glassformer.evaluation.metrics import sentence_scores

__all__ = ["least_risk"]


def least_risk(texts: Sequence[str]) -> int:
    """Return the index of the text with the highest mean chrF against all other texts (the first if several are equal).

    Paper: Kumar & Byrne 2004, with chrF as the gain.
    """
    others = [(place, other) for place in range(len(texts)) for other in range(len(texts)) if other != place]
    if not others:
        return 0
    scores = sentence_scores([texts[place] for place, _ in others], [texts[other] for _, other in others], "chrf")
    return int(np.array(scores).reshape(len(texts), -1).mean(1).argmax())
