"""Look into a model: inspect forward passes, explore the model, draw pictures, write reports, check readers' models."""
