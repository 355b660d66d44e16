"""The named points are a contract: their names stay, each fires once, and recording changes nothing."""

import copy
import threading

import pytest
import torch
from torch import Tensor

import glassformer as gf

pytestmark = pytest.mark.usefixtures("seed", "float64")

SOURCE = torch.tensor([[4, 5, 6, 7, 2], [8, 9, 2, 0, 0]])
TARGET = torch.tensor([[1, 4, 5], [1, 6, 0]])

ATTENTION = ["input", "query", "key", "value", "scores", "weights", "heads", "joined", "output", "added", "normed"]
FEED_FORWARD = ["input", "hidden", "activated", "output", "added", "normed"]
POINTS = [
    *("source.embedding", "source.positions", "source.input"),
    *("target.embedding", "target.positions", "target.input"),
    *(f"encoder.layers.0.self_attention.{point}" for point in ATTENTION),
    *(f"encoder.layers.0.feed_forward.{point}" for point in FEED_FORWARD),
    *(f"decoder.layers.0.self_attention.{point}" for point in ATTENTION),
    *(f"decoder.layers.0.cross_attention.{point}" for point in ATTENTION),
    *(f"decoder.layers.0.feed_forward.{point}" for point in FEED_FORWARD),
    *("encoder.output", "decoder.output", "logits", "log_probs"),
]
WEIGHTS = "encoder.layers.1.self_attention.weights"


def zeros(tensor: Tensor) -> Tensor:
    return torch.zeros_like(tensor)


@pytest.fixture
def model(make_model) -> gf.Transformer:
    return make_model()


# Names


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_names_are_the_documented_ones(make_model, norm):
    names = gf.points(make_model(norm=norm, encoder_layers=1, decoder_layers=1))
    assert len(names) == len(set(names))
    assert set(names) == set(POINTS)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("positions", ["interleaved", "learned", "none"])
def test_every_point_fires_once_in_a_forward_pass(make_model, norm, positions):
    model = make_model(norm=norm, positions=positions)
    with gf.record(model) as trace:
        model(SOURCE, TARGET)
    assert set(trace) == set(gf.points(model))
    assert all(len(trace.history(name)) == 1 for name in trace)


def test_the_points_of_a_part_are_named_relative_to_the_part(model):
    layer = model.decoder.layers[1]
    assert "cross_attention.weights" in gf.points(layer)
    assert "weights" in gf.points(layer.cross_attention)
    with gf.record(layer, ["cross_attention.weights"]) as part, gf.record(model) as whole:
        model(SOURCE, TARGET)
    assert list(part) == ["cross_attention.weights"]
    assert part["cross_attention.weights"] is whole["decoder.layers.1.cross_attention.weights"]


def test_a_copy_of_a_model_has_its_own_points(model):
    twin = copy.deepcopy(model)
    with gf.record(twin) as trace:
        model(SOURCE, TARGET)
        assert not trace
        twin(SOURCE, TARGET)
    assert set(trace) == set(gf.points(model))


# Recording


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_recording_everything_does_not_change_the_output(make_model, norm):
    # The explained and the fused attention sum in different orders, so they are equal up to rounding.
    model = make_model(norm=norm)
    with gf.record(model):
        recorded = model(SOURCE, TARGET)
    torch.testing.assert_close(recorded, model(SOURCE, TARGET), rtol=0, atol=1e-12)


def test_recording_outside_the_attention_leaves_the_output_identical(model):
    with gf.record(model, ["*.feed_forward.*", "source.*", "logits"]):
        recorded = model(SOURCE, TARGET)
    assert torch.equal(recorded, model(SOURCE, TARGET))


def test_repeated_recordings_are_identical(model):
    outputs = []
    for _ in range(2):
        with gf.record(model):
            outputs.append(model(SOURCE, TARGET))
    assert torch.equal(*outputs)


def test_recording_does_not_change_the_random_numbers_of_training(make_model):
    model, outputs = make_model(dropout=0.3, attention_dropout=0.3, activation_dropout=0.3).train(), []
    for patterns in (["*"], ["logits"]):
        torch.manual_seed(5)
        with gf.record(model, patterns):
            outputs.append(model(SOURCE, TARGET))
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-12)


