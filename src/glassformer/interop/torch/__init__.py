"""PyTorch: state dicts and modules that others trained."""
