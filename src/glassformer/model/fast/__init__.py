"""Faster ways to compute what the model says: matrix products, dropout, and attention over few keys, mainly on CPUs.

Read the model without these files: each function here returns what one line of PyTorch would. Their reasons and times
are in docs/decisions/where-we-leave-pytorch.md.
"""
