"""Which optimiser, over which weights."""

import pytest
import torch

from glassformer.recipes.configuration import TrainingConfig
from glassformer.training.optimiser import make_optimiser


def names(model, group):
    owners = {parameter: name for name, parameter in model.named_parameters()}
    return {owners[parameter] for parameter in group["params"]}


def test_the_default_is_adam_with_the_papers_settings(make_model):
    optimiser = make_optimiser(make_model(), TrainingConfig())
    assert type(optimiser) is torch.optim.Adam
    [group] = optimiser.param_groups
    assert (group["betas"], group["eps"], group["weight_decay"]) == ((0.9, 0.98), 1e-9, 0)


def test_adam_changes_all_weights(make_model):
    model = make_model()
    [group] = make_optimiser(model, TrainingConfig()).param_groups
    assert names(model, group) == {name for name, _ in model.named_parameters()}


@pytest.mark.parametrize("settings", [{}, {"tie_output": False}, {"target_vocab_size": 19, "tie_embeddings": True}])
@pytest.mark.parametrize("positions", ["interleaved", "learned"])
def test_adamw_decays_matrices_but_no_embeddings_biases_and_norms(make_model, settings, positions):
    model = make_model(positions=positions, max_length=17, **settings)
    optimiser = make_optimiser(model, TrainingConfig(optimiser="adamw", weight_decay=0.3))
    decayed, others = (names(model, group) for group in optimiser.param_groups)
    assert [group["weight_decay"] for group in optimiser.param_groups] == [0.3, 0.0]
    assert decayed | others == {name for name, _ in model.named_parameters()}
    assert decayed == {
        name
        for name in decayed | others
        if name.endswith(".weight") and "norm" not in name and not name.startswith(("source.", "target."))
    }


def test_adamw_without_a_gradient_only_decays(make_model):
    model = make_model()
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    optimiser = make_optimiser(model, TrainingConfig(optimiser="adamw", weight_decay=0.3, learning_rate=0.01))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimiser.param_groups[0]["lr"] = optimiser.param_groups[1]["lr"] = 0.01
    optimiser.step()
    for name, weight in model.named_parameters():
        factor = 1 - 0.01 * 0.3 if name in names(model, optimiser.param_groups[0]) else 1.0
        torch.testing.assert_close(weight, factor * before[name], rtol=1e-12, atol=0)


def test_frozen_weights_are_left_out(make_model):
    model = make_model()
    model.source.tokens.weight.requires_grad_(False)
    for kind in ("adam", "adamw"):
        groups = make_optimiser(model, TrainingConfig(optimiser=kind)).param_groups
        assert not any("source.tokens.weight" in names(model, group) for group in groups)
