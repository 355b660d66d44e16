"""The commands of the group `Train`, which lead from a corpus to a model."""
