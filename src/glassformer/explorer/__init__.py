"""The explorer: a web module that recomputes a Transformer in the browser, and the Python code that feeds it."""
