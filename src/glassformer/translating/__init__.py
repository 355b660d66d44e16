"""Translations: texts to ids, a search, and the layers that add terms, tags and checks. Does not import torch."""
