"""Words ↔ ids, without torch: vocabularies, tokenizers, corpus readers, batches, word vectors."""