def test_recorded_tensors_stay_in_the_autograd_graph(model):
    with gf.record(model, [WEIGHTS]) as trace:
        loss = model(SOURCE, TARGET).square().sum()
    (gradient,) = torch.autograd.grad(loss, trace[WEIGHTS])
    assert gradient.isfinite().all()
    assert gradient.any()


def test_patterns_choose_points(model):
    with gf.record(model, ["encoder.*.weights", "decoder.layers.?.cross_attention.weights"]) as trace:
        model(SOURCE, TARGET)
    assert list(trace) == [
        *(f"encoder.layers.{i}.self_attention.weights" for i in range(2)),
        *(f"decoder.layers.{i}.cross_attention.weights" for i in range(2)),
    ]


def test_a_trace_has_the_values_of_every_pass_and_shows_the_latest(model):
    with gf.record(model, ["logits"]) as trace:
        first, second = model(SOURCE, TARGET), model(SOURCE, TARGET[:, :1])
    assert trace.history("logits") == [first, second]
    assert trace["logits"] is second
    assert len(trace) == 1


def test_an_unrecorded_name_is_a_key_error_with_a_suggestion(model):
    with gf.record(model, ["encoder.output"]) as trace:
        model.encode(SOURCE)
    with pytest.raises(KeyError, match=r"did you mean 'encoder\.output'"):
        trace["encoder.outputs"]
    assert "logits" not in trace


def test_nothing_is_recorded_after_the_context_even_after_an_error(model):
    with pytest.raises(gf.VocabularyError), gf.record(model) as trace:
        model(SOURCE + 100, TARGET)
    heard = set(trace)
    model(SOURCE, TARGET)
    assert set(trace) == heard


def test_nested_recordings_record_the_same(model):
    with gf.record(model, ["logits"]) as outer:
        with gf.record(model, ["logits"]) as inner:
            first = model(SOURCE, TARGET)
        second = model(SOURCE, TARGET)
    assert inner.history("logits") == [first]
    assert outer.history("logits") == [first, second]


def test_each_point_is_computed_from_earlier_points(model):
    with gf.record(model) as trace:
        logits = model(SOURCE, TARGET)
    layer = "decoder.layers.1.cross_attention"
    product = trace[f"{layer}.weights"] @ trace[f"{layer}.value"]
    torch.testing.assert_close(trace[f"{layer}.heads"], product, rtol=0, atol=1e-12)
    torch.testing.assert_close(
        trace[f"{layer}.added"], trace[f"{layer}.input"] + trace[f"{layer}.output"], rtol=0, atol=1e-12
    )
    assert torch.equal(trace["decoder.layers.1.feed_forward.input"], trace[f"{layer}.normed"])
    assert torch.equal(trace["logits"], logits)
    assert torch.equal(trace["log_probs"], logits.log_softmax(-1))


# Interventions


def test_zeroing_the_weights_of_a_head_removes_its_contribution(model):
    def cut(weights: Tensor) -> Tensor:
        return torch.cat([torch.zeros_like(weights[:, :1]), weights[:, 1:]], dim=1)

    layer = "encoder.layers.1.self_attention"
    with gf.record(model) as before:
        model.encode(SOURCE)
    with gf.intervene(model, {WEIGHTS: cut}), gf.record(model) as after:
        model.encode(SOURCE)
    assert not after[f"{layer}.joined"][..., :7].any()
    assert torch.equal(after[f"{layer}.joined"][..., 7:], before[f"{layer}.joined"][..., 7:])
    assert not torch.allclose(after["encoder.output"], before["encoder.output"])


def test_an_intervention_ends_with_its_context(model):
    before = model(SOURCE, TARGET)
    with gf.intervene(model, {"encoder.output": zeros}):
        assert not torch.allclose(model(SOURCE, TARGET), before)
    assert torch.equal(model(SOURCE, TARGET), before)


@pytest.mark.parametrize("positions", ["interleaved", "halves", "learned", "none"])
@torch.no_grad()
def test_positions_are_restored_after_an_edit_in_place(make_model, positions):
    model = make_model(positions=positions)
    before = model(SOURCE, TARGET)
    with gf.intervene(model, {"*.positions": lambda table: table.fill_(7)}):
        assert not torch.allclose(model(SOURCE, TARGET), before)
    assert torch.equal(model(SOURCE, TARGET), before)


