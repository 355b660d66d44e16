"""The explorer: a web module that recomputes a Transformer in the browser, and Python code for its data."""
