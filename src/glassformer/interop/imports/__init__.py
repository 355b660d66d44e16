"""State dicts, folders and packages that other tools wrote, imported as runs."""