def test_positions_edited_to_zero_equal_no_positions(make_model):
    model, without = make_model(), make_model(positions="none")
    without.load_state_dict(model.state_dict())
    with gf.intervene(model, {"*.positions": zeros}):
        edited = model(SOURCE, TARGET)
    torch.testing.assert_close(edited, without(SOURCE, TARGET), rtol=0, atol=1e-12)


@pytest.mark.parametrize("record_first", [False, True])
def test_a_recording_has_the_edited_values(model, record_first):
    edit = gf.intervene(model, {"encoder.output": lambda memory: memory + 1})
    listen = gf.record(model, ["encoder.output"])
    with listen if record_first else edit as one, edit if record_first else listen as other:
        memory = model.encode(SOURCE)
    trace = one if record_first else other
    assert torch.equal(trace["encoder.output"], memory)
    assert torch.equal(memory, model.encode(SOURCE) + 1)


def test_nested_interventions_act_in_order_from_the_outside(model):
    before = model.encode(SOURCE)
    outer = gf.intervene(model, {"encoder.output": lambda memory: memory + 1})
    inner = gf.intervene(model, {"encoder.output": lambda memory: memory * 2})
    with outer, inner:
        assert torch.equal(model.encode(SOURCE), (before + 1) * 2)


def test_the_later_of_two_edits_of_a_point_acts(model):
    with gf.intervene(model, {"*.output": zeros, "encoder.output": lambda memory: memory + 1}):
        edited = model.encode(SOURCE)
    with gf.intervene(model, {"encoder.layers.*.output": zeros}):
        assert torch.equal(edited, model.encode(SOURCE) + 1)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_an_edit_at_any_point_reaches_the_output(make_model, norm):
    model = make_model(norm=norm, encoder_layers=1, decoder_layers=1)
    before = model(SOURCE, TARGET)
    for name in gf.points(model):
        with gf.intervene(model, {name: lambda tensor: tensor * torch.linspace(0.5, 1.5, tensor.shape[-1])}):
            assert not torch.allclose(model(SOURCE, TARGET), before), name


def test_an_intervention_that_returns_its_input_changes_nothing(model):
    with gf.intervene(model, {"*": lambda tensor: tensor}):
        output = model(SOURCE, TARGET)
    torch.testing.assert_close(output, model(SOURCE, TARGET), rtol=0, atol=1e-12)


def test_edited_log_probs_are_returned_instead_of_the_logits(model):
    with gf.intervene(model, {"log_probs": lambda log_probs: log_probs.roll(1, -1)}):
        output = model(SOURCE, TARGET)
    expected = model(SOURCE, TARGET).log_softmax(-1).roll(1, -1)
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-12)


def test_a_part_of_a_model_can_be_edited(model):
    with gf.intervene(model.encoder.layers[1].self_attention, {"weights": zeros}):
        edited = model.encode(SOURCE)
    with gf.intervene(model, {WEIGHTS: zeros}):
        assert torch.equal(model.encode(SOURCE), edited)


def test_other_threads_are_neither_recorded_nor_edited(model):
    before, seen = model(SOURCE, TARGET), []
    with gf.record(model) as trace, gf.intervene(model, {"encoder.output": zeros}):
        thread = threading.Thread(target=lambda: seen.append(model(SOURCE, TARGET)))
        thread.start()
        thread.join()
        assert not trace
    assert torch.equal(seen[0], before)


# Mistakes


def test_an_unknown_point_is_an_error_with_a_suggestion(model):
    name = "encoder.layers.1.self_attention.weight"
    for listening in (gf.record(model, [name]), gf.intervene(model, {name: zeros})):
        with pytest.raises(gf.ConfigError, match=r"self_attention\.weight' \(did you mean '.*\.weights'"), listening:
            pass


def test_an_edit_of_a_different_shape_is_an_error(model):
    edit = {"encoder.output": lambda memory: memory[:, :-1]}
    with (
        pytest.raises(gf.ShapeError, match=r"encoder\.output: expected shape \(2, 5, 11\), got \(2, 4, 11\)"),
        gf.intervene(model, edit),
    ):
        model.encode(SOURCE)
