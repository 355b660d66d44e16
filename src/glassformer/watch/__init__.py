"""Look into a model: inspection of a forward pass, the explorer, pictures, the report, and the reader's own model."""
