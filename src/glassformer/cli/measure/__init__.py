"""`Measure`: commands that measure quality and speed: each in the file of its name."""
