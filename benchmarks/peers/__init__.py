"""The peers, each with its own environment and process, all on the same work.

`install.py` makes the environments, `worker.py` is the process, and each further file is the adapter of one peer. Code
that runs in a peer's environment may import numpy, PyTorch, sentencepiece and the peer, but not glassformer.
"""
