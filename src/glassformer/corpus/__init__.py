"""Parallel corpora, without torch: readers, cleaning, encoding, shards on the disk, and batches."""
