"""Turn ids into vectors: each token's row of the embedding matrix, scaled, plus the pattern of the token's position.

Axes: B batch · T positions · D d_model · V vocabulary.
"""

import math
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from glassformer.errors import ShapeError, VocabularyError
from glassformer.model.fast.dropout import Dropout
from glassformer.model.points import EMBEDDING, names
from glassformer.model.positions import Positions
from glassformer.model.taps import Tap

__all__ = ["InputEmbedding"]


class InputEmbedding(nn.Module):
    """E[token] · √d_model + position, then dropout. Paper: §3.4, §3.5, §5.4.

    A lookup equals a one-hot vector times the matrix. The rows are initialised with a standard deviation of
    d_model^-0.5, so that the scaled rows have the magnitude of the positions' patterns.
    """

    POINTS = names(EMBEDDING)

    def __init__(self, vocab_size: int, d_model: int, positions: Positions, dropout: float) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = positions
        self.dropout = Dropout(dropout)
        self.scale = math.sqrt(d_model)
        self.tap = Tap()
        nn.init.normal_(self.tokens.weight, std=d_model**-0.5)

    def forward(self, ids: Int[Tensor, "B T"], start: int | Int[Tensor, "B 1"] = 0) -> Float[Tensor, "B T D"]:
        """Return the vectors of these tokens at the positions from `start` on; each row may have its own `start`.

        Raises:
            VocabularyError: an id is not in the vocabulary.
        """
        try:
            rows = self.tokens(ids)  # (B, T) -> (B, T, D)
        except IndexError as error:
            raise self._unknown(ids) from error
        embedding = self.tap("embedding", rows * self.scale)
        positions = self.tap("positions", self.positions(start, ids.shape[1], embedding))  # (T, D), or (B, T, D)
        return self.tap("input", self.dropout(embedding + positions))

    def load_vectors(self, vectors: Float[Tensor, "V D"], found: Bool[Tensor, "V"], *, freeze: bool = False) -> None:
        """Replace the rows marked in `found` by pretrained vectors; `freeze` excludes the whole matrix from training.

        The vectors are stored as given; the forward pass multiplies them by √d_model, like any other row. If the matrix
        is shared (tied), the new rows and the freezing apply to all parts that share it.

        Raises:
            ShapeError: `vectors` does not have one row of width d_model per entry of the vocabulary.
        """
        weight = self.tokens.weight
        if vectors.shape != weight.shape:
            raise ShapeError(
                f"vectors: expected shape (V, d_model) = {tuple(weight.shape)}, got {tuple(vectors.shape)}"
            )
        with torch.no_grad():
            weight[found] = vectors[found].to(weight)
        weight.requires_grad_(not freeze)

    def _unknown(self, ids: Tensor) -> VocabularyError:
        size, low, high = self.tokens.num_embeddings, int(ids.min()), int(ids.max())
        return VocabularyError(
            f"ids: expected 0 to {size - 1}, the vocabulary's {size} entries, got ids from {low} to {high}"
        )

    if TYPE_CHECKING:
        __call__ = forward
