"""`Look inside`: commands that show what a model does: each in the file of its name."""
