"""The optimisers, and the weights that each updates."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import ConfigError
from glassformer.recipes.configuration import TrainingConfig
from glassformer.training import optimiser as module
from glassformer.training.optimiser import make_optimiser, orthogonal


def names(model, group):
    owners = {parameter: name for name, parameter in model.named_parameters()}
    return {owners[parameter] for parameter in group["params"]}


def test_the_default_is_adam_with_the_papers_settings(make_model):
    optimiser = make_optimiser(make_model(), TrainingConfig())
    assert type(optimiser) is torch.optim.Adam
    [group] = optimiser.param_groups
    assert (group["betas"], group["eps"], group["weight_decay"]) == ((0.9, 0.98), 1e-9, 0)


def test_an_optimiser_that_is_still_open_is_refused(make_model):
    with pytest.raises(ConfigError, match=r'training\.optimiser: expected adam, adamw or muon, got "auto"; set it'):
        make_optimiser(make_model(), TrainingConfig(optimiser="auto"))


def test_adam_changes_all_weights(make_model):
    model = make_model()
    [group] = make_optimiser(model, TrainingConfig()).param_groups
    assert names(model, group) == {name for name, _ in model.named_parameters()}


@pytest.mark.parametrize("settings", [{}, {"tie_output": False}, {"target_vocab_size": 19, "tie_embeddings": True}])
@pytest.mark.parametrize("positions", ["interleaved", "learned"])
def test_adamw_decays_matrices_but_not_embeddings_biases_and_norms(make_model, settings, positions):
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
    for kind in ("adam", "adamw", "muon"):
        groups = make_optimiser(model, TrainingConfig(optimiser=kind)).param_groups
        assert not any("source.tokens.weight" in names(model, group) for group in groups)


MUON = TrainingConfig(optimiser="muon", weight_decay=0.3)


@pytest.mark.parametrize("settings", [{}, {"tie_output": False}, {"target_vocab_size": 19, "tie_embeddings": True}])
@pytest.mark.parametrize("positions", ["interleaved", "learned"])
def test_muon_updates_the_matrices_of_the_layers_and_adam_the_rest(make_model, settings, positions):
    model = make_model(positions=positions, max_length=17, **settings)
    matrices, others = (names(model, group) for group in make_optimiser(model, MUON).param_groups)
    assert matrices | others == {name for name, _ in model.named_parameters()}
    assert matrices == {name for name in matrices | others if "layers." in name and name.endswith(".weight")} - {
        name for name in others if "norm" in name
    }


def test_a_step_of_muon_changes_a_matrix_about_equally_in_every_direction(make_model):
    """The gradient's singular values differ up to a hundredfold; five iterations bring each to between 0.5 and 1.5."""
    model = make_model()
    optimiser = make_optimiser(model, MUON)
    weight = model.encoder.layers[0].feed_forward.expand.weight
    left, _, right = torch.linalg.svd(torch.randn_like(weight), full_matrices=False)
    sizes = torch.logspace(0, 2, len(right), dtype=weight.dtype)
    before = weight.detach().clone()
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    weight.grad = left * sizes @ right
    for group in optimiser.param_groups:
        group["lr"] = 0.01
    optimiser.step()
    change = before * (1 - 0.01 * 0.3) - weight.detach()
    found = torch.linalg.svdvals(change) / (0.01 * 0.2 * max(weight.shape) ** 0.5)
    assert float(found.min()) > 0.5
    assert float(found.max()) < 1.5


def test_muon_changes_the_rest_like_adam(make_model):
    results = {}
    for kind in ("adam", "muon"):
        torch.manual_seed(7)
        model = make_model()
        optimiser = make_optimiser(model, TrainingConfig(optimiser=kind))
        torch.manual_seed(11)
        for _ in range(3):
            for parameter in model.parameters():
                parameter.grad = torch.randn_like(parameter)
            optimiser.step()
        results[kind] = dict(model.named_parameters())
    rest = {name for name in results["adam"] if "layers." not in name or "norm" in name or "bias" in name}
    for name in results["adam"]:
        assert torch.equal(results["adam"][name], results["muon"][name]) == (name in rest), name


@pytest.mark.parametrize("together", [1, 2**20])
def test_muon_equals_torchs_up_to_rounding(make_model, monkeypatch, together):
    """torch.optim.Muon rounds to bf16, with 8 significant bits, in each of its five iterations. So does this test, with
    all matrices at once or one by one. A different order of sums changes the results by some of these roundings.
    """
    monkeypatch.setattr(module, "WEIGHTS_TOGETHER", together)

    def trained(make):
        torch.manual_seed(7)
        model = make_model(d_ff=40).float()
        optimiser = make(model)
        torch.manual_seed(11)
        for _ in range(3):
            for parameter in model.parameters():
                parameter.grad = torch.randn_like(parameter)
            for group in optimiser.param_groups:
                group["lr"] = 0.01
            optimiser.step()
        return dict(model.named_parameters())

    def torchs(model):
        matrices = make_optimiser(model, MUON).param_groups[0]["params"]
        return torch.optim.Muon(matrices, weight_decay=0.3, adjust_lr_fn="match_rms_adamw")

    start = dict(make_model(d_ff=40).float().named_parameters())
    ours = trained(lambda model: make_optimiser(model, replace(MUON, precision="bf16")))
    theirs = trained(torchs)
    matrices = [name for name in start if "layers." in name and start[name].dim() > 1]
    for name in matrices:
        step = 0.01 * 0.2 * max(start[name].shape) ** 0.5 / min(start[name].shape) ** 0.5
        torch.testing.assert_close(ours[name], theirs[name], rtol=0, atol=0.1 * step, msg=name)


@given(st.integers(1, 6), st.integers(0, 5), st.floats(-20, 20), st.integers(0, 2**32 - 1))
def test_singular_values_become_about_one_and_singular_vectors_stay(rows, wider, size, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(3, rows, rows + wider, generator=generator, dtype=torch.float64) * 2.0**size
    left, values, right = torch.linalg.svd(x, full_matrices=False)
    found = left.mT @ orthogonal(x) @ right.mT  # (3, R, R); diagonal if the singular vectors were kept
    torch.testing.assert_close(found, torch.diag_embed(found.diagonal(dim1=-2, dim2=-1)), rtol=0, atol=1e-6)
    large = values > values.norm(dim=-1, keepdim=True) / 500
    assert bool(((found.diagonal(dim1=-2, dim2=-1)[large] - 0.95).abs() < 0.35).all())


def test_a_matrix_without_a_gradient_is_unchanged(make_model):
    model = make_model()
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    make_optimiser(model, MUON).step()
    assert all(torch.equal(before[name], weight) for name, weight in model.named_parameters())
