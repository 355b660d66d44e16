"""The commands of the group `Deploy`, which convert models between formats and serve them."""
