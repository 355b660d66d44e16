"""Looking into a model: what changes do to it, which head matters, and whether it is right at all."""
