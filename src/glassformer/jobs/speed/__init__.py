"""Benchmarks on this machine: the cost of a training run, and the speed of training and translating."""
