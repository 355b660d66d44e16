"""The Transformer: token ids in, logits out. Read it top-down: transformer, encoder, decoder, residual, attention.

The package's only third-party dependencies are torch and jaxtyping; `glassformer.model.config` does not need torch.
"""
