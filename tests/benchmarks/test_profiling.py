"""The profile of a training run assigns each operation, also of the backward pass, to one kind of work."""

import doctest

import pytest
import torch
from benchmarks.speed import profiling as module
from benchmarks.speed.profiling import OVERHEAD, WAITING, WORK_KINDS, kind_of, profiled, shares, table
from torch import nn

import glassformer as gf
from glassformer.corpus.batching import Examples
from glassformer.recipes.configuration import TrainingConfig
from glassformer.training.loop import steps


@pytest.mark.parametrize(
    ("name", "owner", "kind"),
    [
        ("aten::addmm", "attention", "matrix products"),
        ("mkldnn::_linear_pointwise", "loss", "matrix products"),
        ("aten::bmm", "attention", "attention"),
        ("aten::_softmax", None, "attention"),
        ("aten::masked_fill_", "attention", "attention"),
        ("aten::copy_", "attention", "copies and fills"),
        ("aten::copy_", "dropout", "dropout"),
        ("aten::random_", "attention", "dropout"),
        ("aten::exp_", "loss", "loss"),
        ("aten::_foreach_add_", None, "optimiser"),
        ("aten::native_layer_norm_backward", None, "norms"),
        ("aten::clamp_min", None, "sums and activations"),
        ("autograd::engine::evaluate_function: MulBackward0", None, None),
        ("_SmoothedCrossEntropy", None, None),
    ],
)
def test_an_operation_is_classified_by_its_kind_and_its_enclosing_call(name, owner, kind):
    assert kind_of(name, owner) == kind
    assert kind in (*WORK_KINDS, None)


def test_the_example_in_the_docstring_holds():
    assert doctest.testmod(module).failed == 0


def test_shares_add_up_and_the_rest_is_overhead():
    found = shares({"matrix products": 6.0, "norms": 1.0}, 10.0, waited=1.0)
    assert found == pytest.approx({"matrix products": 0.6, "norms": 0.1, WAITING: 0.1, OVERHEAD: 0.2})
    # the operations take longer than the whole, as when two clocks disagree
    late = shares({"matrix products": 6.0}, 5.0)
    assert late == {"matrix products": 1.0, OVERHEAD: 0.0}
    assert [one.kind for one in table(found, 2.0)] == ["matrix products", OVERHEAD, "norms", WAITING]
    assert table(found, 2.0)[0].seconds == pytest.approx(1.2)


@pytest.mark.slow
def test_updates_contain_every_kind_of_work_and_leave_the_model_unchanged(seed):
    model = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=23, dropout=0.1))
    ids = [torch.randint(4, 23, (7,)).numpy() for _ in range(8)]
    updates = steps(model, Examples(source=ids, target=ids), TrainingConfig(steps=9))
    next(updates)
    seconds = profiled(model, lambda: next(updates))
    assert set(seconds) == set(WORK_KINDS)
    assert all(spent > 0 for spent in seconds.values())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_a_backward_operation_has_the_kind_of_its_forward_operation(seed):
    class Halved(module.Dropout):
        def forward(self, x):
            return torch.atan(x)

    x = torch.randn(97, 101, requires_grad=True)
    model = nn.Sequential(Halved())
    forward = profiled(model, lambda: model(x))
    both = profiled(model, lambda: model(x).sum().backward())
    assert set(forward) == {"dropout"}
    assert both["dropout"] > 0
    assert "attention" not in both


@pytest.mark.slow
def test_a_product_in_float32_and_one_in_bf16_are_timed():
    from glassformer.training.precision import matrix_speed

    threads = torch.get_num_threads()
    assert 1e8 < matrix_speed(0.02, "bf16", threads=1) < 1e15
    assert torch.get_num_threads() == threads
