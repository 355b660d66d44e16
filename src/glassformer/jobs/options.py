"""Defaults that help texts show. This module imports no other module, so that the command line starts quickly."""

__all__ = ["CLOSE_CHRF", "FLAGGED", "PART_BYTES"]

CLOSE_CHRF = 60.0
"""The smallest chrF, from 0 to 100, at which an output counts as close to its reference."""
FLAGGED = 0.01
"""Largest share of the outputs that all guards together flag."""
PART_BYTES = 1_000_000
"""Default size of a part of an uncompressed file, in bytes."""
