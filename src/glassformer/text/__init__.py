"""Text to ids and back, without torch: vocabularies and tokenizers."""
