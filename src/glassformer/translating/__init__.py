"""What a translation is, how its terms come in, and how suspicious outputs are searched again. Needs no torch."""
