"""State dicts of three tutorials give models that compute the same."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import glassformer as gf
from glassformer.errors import CheckpointError, ConfigError
from glassformer.interop.torch.state_dicts import import_state_dict
from interop.tutorials import PAD, Annotated, TorchTutorial, Trevett

# torch warns about this for nearly every nn.Transformer.
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")

IDS = {"pad_id": PAD, "bos_id": 2, "eos_id": 3}
SOURCE = torch.tensor([[2, 4, 9, 5, 12, 3], [2, 7, 3, PAD, PAD, PAD]])
TARGET = torch.tensor([[2, 7, 20, 5, 11], [2, 19, 3, PAD, PAD]])


@pytest.fixture
def make(seed, float64):
    """Return a function that makes a tutorial's model in which every parameter is random."""

    def made(kind, **choices):
        model = kind(17, 23, **choices).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
        return model

    return made


def assert_same(theirs, ours, tolerance):
    real = TARGET != PAD
    with torch.no_grad():
        torch.testing.assert_close(ours(SOURCE, TARGET)[real], theirs(SOURCE, TARGET)[real], rtol=0, atol=tolerance)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_a_module_with_nn_transformer_computes_the_same(make, norm_first, activation):
    theirs = make(TorchTutorial, norm_first=norm_first, activation=activation)
    ours = gf.import_module(theirs, **IDS)
    assert (ours.config.norm, ours.config.final_norm, ours.config.output_bias) == (
        "pre" if norm_first else "post",
        True,
        True,
    )
    assert (ours.config.heads, ours.config.activation, ours.config.positions) == (3, activation, "interleaved")
    assert_same(theirs, ours, 1e-12)


@pytest.mark.parametrize(
    ("activation", "name"),
    [(F.silu, "silu"), (nn.ReLU(inplace=True), "relu"), (lambda x: x * x.sigmoid(), "silu")],
    ids=["function", "module", "lambda"],
)
def test_an_activation_is_known_by_what_it_computes(make, activation, name):
    theirs = make(TorchTutorial, activation=activation)
    ours = gf.import_module(theirs, **IDS)
    assert ours.config.activation == name
    assert_same(theirs, ours, 1e-12)


def test_a_state_dict_of_nn_transformer_computes_the_same(make):
    theirs = make(TorchTutorial)
    state = {f"module._orig_mod.{name}": tensor for name, tensor in theirs.state_dict().items()}
    assert_same(theirs, import_state_dict(state, heads=3, **IDS), 1e-12)


def test_trevetts_model_computes_the_same(make):
    theirs = make(Trevett)
    ours = gf.import_module(theirs, heads=3, **IDS)
    assert (ours.config.positions, ours.config.max_length, ours.config.final_norm) == ("learned", 20, False)
    assert_same(theirs, ours, 1e-12)


def test_a_copy_of_trevetts_model_with_one_more_spelling_is_known(make):
    theirs = make(Trevett)
    state = {
        name.replace("self_attn_layer_norm", "self_attention_layer_norm"): tensor
        for name, tensor in theirs.state_dict().items()
    }
    assert_same(theirs, import_state_dict(state, heads=3, **IDS), 1e-12)


def test_the_annotated_transformer_computes_the_same_up_to_its_epsilon(make):
    theirs = make(Annotated)
    ours = gf.import_module(theirs, heads=3, **IDS)
    assert (ours.config.norm, ours.config.final_norm) == ("pre", True)
    # The divisors s + 1e-6 and √(s² + 1e-5) differ by about 1e-7 for deviations s of a few units. If the gain were not
    # folded in, the result would be off by 2 %.
    assert_same(theirs, ours, 1e-5)


def test_a_table_that_is_not_the_papers_is_kept(make):
    theirs = make(TorchTutorial)
    theirs.positional_encoding.pos_embedding.add_(0.1)
    ours = gf.import_module(theirs, **IDS)
    assert (ours.config.positions, ours.config.max_length) == ("learned", 50)
    assert_same(theirs, ours, 1e-12)


