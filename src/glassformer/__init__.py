"""glassformer: the Transformer of "Attention Is All You Need" that you can read, watch, train and use."""
