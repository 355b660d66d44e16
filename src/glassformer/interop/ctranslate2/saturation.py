"""Whether CTranslate2's 8-bit products overflow in this process."""

import tempfile
from functools import cache
from typing import TYPE_CHECKING, Any

from glassformer.interop.ctranslate2.model import import_ctranslate2

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["saturates_int8"]

_WIDTH = 2
"""Width of the model: a pair of products is the shortest sum that overflows in 16 bits."""


@cache
def saturates_int8() -> bool:
    """Return whether sums of 8-bit products overflow, as the sum of the two largest products shows.

    Without VNNI, CTranslate2's libraries (oneDNN, and MKL on Intel's processors) add pairs of products in 16 bits.
    Which instructions a library uses depends on the processor and on its environment variables, such as
    `ONEDNN_MAX_CPU_ISA` and `CT2_USE_MKL`, so only a product tells. It takes a few milliseconds.

    Raises:
        MissingDependencyError: CTranslate2 is not installed.
    """
    if "int8" not in import_ctranslate2().get_supported_compute_types("cpu"):
        return False
    logits = _logits()
    return bool(abs(logits - _WIDTH).max() > 0.5)


def _logits() -> "NDArray[np.float32]":
    """Return the logits of a model whose embeddings and output matrix are all 1, so that each logit is its width.

    In 8 bits, each 1 becomes the largest number. The layer's weights are 0, so it passes the embeddings on.
    """
    import numpy as np

    def constant(value: float, *shape: int) -> Any:
        return np.full(shape, value, np.float32)

    module = import_ctranslate2()
    spec = module.specs.TransformerDecoderModelSpec.from_config(1, 1, no_final_norm=True)
    spec.register_vocabulary(["<unk>", "<s>", "</s>"])
    decoder, [layer] = spec.decoder, spec.decoder.layer
    decoder.scale_embeddings = False
    decoder.position_encodings.encodings = constant(0, 1, _WIDTH)
    decoder.embeddings.weight, decoder.projection.weight = constant(1, 3, _WIDTH), constant(1, 3, _WIDTH)
    for norm in (layer.self_attention.layer_norm, layer.ffn.layer_norm):
        norm.gamma = norm.beta = constant(0, _WIDTH)
    for linear, rows in zip(
        (*layer.self_attention.linear, layer.ffn.linear_0, layer.ffn.linear_1), (3, 1, 1, 1), strict=True
    ):
        linear.weight, linear.bias = constant(0, rows * _WIDTH, _WIDTH), constant(0, rows * _WIDTH)
    decoder.projection.bias = constant(0, 3)
    spec.validate()
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        generator = module.Generator(folder, device="cpu", compute_type="int8", intra_threads=1)
        return np.array(generator.forward_batch([["<s>"]]))