def test_a_table_of_float32_is_the_papers_or_kept_exactly_on_request(make):
    theirs = make(TorchTutorial)
    rounded = theirs.positional_encoding.pos_embedding.float().double()
    theirs.positional_encoding.pos_embedding.copy_(rounded)
    assert gf.import_module(theirs, **IDS).config.positions == "interleaved"
    assert_same(theirs, gf.import_module(theirs, positions="learned", **IDS), 1e-12)


def test_equal_matrices_are_shared(make):
    theirs = make(TorchTutorial)
    theirs.generator.weight = theirs.tgt_tok_emb.embedding.weight
    ours = gf.import_module(theirs, **IDS)
    assert ours.output.weight is ours.target.tokens.weight
    assert_same(theirs, ours, 1e-12)


def test_the_imported_model_has_weights_of_its_own(make):
    theirs = make(TorchTutorial)
    before = gf.import_module(theirs, **IDS)
    expected = before(SOURCE, TARGET)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.zero_()
    assert torch.equal(before(SOURCE, TARGET), expected)


def test_an_imported_model_passes_check(make):
    ours = gf.import_module(make(TorchTutorial), **IDS)
    assert gf.check(ours).passed


BROKEN = {
    "decoder.layers.0.positionwise_feedforward.fc_1.weight": (
        "the sequence-to-sequence Transformer of Ben Trevett's tutorial lacks 'decoder.layers.0.positionwise_"
    ),
    "encoder.layers.1.self_attention.fc_k.bias": "lacks 'encoder.layers.1.self_attention.fc_k.bias'",
}


@pytest.mark.parametrize(("name", "message"), BROKEN.items())
def test_a_missing_weight_is_named(make, name, message):
    state = make(Trevett).state_dict()
    del state[name]
    with pytest.raises(CheckpointError) as caught:
        import_state_dict(state, heads=3, **IDS)
    assert message in str(caught.value)


def test_a_missing_layer_is_named(make):
    state = make(Trevett).state_dict()
    kept = {name: tensor for name, tensor in state.items() if not name.startswith("decoder.layers.1.")}
    with pytest.raises(CheckpointError, match=r"expected layers decoder\.layers\.0, … without gaps, got \[0, 2\]"):
        import_state_dict(kept, heads=3, **IDS)


def test_an_unknown_weight_is_named(make):
    state = {**make(Trevett).state_dict(), "encoder.embed_norm.weight": torch.ones(24)}
    with pytest.raises(CheckpointError, match=r"does not have: 'encoder\.embed_norm\.weight' of shape \(24,\)"):
        import_state_dict(state, heads=3, **IDS)


def test_a_state_dict_of_another_model_is_refused():
    with pytest.raises(CheckpointError, match="belong to no known model; expected one of: torch"):
        import_state_dict(nn.LSTM(3, 4).state_dict(), heads=3, **IDS)


def test_what_no_weight_tells_is_asked_for(make):
    with pytest.raises(ConfigError, match="heads: expected the number of attention heads"):
        gf.import_module(make(Trevett), **IDS)
    state = make(TorchTutorial).state_dict()
    del state["positional_encoding.pos_embedding"]
    with pytest.raises(ConfigError, match=r"model\.positions: expected interleaved, halves or none"):
        import_state_dict(state, heads=3, **IDS)
    assert import_state_dict(state, heads=3, positions="none", **IDS).config.positions == "none"


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"layer_norm_eps": 1e-6}, "layer_norm_eps: expected 1e-05"),
        *(
            (
                {"activation": activation},
                rf"^activation: expected .* module that computes relu or gelu or silu, got {name}; such a model cannot",
            )
            for activation, name in (
                (F.mish, "mish"),
                (torch.tanh, "tanh"),
                (nn.Mish(), r"Mish\(\)"),
                (nn.ReLU6(), r"ReLU6\(\)"),
                (nn.GELU(approximate="tanh"), r"GELU\(approximate='tanh'\)"),
            )
        ),
        # The layers of the decoder lose the module when PyTorch copies them.
        (
            {"activation": nn.SiLU()},
            "activation: expected one .* all layers, got silu in the encoder and relu in the dec",
        ),
    ],
)
def test_a_module_that_computes_something_else_is_refused(make, choices, message):
    with pytest.raises(ConfigError, match=message):
        gf.import_module(make(TorchTutorial, **choices), **IDS)
