"""The optimisers: Adam with the paper's settings, AdamW, or Muon for matrices with Adam for all other weights."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import Parameter
from torch.optim import Adam, AdamW, Optimizer

from glassformer.errors import ConfigError
from glassformer.model.positions import Positions
from glassformer.model.transformer import Transformer
from glassformer.recipes.configuration import TrainingConfig

__all__ = ["Muon", "make_optimiser", "moment_names", "orthogonal", "turned"]

BETAS = (0.9, 0.98)
"""Decays of Adam's moving averages of the gradients and of their squares. Paper: §5.3."""
MOMENTUM = 0.95
"""Decay of Muon's moving average of the gradients."""
WEIGHTS_TOGETHER = 2**20
"""Maximum number of weights whose Muon updates are computed together."""


def make_optimiser(model: Transformer, config: TrainingConfig) -> Optimizer:
    """Return an optimiser of all trainable weights; the loop sets its learning rate at each step. Paper: §5.3 (Adam).

    Weight decay applies to matrices only, not to biases, norms or embeddings (of tokens and positions): decay would
    shrink each row of an embedding at every step, however rarely the row's token occurs. If training uses bf16, Muon's
    own products use bf16, too.

    Raises:
        ConfigError: the optimiser is "auto".
    """
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    tables = (module for module in model.modules() if isinstance(module, nn.Embedding | Positions))
    embeddings = {parameter for table in tables for parameter in table.parameters()}
    match config.optimiser:
        case "adam":
            return Adam(trainable, betas=BETAS, eps=config.epsilon, fused=True)
        case "adamw":
            matrices, others = _parted(trainable, embeddings)
            of_matrices = {"params": matrices, "weight_decay": config.weight_decay}
            groups = [of_matrices, {"params": others, "weight_decay": 0.0}]
            return AdamW(groups, betas=BETAS, eps=config.epsilon, fused=True)
        case "muon":
            # Each row of the output projection belongs to a token, like a row of the embeddings.
            matrices, others = _parted(trainable, embeddings | {model.output.weight})
            dtype = torch.bfloat16 if config.precision == "bf16" else model.output.weight.dtype
            adam = Adam(others, betas=BETAS, eps=config.epsilon, fused=True)
            return Muon(matrices, adam, config.weight_decay, dtype)
        case "auto":
            raise ConfigError(
                'training.optimiser: expected adam, adamw or muon, got "auto"; set it, or let '
                "glassformer.recipes.defaults.fit choose it from the corpus"
            )


def _parted(trainable: Iterable[Parameter], rows: Set[Tensor]) -> tuple[list[Parameter], list[Parameter]]:
    """Return the matrices except those in `rows`, and all other weights."""
    parted: tuple[list[Parameter], list[Parameter]] = ([], [])
    for parameter in trainable:
        parted[parameter.dim() <= 1 or parameter in rows].append(parameter)
    return parted


