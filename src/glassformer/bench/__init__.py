"""Benchmarks on this machine: the cost of a training, and the speed of training and translating."""
