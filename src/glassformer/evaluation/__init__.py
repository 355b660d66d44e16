"""How good translations are, without torch: BLEU, chrF, exact match and error rates."""
