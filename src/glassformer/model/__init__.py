"""The Transformer: ids and masks in, tensors out. Read it top-down: transformer, encoder, decoder, residual, attention.

It needs torch, jaxtyping and the standard library only; `glassformer.model.config` needs not even torch.
"""
