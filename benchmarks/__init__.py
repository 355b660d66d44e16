"""What is measured, and how. Nothing here is part of the package; `benchmarks/README.md` has a command for each."""
