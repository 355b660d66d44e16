"""Guards: whether an output of a model is suspicious, why, and how sure one may be of it. Needs no torch."""
