"""Faster functions for the model's matrix products, dropout, and attention over few keys, mainly on CPUs.

You can read the model without these files, because each function returns the same as one line of PyTorch.
docs/decisions/where-we-leave-pytorch.md has the reason for each function and the time that it saves.
"""
