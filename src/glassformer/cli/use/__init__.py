"""`Use`: commands that translate, or show how: each in the file of its name."""
