"""Scores of translations, without torch: BLEU, chrF, exact match and error rates."""
