"""Export to and import from Hugging Face's transformers: folders of Marian and Pegasus models."""
