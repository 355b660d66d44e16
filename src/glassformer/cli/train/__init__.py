"""`Train`: commands that lead from a corpus to a model: each in the file of its name."""