class Muon(Optimizer):
    """Muon for the matrices of the layers and Adam for all other weights, as one optimiser with one state.

    Before each step, Muon sets all singular values of a matrix's mean gradient to about 1. In this way, directions with
    small gradients are learned as fast as directions with large gradients. Each step is scaled to the size of Adam's
    steps, so the same learning rates suit both optimisers.

    Differs: the paper uses Adam (§5.3). Source: K. Jordan et al., "Muon: An optimizer for hidden layers in neural
    networks", 2024; scale: J. Liu et al., "Muon is scalable for LLM training", 2025, §2.2. `torch.optim.Muon` computes
    the same step, but always in bf16 and one matrix at a time, which takes several times as long where bf16 is
    emulated.
    """

    def __init__(self, matrices: Iterable[Parameter], others: Adam, weight_decay: float, dtype: torch.dtype) -> None:
        """`dtype` is the precision of Muon's own products."""
        self._dtype, self._others = dtype, others
        self.turn: Callable[[Sequence[Tensor], torch.dtype], Sequence[Tensor]] = turned
        """The function that computes the matrices' steps from their mean gradients: `turned`, or a function whose work
        several processes share."""
        own = {"params": list(matrices), "lr": others.defaults["lr"], "weight_decay": weight_decay}
        super().__init__([own, *others.param_groups], {})
        self._share()

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update all weights once."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._update(**self.param_groups[0])
        self._others.step()
        return loss

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        super().__setstate__(state)
        self._share()

    def _update(self, params: Iterable[Parameter], lr: float, weight_decay: float, **_: object) -> None:
        """Update the matrices that have a gradient."""
        matrices = [matrix for matrix in params if matrix.grad is not None]
        changes = self.turn([self._mean(matrix) for matrix in matrices], self._dtype)
        for matrix, change in zip(matrices, changes, strict=True):
            matrix.mul_(1 - lr * weight_decay)
            matrix.add_(change, alpha=-lr * 0.2 * max(matrix.shape) ** 0.5)

    def _mean(self, matrix: Parameter) -> Float[Tensor, "O I"]:
        """Return the moving average of the gradient, with Nesterov's look-ahead of one step."""
        gradient = matrix.grad
        assert gradient is not None
        state = self.state[matrix]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(gradient)
        state["momentum_buffer"].lerp_(gradient, 1 - MOMENTUM)
        return gradient.lerp(state["momentum_buffer"], MOMENTUM)

    def _share(self) -> None:
        """Let Adam (`_others`) use this optimiser's state, and all its parameter groups except the first."""
        self._others.param_groups = self.param_groups[1:]
        self._others.state = self.state


def moment_names(optimiser: Optimizer) -> list[set[str]]:
    """Return, for each weight in order, the names of the entries of the optimiser's state."""
    adam, muon = {"step", "exp_avg", "exp_avg_sq"}, {"momentum_buffer"}
    return [
        muon if isinstance(optimiser, Muon) and number == 0 else adam
        for number, group in enumerate(optimiser.param_groups)
        for _ in group["params"]
    ]


def turned(matrices: Sequence[Float[Tensor, "_ _"]], dtype: torch.dtype) -> list[Float[Tensor, "_ _"]]:
    """Return matrices with the same singular vectors, and singular values of about 1 (see `orthogonal`).

    `dtype` is the precision of the products. Matrices of equal shape (up to transposition) are computed together,
    because many small products take longer than one large product.
    """
    found = list(matrices)
    for places in _alike(matrices):
        lying = [matrix.mT if _stands(matrix) else matrix for matrix in (matrices[place] for place in places)]
        stack = torch.stack(lying)  # (N, R, C)
        for place, change in zip(places, orthogonal(stack.to(dtype)).to(stack.dtype), strict=True):
            found[place] = change.mT if _stands(matrices[place]) else change
    return found


def orthogonal(x: Float[Tensor, "N R C"]) -> Float[Tensor, "N R C"]:
    """Return matrices (R ≤ C) with the same singular vectors, and with singular values between 0.6 and 1.3.

    Singular values below 1/500 of the matrix's norm end below this range. The method is Newton-Schulz iteration with
    the coefficients of K. Jordan et al. These coefficients are chosen for speed, so more iterations would not bring the
    values nearer to 1.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    for _ in range(5):
        squares = x @ x.mT  # (N, R, R)
        x = torch.baddbmm(x, torch.baddbmm(squares, squares, squares, beta=b, alpha=c), x, beta=a)
    return x


def _stands(matrix: Tensor) -> bool:
    """Return whether the matrix has more rows than columns."""
    return matrix.shape[0] > matrix.shape[1]


def _alike(matrices: Sequence[Tensor]) -> Iterator[list[int]]:
    """Yield groups of indices of matrices with equal shapes (up to transposition); a group takes little memory."""
    by_sides: dict[tuple[int, ...], list[int]] = {}
    for place, matrix in enumerate(matrices):
        by_sides.setdefault(tuple(sorted(matrix.shape)), []).append(place)
    for sides, alike in by_sides.items():
        count = max(WEIGHTS_TOGETHER // math.prod(sides), 1)
        yield from (alike[start : start + count] for start in range(0, len(alike), count))
