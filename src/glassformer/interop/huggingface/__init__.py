"""Hugging Face: folders of Marian and its relatives, written and read, with tokenizer and model card."""
