"""The corpus doctor: examine a corpus once, report its problems, and decide which pairs are kept."""
