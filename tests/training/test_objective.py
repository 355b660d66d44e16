"""The loss, compared with torch's loss of the same logits."""

import pytest
import torch
import torch.nn.functional as F

from glassformer.errors import ConfigError
from glassformer.training import objective
from glassformer.training.objective import ROWS, smoothed_cross_entropy

SMOOTHINGS = [0.0, 0.1, 0.37]


@pytest.fixture
def make_inputs(seed, float64):
    """Return a function that makes hidden (N, 5), weight (11, 5) and target (N)."""

    def make(n, dtype=torch.float64):
        hidden, weight = (torch.randn(rows, 5, dtype=dtype, requires_grad=True) for rows in (n, 11))
        return hidden, weight, torch.randint(11, (n,))

    return make


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("n", [1, 7, ROWS - 1, ROWS, ROWS + 1, 2 * ROWS + 3])
def test_value_and_both_gradients_equal_torchs(make_inputs, n, smoothing):
    hidden, weight, target = make_inputs(n)
    loss = smoothed_cross_entropy(hidden, weight, target, smoothing).smoothed
    gradients = torch.autograd.grad(3 * loss, (hidden, weight))
    expected = F.cross_entropy(hidden @ weight.t(), target, label_smoothing=smoothing, reduction="sum")
    expected_gradients = torch.autograd.grad(3 * expected, (hidden, weight))
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(gradients, expected_gradients, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("smoothing", SMOOTHINGS[1:])
def test_the_loss_is_the_divergence_from_the_smoothed_target_up_to_its_entropy(make_inputs, smoothing):
    hidden, weight, target = make_inputs(7)
    smoothed = torch.full((7, 11), smoothing / 11)
    smoothed[torch.arange(7), target] += 1 - smoothing
    divergence = F.kl_div((hidden @ weight.t()).log_softmax(-1), smoothed, reduction="sum")
    entropy = -(smoothed * smoothed.log()).sum()
    loss = smoothed_cross_entropy(hidden, weight, target, smoothing).smoothed
    torch.testing.assert_close(loss, divergence + entropy, rtol=1e-12, atol=0)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_the_plain_loss_is_the_log_probability_of_the_reference(make_inputs, smoothing):
    hidden, weight, target = make_inputs(ROWS + 7)
    log_probs = (hidden @ weight.t()).log_softmax(-1)
    plain = smoothed_cross_entropy(hidden, weight, target, smoothing).plain
    torch.testing.assert_close(plain, -log_probs[torch.arange(ROWS + 7), target].sum(), rtol=1e-12, atol=0)
    assert not plain.requires_grad


def test_both_sums_are_equal_without_smoothing(make_inputs):
    loss = smoothed_cross_entropy(*make_inputs(7), 0.0)
    assert loss.smoothed == loss.plain


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_the_gradient_equals_finite_differences(make_inputs, monkeypatch, smoothing):
    monkeypatch.setattr(objective, "ROWS", 2)
    hidden, weight, target = make_inputs(5)
    assert torch.autograd.gradcheck(lambda *x: smoothed_cross_entropy(*x, target, smoothing).smoothed, (hidden, weight))


@pytest.mark.slow
@pytest.mark.parametrize("r_drop", [0.0, 3.0])
@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_a_bias_is_added_to_the_logits(make_inputs, monkeypatch, smoothing, r_drop):
    monkeypatch.setattr(objective, "ROWS", 2)
    hidden, weight, target = make_inputs(6)
    target = target[:3] if r_drop else target
    bias = torch.randn(len(weight), requires_grad=True)
    # the bias as an additional column, multiplied with a constant input of 1, gives the same logits
    column = torch.cat([weight.detach(), bias.detach()[:, None]], dim=1)
    row = torch.cat([hidden.detach(), torch.ones(len(hidden), 1)], dim=1)
    expected = smoothed_cross_entropy(row, column, target, smoothing, r_drop)
    loss = smoothed_cross_entropy(hidden, weight, target, smoothing, r_drop, bias)
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-12)
    assert torch.autograd.gradcheck(
        lambda *x: smoothed_cross_entropy(*x[:2], target, smoothing, r_drop, x[2]).smoothed, (hidden, weight, bias)
    )


def test_a_second_derivative_is_refused(make_inputs):
    hidden, weight, target = make_inputs(5)
    loss = smoothed_cross_entropy(hidden, weight, target, 0.1).smoothed ** 2
    [gradient] = torch.autograd.grad(loss, hidden, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_a_frozen_matrix_does_not_change_the_gradient_of_the_rest(make_inputs):
    hidden, weight, target = make_inputs(7)
    [free] = torch.autograd.grad(smoothed_cross_entropy(hidden, weight, target, 0.1).smoothed, hidden)
    loss = smoothed_cross_entropy(hidden, weight.detach(), target, 0.1).smoothed
    [frozen] = torch.autograd.grad(loss, hidden)
    assert torch.equal(free, frozen)


def test_nothing_as_large_as_the_logits_is_kept_for_the_backward_pass(make_inputs):
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: kept.append(tuple(tensor.shape)) or tensor, lambda x: x
    ):
        smoothed_cross_entropy(*make_inputs(ROWS + 7), 0.1)
    assert sorted(kept) == [(11, 5), (ROWS + 7, 5)]


def test_no_gradient_is_computed_unless_needed(make_inputs):
    with torch.no_grad():
        loss = smoothed_cross_entropy(*make_inputs(7), 0.1)
    assert not loss.smoothed.requires_grad


@pytest.mark.parametrize("r_drop", [0.0, 3.0])
def test_no_rows_have_a_loss_of_zero(make_inputs, r_drop):
    hidden, weight, target = make_inputs(0)
    loss = smoothed_cross_entropy(hidden, weight, target, 0.1, r_drop).smoothed
    loss.backward()
    assert loss == 0
    assert not weight.grad.any()


