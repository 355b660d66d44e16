"""The machine and the operating system: processor and cores, safe file writing, locks, worker processes."""
