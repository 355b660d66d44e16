"""The Transformer: ids and masks in, tensors out. Read it top-down: transformer, encoder, decoder, residual, attention.

It needs only torch, jaxtyping and the standard library; `glassformer.model.config` does not even need torch.
"""
