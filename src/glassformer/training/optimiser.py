"""Adam with the paper's settings, AdamW, or Muon for the matrices with Adam for the rest."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.nn import Parameter
from torch.optim import Adam, AdamW, Optimizer

from glassformer.errors import ConfigError
from glassformer.model.positions import Positions
from glassformer.model.transformer import Transformer
from glassformer.recipes.configuration import TrainingConfig

__all__ = ["Muon", "make_optimiser"]


def make_optimiser(model: Transformer, config: TrainingConfig) -> Optimizer:
    """Return the optimiser of all trainable weights; its learning rate is set at each step. Paper: §5.3 (Adam).

    AdamW decays matrices only: not biases and norms (vectors), and not the embeddings (of tokens and positions), whose
    rows are mostly unused in a step.

    Raises:
        ConfigError: the installed PyTorch has no Muon.
    """
    betas = (config.beta1, config.beta2)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if config.optimiser == "adam":
        return Adam(trainable, betas=betas, eps=config.epsilon, fused=True)
    tables = (module for module in model.modules() if isinstance(module, nn.Embedding | Positions))
    embeddings = {parameter for table in tables for parameter in table.parameters()}
    # Each row of the output projection stands for a token, like a row of the embeddings.
    rows = embeddings | {model.output.weight} if config.optimiser == "muon" else embeddings
    matrices = [parameter for parameter in trainable if parameter.dim() > 1 and parameter not in rows]
    others = [parameter for parameter in trainable if parameter.dim() <= 1 or parameter in rows]
    if config.optimiser == "muon":
        return Muon(matrices, Adam(others, betas=betas, eps=config.epsilon, fused=True), config.weight_decay)
    groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return AdamW(groups, betas=betas, eps=config.epsilon, fused=True)


class Muon(Optimizer):
    """Muon for the matrices of the layers, and Adam for all else, as one optimiser with one state.

    Muon takes the mean gradient of a matrix and makes all its singular values about 1 before it steps, so that no
    direction is learned slowly because others have larger gradients. A step is scaled to the size of Adam's, so that
    the same learning rates suit.

    Differs: the paper has Adam (§5.3). Source: K. Jordan et al., "Muon: An optimizer for hidden layers in neural
    networks", 2024; the scale: J. Liu et al., "Muon is scalable for LLM training", 2025, §2.2.
    """

    def __init__(self, matrices: Iterable[Parameter], others: Adam, weight_decay: float) -> None:
        if not hasattr(torch.optim, "Muon"):
            raise ConfigError(
                f'training.optimiser = "muon" needs PyTorch 2.9 or newer, this is {torch.__version__}: upgrade torch, '
                'or choose "adam"'
            )
        muon = torch.optim.Muon(matrices, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw")
        self._parts: tuple[Optimizer, ...] = (muon, others)
        super().__init__([group for part in self._parts for group in part.param_groups], {})
        self._share()

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Change all weights once."""
        loss = None if closure is None else closure()
        for part in self._parts:
            part.step()
        return loss

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over a state that was kept."""
        super().__setstate__(state)
        self._share()

    def _share(self) -> None:
        """Let the parts work on the groups and the memory of the whole."""
        groups = iter(self.param_groups)
        for part in self._parts:
            part.param_groups = [next(groups) for _ in part.param_groups]
            part.state = self.state
