"""Programs that verify an export with another program's package: files to run, never to import."""
