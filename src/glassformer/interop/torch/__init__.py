"""Import of other people's PyTorch modules and state dicts."""
