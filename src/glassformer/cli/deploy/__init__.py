"""The commands of the group `Deploy`, which write a model in another program's format."""
