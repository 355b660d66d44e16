"""The peers: toolkits that are compared with glassformer. Each peer has its own environment and process.

`install.py` makes the environments, `worker.py` is the program of a process, and each other file is the adapter of one
peer. Code that runs in a peer's environment may import numpy, PyTorch, sentencepiece and the peer, but not glassformer.
"""
