"""The explorer: one web module that recomputes a Transformer in the browser, and the Python that feeds it."""
