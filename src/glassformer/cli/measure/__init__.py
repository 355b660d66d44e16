"""The commands of the group `Measure`, which measure quality and speed."""
