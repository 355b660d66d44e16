"""State dicts, and folders and packages of other programs, imported as runs."""
