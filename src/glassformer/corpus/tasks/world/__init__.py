"""The English–French world: a grammar that writes sentences, their translations and the challenge splits."""
