"""The commands of the group `Deploy`, which write a model in a foreign format."""
