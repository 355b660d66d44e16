"""Benchmarks of glassformer and its peers, not part of the package; `benchmarks/README.md` lists the commands."""
