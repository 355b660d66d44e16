"""Models come in: state dicts, and the folders and packages of other programs, become runs."""