def test_large_logits_in_single_precision_are_accurate(make_inputs):
    hidden, weight, target = make_inputs(7, torch.float32)
    loss = smoothed_cross_entropy(1e4 * hidden, weight, target, 0.1).smoothed
    expected = F.cross_entropy((1e4 * hidden @ weight.t()).double(), target, label_smoothing=0.1, reduction="sum")
    assert loss.isfinite()
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=0)


def test_bf16_products_change_little(make_inputs):
    hidden, weight, target = make_inputs(ROWS + 7, torch.float32)
    exact = smoothed_cross_entropy(hidden, weight, target, 0.1).smoothed
    with torch.autocast("cpu", torch.bfloat16):
        rough = smoothed_cross_entropy(hidden, weight, target, 0.1).smoothed
    assert rough.dtype == torch.float32
    # bf16 has 8 significant bits: each factor is off by up to 2^-9, and a gradient, which is a sum of several products,
    # by a few times this.
    torch.testing.assert_close(rough, exact, rtol=2**-8, atol=0)
    for parameter in (hidden, weight):
        ours, theirs = (torch.autograd.grad(x, parameter, retain_graph=True)[0] for x in (rough, exact))
        assert ours.dtype == torch.float32
        assert (ours - theirs).norm() < 2**-6 * theirs.norm()


def test_probabilities_in_bf16_add_little_to_the_error_of_logits_in_bf16(seed):
    hidden = (torch.randn(600, 64) / 2).requires_grad_()
    weight, target = torch.randn(3000, 64, requires_grad=True), torch.randint(3000, (600,))

    def gradients(loss):
        return torch.autograd.grad(loss, (hidden, weight))

    exact = gradients(F.cross_entropy(hidden @ weight.t(), target, label_smoothing=0.1, reduction="sum"))
    with torch.autocast("cpu", torch.bfloat16):
        logits = hidden @ weight.t()
        # the reference, in float32
        precise = gradients(F.cross_entropy(logits, target, label_smoothing=0.1, reduction="sum"))
        loss = smoothed_cross_entropy(hidden, weight, target, 0.1)
    torch.testing.assert_close(loss.plain, F.cross_entropy(logits.float(), target, reduction="sum"), rtol=1e-4, atol=0)
    for got, reference, true in zip(gradients(loss.smoothed), precise, exact, strict=True):
        assert (got - true).norm() < 1.1 * (reference - true).norm()


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("n", [1, 7, ROWS + 1])
def test_r_drop_adds_half_its_weight_times_the_mean_divergence_of_two_passes(make_inputs, n, smoothing):
    hidden, weight, _ = make_inputs(2 * n)
    target = torch.randint(11, (n,))
    loss = smoothed_cross_entropy(hidden, weight, target, smoothing, r_drop=3.0).smoothed
    gradients = torch.autograd.grad(3 * loss, (hidden, weight))
    logits = hidden @ weight.t()
    p, q = logits.log_softmax(-1).chunk(2)
    divergences = [F.kl_div(x, y, log_target=True, reduction="sum") for x, y in ((p, q), (q, p))]
    both = F.cross_entropy(logits, target.repeat(2), label_smoothing=smoothing, reduction="sum")
    expected = both / 2 + 3.0 / 2 * sum(divergences) / 2
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=1e-12)
    expected_gradients = torch.autograd.grad(3 * expected, (hidden, weight))
    torch.testing.assert_close(gradients, expected_gradients, rtol=1e-12, atol=1e-12)


def test_two_equal_passes_have_the_loss_of_one(make_inputs):
    hidden, weight, target = make_inputs(7)
    one = smoothed_cross_entropy(hidden, weight, target, 0.1)
    two = smoothed_cross_entropy(hidden.repeat(2, 1), weight, target, 0.1, r_drop=3.0)
    torch.testing.assert_close(two, one, rtol=1e-12, atol=0)


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, float("nan")])
def test_an_impossible_smoothing_is_refused(make_inputs, smoothing):
    with pytest.raises(ConfigError, match=r"smoothing: expected a number in \[0, 1\), got "):
        smoothed_cross_entropy(*make_inputs(2), smoothing)


@pytest.mark.parametrize("r_drop", [0.0, 0.7])
@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_an_entry_that_the_bias_rules_out_counts_as_removed(make_inputs, smoothing, r_drop):
    hidden, weight, target = make_inputs(7)
    target = torch.where(target == 3, 4, target)
    hidden = torch.cat([hidden, torch.randn(7, 5)]).detach().requires_grad_() if r_drop else hidden
    bias = torch.randn(11)
    bias[3] = -1e9
    bias.requires_grad_()
    loss = smoothed_cross_entropy(hidden, weight, target, smoothing, r_drop, bias)
    gradients = torch.autograd.grad(loss.smoothed, (hidden, weight, bias))
    rest = [0, 1, 2, *range(4, 11)]
    left = target - (target > 3).long()
    expected = smoothed_cross_entropy(hidden, weight[rest], left, smoothing, r_drop, bias[rest])
    expected_gradients = torch.autograd.grad(expected.smoothed, (hidden, weight, bias))
    torch.testing.assert_close(loss.smoothed, expected.smoothed, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(gradients, expected_gradients, rtol=1e-12, atol=1e-12)
    if not r_drop:
        logits = hidden @ weight[rest].t() + bias[rest]
        reference = F.cross_entropy(logits, left, label_smoothing=smoothing, reduction="sum")
        torch.testing.assert_close(loss.smoothed, reference, rtol=1e-12, atol=1e-12)
    assert not gradients[2][3]
    assert not gradients[1][3].any()
