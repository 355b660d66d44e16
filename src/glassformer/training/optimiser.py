"""Adam with the paper's settings, or AdamW."""

from torch import nn
from torch.optim import Adam, AdamW, Optimizer

from glassformer.model.positions import Positions
from glassformer.recipes.configuration import TrainingConfig

__all__ = ["make_optimiser"]


def make_optimiser(model: nn.Module, config: TrainingConfig) -> Optimizer:
    """Return the optimiser of all trainable weights; its learning rate is set at each step. Paper: §5.3.

    AdamW decays matrices only: not biases and norms (vectors), and not the embeddings (of tokens and positions), whose
    rows are mostly unused in a step.
    """
    betas = (config.beta1, config.beta2)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if config.optimiser == "adam":
        return Adam(trainable, betas=betas, eps=config.epsilon, fused=True)
    tables = (module for module in model.modules() if isinstance(module, nn.Embedding | Positions))
    embeddings = {parameter for table in tables for parameter in table.parameters()}
    decayed = [parameter for parameter in trainable if parameter.dim() > 1 and parameter not in embeddings]
    others = [parameter for parameter in trainable if parameter.dim() <= 1 or parameter in embeddings]
    groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return AdamW(groups, betas=betas, eps=config.epsilon, fused=True)
