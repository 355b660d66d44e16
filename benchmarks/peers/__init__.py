"""The peers, each in an environment and a process of its own, all given the same work.

`install.py` makes the environments, `worker.py` is the process, and each other file is one peer's adapter. What runs in
a peer's environment may import numpy, PyTorch, sentencepiece and that peer, but nothing of glassformer.
"""
