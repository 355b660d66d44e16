"""`Deploy`: commands that hand a model to other programs: each in the file of its name."""
