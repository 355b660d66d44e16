"""The whole model: sizes, shapes, padding, causality, ties, initialisation, dropout, errors."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import glassformer as gf

pytestmark = pytest.mark.usefixtures("seed", "float64")

SOURCE = torch.tensor([[4, 5, 6, 7, 2], [8, 9, 2, 0, 0], [10, 2, 0, 0, 0]])
TARGET = torch.tensor([[1, 4, 5, 0, 0, 0, 0], [1, 6, 7, 8, 9, 10, 11], [1, 12, 13, 14, 0, 0, 0]])

TABLE_3 = {
    "table3-base": 65,
    "table3-A-h1": 65,
    "table3-A-h32": 65,
    "table3-B-dk16": 58,
    "table3-B-dk32": 60,
    "table3-C-N2": 36,
    "table3-C-N4": 50,
    "table3-C-N8": 80,
    "table3-C-d256": 28,
    "table3-C-d1024": 168,
    "table3-C-ff1024": 53,
    "table3-C-ff4096": 90,
}


class Leaf:
    """An edit that cuts the autograd graph at a point, so that the gradient there can be read."""

    def __call__(self, tensor: Tensor) -> Tensor:
        self.tensor = tensor.detach().requires_grad_()
        return self.tensor


def parameters_of(preset: str, vocab_size: int) -> int:
    with torch.device("meta"):
        model = gf.Transformer(gf.ModelConfig.preset(preset, vocab_size=vocab_size))
    return sum(parameter.numel() for parameter in model.parameters())


def assert_same(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def sentences(vocab_size: int, most: int = 5) -> st.SearchStrategy[list[list[int]]]:
    sentence = st.lists(st.integers(3, vocab_size - 1), min_size=1, max_size=6)
    return st.lists(sentence, min_size=1, max_size=most)


def padded(rows: list[list[int]], extra: int = 0) -> Tensor:
    length = max(map(len, rows)) + extra
    return torch.tensor([row + [0] * (length - len(row)) for row in rows])


# Sizes and shapes


@pytest.mark.parametrize(("preset", "millions"), TABLE_3.items())
def test_the_models_of_table_3_have_the_papers_numbers_of_parameters(preset, millions):
    assert round(parameters_of(preset, 41000) / 1e6) == millions


def test_the_base_and_the_big_model_have_the_expected_numbers_of_parameters():
    assert parameters_of("base", 37000) == 63_082_496
    assert parameters_of("big", 37000) == 214_245_376


def test_a_batch_of_30_sentences_of_10_tokens_has_the_expected_shapes():
    model = gf.Transformer(gf.ModelConfig.preset("base", vocab_size=11, encoder_layers=1, decoder_layers=1)).eval()
    ids = torch.randint(3, 11, (30, 10))
    with torch.no_grad(), gf.record(model) as trace:
        logits = model(ids, ids[:, :7])
    layer = "encoder.layers.0.self_attention"
    assert trace["source.input"].shape == (30, 10, 512)
    assert all(trace[f"{layer}.{point}"].shape == (30, 8, 10, 64) for point in ("query", "key", "value", "heads"))
    assert trace[f"{layer}.scores"].shape == trace[f"{layer}.weights"].shape == (30, 8, 10, 10)
    assert all(trace[f"{layer}.{point}"].shape == (30, 10, 512) for point in ("joined", "output", "added", "normed"))
    assert trace["encoder.layers.0.feed_forward.hidden"].shape == (30, 10, 2048)
    assert trace["decoder.layers.0.cross_attention.weights"].shape == (30, 8, 7, 10)
    assert logits.shape == (30, 7, 11)


def test_forward_is_encode_then_decode(make_model):
    model = make_model()
    memory = model.encode(SOURCE)
    logits = model(SOURCE, TARGET)
    assert torch.equal(model.decode(TARGET, memory, SOURCE), logits)
    assert torch.equal(model.logits(model.decoder_output(TARGET, memory, SOURCE)), logits)


# Padding


@given(sentences(19), sentences(23), st.integers(0, 4), st.integers(0, 4))
def test_padding_does_not_change_real_positions(make_model, sources, targets, more_source, more_target):
    model, targets = make_model(), [[1, *row] for row in (targets * 5)[: len(sources)]]
    together = model(padded(sources, more_source), padded(targets, more_target))
    for source, target, logits in zip(sources, targets, together, strict=True):
        alone = model(torch.tensor([source]), torch.tensor([target]))[0]
        assert_same(logits[: len(target)], alone)


def test_the_embedding_of_padding_does_not_matter(make_model):
    model = make_model()
    before = model(SOURCE, TARGET)
    with torch.no_grad():
        model.source.tokens.weight[0] += 100
    real = (TARGET != 0)[..., None]
    assert torch.equal(model(SOURCE, TARGET) * real, before * real)


@pytest.mark.parametrize("explained", [False, True])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_gradient_to_padding_is_exactly_zero(make_model, norm, explained):
    model, source, target = make_model(norm=norm), Leaf(), Leaf()
    heard = ["*"] if explained else ["logits"]
    with gf.intervene(model, {"source.input": source, "target.input": target}), gf.record(model, heard):
        logits = model(SOURCE, TARGET)
    (logits * torch.randn_like(logits) * (TARGET != 0)[..., None]).sum().backward()
    for leaf, ids in ((source.tensor, SOURCE), (target.tensor, TARGET)):
        assert not leaf.grad[ids == 0].any()
        assert leaf.grad[ids != 0].any(-1).all()


def test_a_source_of_padding_only_gives_finite_logits_and_gradients(make_model):
    model = make_model()
    logits = model(torch.zeros(2, 3, dtype=torch.long), TARGET[:2])
    logits.square().sum().backward()
    assert logits.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_any_padding_id_works(make_model):
    usual, other = make_model(), make_model(pad_id=2, eos_id=0)
    other.load_state_dict(usual.state_dict())
    swap = torch.tensor([2, 1, 0, *range(3, 23)])
    with torch.no_grad():
        for tokens, size in ((other.source.tokens, 19), (other.target.tokens, 23)):
            tokens.weight.copy_(tokens.weight[swap[:size]])
    assert_same(other(swap[SOURCE], swap[TARGET]), usual(SOURCE, TARGET)[..., swap])


def test_cross_attention_masks_the_padding_of_the_source_not_of_the_target(make_model):
    model = make_model()
    source, target = torch.tensor([[4, 5, 6, 2]]), torch.tensor([[1, 7, 0, 0]])
    with gf.record(model, ["*.cross_attention.weights"]) as trace:
        model(source, target)
        model(target, source)
    for name in trace:
        every, half = trace.history(name)
        assert every.all()
        assert half[..., :2].all()
        assert not half[..., 2:].any()


# Causality


@given(st.integers(0, 6), st.integers(3, 22))
def test_a_later_token_does_not_change_earlier_logits(make_model, changed, token):
    model, target = make_model(), torch.tensor([[1, 6, 7, 8, 9, 10, 11]] * 3)
    before = model(SOURCE, target)
    target[:, changed] = 12 if token == target[0, changed] else token
    after = model(SOURCE, target)
    assert torch.equal(after[:, :changed], before[:, :changed])
    assert (after[:, changed] != before[:, changed]).any()


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_no_gradient_flows_back_from_the_future(make_model, norm):
    model, target = make_model(norm=norm), Leaf()
    with gf.intervene(model, {"target.input": target}):
        logits = model(SOURCE, torch.tensor([[1, 6, 7, 8, 9]] * 3))
    for i in range(5):
        (gradient,) = torch.autograd.grad((logits[:, i] * torch.randn(23)).sum(), target.tensor, retain_graph=True)
        assert not gradient[:, i + 1 :].any()
        assert gradient[:, : i + 1].any(-1).all()


def test_every_source_position_influences_every_other(make_model):
    model, source = make_model(), Leaf()
    with gf.intervene(model, {"source.input": source}):
        memory = model.encode(SOURCE[:1])
    for i in range(5):
        (gradient,) = torch.autograd.grad((memory[0, i] * torch.randn(11)).sum(), source.tensor, retain_graph=True)
        assert gradient.any(-1).all()


# Order


def test_a_batch_gives_the_same_results_as_single_sentences_in_any_order(make_model):
    model, order = make_model(), torch.tensor([2, 0, 1])
    together = model(SOURCE, TARGET)
    for i in range(3):
        assert_same(model(SOURCE[i : i + 1], TARGET[i : i + 1])[0], together[i])
    assert_same(model(SOURCE[order], TARGET[order]), together[order])


@pytest.mark.parametrize("positions", ["interleaved", "halves", "learned"])
def test_the_encoder_sees_the_order_only_with_positions(make_model, positions):
    order, source = torch.tensor([3, 0, 4, 1, 2]), SOURCE[:1]
    blind, seeing = make_model(positions="none"), make_model(positions=positions)
    assert_same(blind.encode(source[:, order]), blind.encode(source)[:, order])
    difference = seeing.encode(source[:, order]) - seeing.encode(source)[:, order]
    assert difference.abs().max() > 0.1


# Parameters


def test_the_names_of_the_parameters_match_saved_models(make_model):
    def both(*names: str) -> list[str]:
        return [f"{name}.{kind}" for name in names for kind in ("weight", "bias")]

    attention, norm = ("input_projection", "output_projection"), "_residual.norm"
    encoder, decoder = "encoder.layers.0.", "decoder.layers.0."
    expected = ["source.tokens.weight", "target.tokens.weight", "output.weight"]
    for sublayer in (f"{encoder}self_attention", f"{decoder}self_attention", f"{decoder}cross_attention"):
        expected += both(*(f"{sublayer}.{projection}" for projection in attention), sublayer + norm)
    for sublayer in (f"{encoder}feed_forward", f"{decoder}feed_forward"):
        expected += both(f"{sublayer}.expand", f"{sublayer}.contract", sublayer + norm)
    keys = list(make_model(encoder_layers=1, decoder_layers=1).state_dict())
    assert sorted(keys) == sorted(expected)
    more = set(make_model(encoder_layers=1, decoder_layers=1, norm="pre", positions="learned").state_dict()) - set(keys)
    assert more == {*both("encoder.norm", "decoder.norm"), "source.positions.table", "target.positions.table"}


@pytest.mark.parametrize("tie_embeddings", [False, True])
@pytest.mark.parametrize("tie_output", [False, True])
def test_matrices_are_shared_exactly_when_they_are_tied(tie_embeddings, tie_output):
    config = gf.ModelConfig.preset("tiny", vocab_size=11, tie_embeddings=tie_embeddings, tie_output=tie_output)
    model = gf.Transformer(config)
    assert (model.target.tokens.weight is model.source.tokens.weight) == tie_embeddings
    assert (model.output.weight is model.target.tokens.weight) == tie_output
    assert len({id(p) for p in model.parameters()}) == len([*model.parameters()])


def test_the_logits_use_the_tied_matrix(make_model):
    model = make_model(source_vocab_size=23, tie_embeddings=True)
    with gf.record(model, ["decoder.output", "logits"]) as trace:
        model(SOURCE, TARGET)
    assert_same(trace["logits"], trace["decoder.output"] @ model.source.tokens.weight.T)


def test_a_tied_matrix_starts_as_an_embedding_and_a_free_output_as_a_projection():
    # 64 000 numbers: their standard deviation is off by more than 3 % with probability < 1e-20.
    sizes = {"vocab_size": 1000, "d_model": 64, "encoder_layers": 1, "decoder_layers": 1}
    tied, free = (gf.Transformer(gf.ModelConfig(**sizes, tie_output=tie)).output.weight for tie in (True, False))
    assert abs(tied.std().item() * math.sqrt(64) - 1) < 0.03
    bound = math.sqrt(6 / (64 + 1000))
    assert 0.98 * bound < free.abs().max() <= bound


def test_torchs_generator_decides_the_initial_weights():
    models = []
    for number in (1, 1, 2):
        torch.manual_seed(number)
        models.append(gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11)).state_dict())
    assert all(torch.equal(models[0][name], models[1][name]) for name in models[0])
    assert not torch.equal(models[0]["output.weight"], models[2]["output.weight"])


def test_layers_start_with_different_weights():
    model = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11))
    for stack in (model.encoder, model.decoder):
        matrices = [[weight for weight in layer.parameters() if weight.dim() > 1] for layer in stack.layers]
        assert len(matrices) > 1
        for one, other in zip(matrices[0], matrices[1], strict=True):
            assert not torch.equal(one, other)


def test_norms_start_without_scale_and_shift_and_biases_at_zero():
    model = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11, norm="pre"))
    for name, parameter in model.named_parameters():
        if name.endswith("norm.weight"):
            assert (parameter == 1).all(), name
        elif name.endswith("bias"):
            assert not parameter.any(), name


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_every_parameter_learns(make_model, norm):
    model = make_model(norm=norm, positions="learned", activation="silu", max_length=7)
    model(SOURCE, TARGET).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


# Dropout


def test_nothing_is_dropped_in_evaluation(make_model):
    model = make_model(dropout=0.5, attention_dropout=0.5, activation_dropout=0.5)
    without = make_model(dropout=0.0)
    without.load_state_dict(model.state_dict())
    assert torch.equal(model(SOURCE, TARGET), without(SOURCE, TARGET))


@pytest.mark.parametrize("kind", ["dropout", "attention_dropout", "activation_dropout"])
def test_each_dropout_acts_in_training(make_model, kind):
    model = make_model(**{"dropout": 0.0, kind: 0.5}).train()
    assert not torch.equal(model(SOURCE, TARGET), model(SOURCE, TARGET))


def test_dropout_acts_only_on_the_input_and_on_each_sublayer(make_model):
    model = make_model(dropout=0.5).train()
    with gf.record(model) as trace:
        model(SOURCE, TARGET)
    for side in ("source", "target"):
        whole = trace[f"{side}.embedding"] + trace[f"{side}.positions"]
        assert_dropped(trace[f"{side}.input"], whole)
    for name in gf.points(model):
        if name.endswith(".added"):
            sublayer = name.removesuffix(".added")
            assert_dropped(trace[name] - trace[f"{sublayer}.input"], trace[f"{sublayer}.output"])
        if name.endswith(".weights"):
            assert_same(trace[name].sum(-1), torch.ones(trace[name].shape[:-1]))
        if name.endswith(".activated"):
            assert torch.equal(trace[name], trace[name.replace("activated", "hidden")].relu())


def assert_dropped(after: Tensor, before: Tensor) -> None:
    """Check that some numbers became 0 and all others were doubled (dropout of one half)."""
    zero = after.abs() < 1e-12
    assert zero.any()
    assert not zero.all()
    assert_same(after[~zero], 2 * before[~zero])


# Mistakes of callers


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("shape", [(3,), (0, 3), (3, 0), (2, 3, 4)])
def test_ids_that_are_not_a_batch_of_sequences_are_an_error(make_model, shape):
    model, ids = make_model(), torch.ones(shape, dtype=torch.long)
    with pytest.raises(gf.ShapeError, match=r"source: expected a non-empty shape \(batch, length\)"):
        model.encode(ids)
    with pytest.raises(gf.ShapeError, match="target_input: expected a non-empty shape"):
        model.decode(ids, torch.ones(1, 3, 11), torch.ones(1, 3, dtype=torch.long))


@pytest.mark.usefixtures("unchecked")
def test_memory_source_and_target_must_match(make_model):
    model = make_model()
    memory = model.encode(SOURCE)
    for target, source in ((TARGET, SOURCE[:, :4]), (TARGET, SOURCE[:2]), (TARGET[:2], SOURCE)):
        with pytest.raises(gf.ShapeError, match=r"expected \(B, T\), \(B, S, d_model\)"):
            model.decode(target, memory, source)


def test_ids_outside_a_vocabulary_are_an_error_on_either_side(make_model):
    model = make_model()
    with pytest.raises(gf.VocabularyError, match="19 entries, got ids from 22 to 22"):
        model.encode(torch.tensor([[22]]))
    assert model(SOURCE[:1], torch.tensor([[22]])).shape == (1, 1, 23)


def test_a_target_longer_than_a_learned_table_is_an_error(make_model):
    with pytest.raises(gf.ShapeError, match="7 positions, but the learned table ends at 6"):
        make_model(positions="learned", max_length=6)(SOURCE, TARGET)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_whole_model_works_in_other_precisions(make_model, dtype):
    model = make_model()
    exact = model(SOURCE, TARGET)
    rounded = model.to(dtype)(SOURCE, TARGET)
    assert rounded.dtype == dtype
    error = (rounded.double() - exact).abs().max() / exact.abs().max()
    assert error < 20 * torch.finfo(dtype).eps  # there are four layers, and each rounds a few times
