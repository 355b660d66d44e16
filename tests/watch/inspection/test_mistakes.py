"""Each classic mistake follows its definition, and ends with its context."""

import fnmatch
import math
from pathlib import Path

import pytest
import torch

import glassformer as gf
from glassformer.watch.inspection.check import LIKELY
from glassformer.watch.inspection.forced import first_difference
from glassformer.watch.inspection.mistakes import MISTAKES, pad_to_one_length, plant, replaced

each_mistake = pytest.mark.parametrize("mistake", MISTAKES)
each_norm = pytest.mark.parametrize("norm", ["post", "pre"])


def recorded(model, source, target, *mistakes):
    if any(MISTAKES[mistake].one_length for mistake in mistakes):
        source, target = pad_to_one_length(source, target, 0)
    with torch.no_grad(), plant(model, *mistakes), gf.record(model) as trace:
        model(source, target)
    return trace


def difference(model, source, target, mistake):
    lengths = pad_to_one_length(source, target, 0) if MISTAKES[mistake].one_length else (source, target)
    return first_difference(recorded(model, *lengths), recorded(model, source, target, mistake))


# The first points


@each_norm
@each_mistake
def test_the_table_predicts_the_first_point_that_differs(make_model, source, target, mistake, norm):
    model = make_model(norm=norm)
    assert difference(model, source, target, mistake) == MISTAKES[mistake].first(model.config) is not None


@each_mistake
@pytest.mark.parametrize("settings", [{"positions": "halves", "activation": "gelu"}, {"positions": "learned"}])
def test_the_table_predicts_the_first_point_for_other_positions(make_model, source, target, mistake, settings):
    model = make_model(**settings)
    assert difference(model, source, target, mistake) == MISTAKES[mistake].first(model.config)


@pytest.mark.parametrize(
    ("mistake", "settings"),
    [
        ("no_transpose", {"heads": 1}),
        ("no_scale", {"d_k": 1}),
        ("scale_d_model", {"d_k": 11}),
        ("doubled_exponent", {"positions": "none"}),
        ("doubled_exponent", {"d_model": 1}),
        ("no_embedding_scale", {"d_model": 1}),
    ],
)
def test_a_mistake_without_an_effect_has_no_first_point(make_model, source, target, mistake, settings):
    model = make_model(**settings)
    assert MISTAKES[mistake].first(model.config) is difference(model, source, target, mistake) is None


# The effects


@each_norm
def test_swapped_norms_equal_a_model_of_that_order_with_the_same_weights(make_model, source, target, norm):
    other = {"post": "pre", "pre": "post"}[norm]
    model, twin = make_model(norm=norm), make_model(norm=other)
    if other == "pre":
        for stack in (twin.encoder, twin.decoder):
            stack.norm.reset_parameters()
    twin.load_state_dict(model.state_dict(), strict=False)
    wrong, right = recorded(model, source, target, "norm_order"), recorded(twin, source, target)
    torch.testing.assert_close(wrong["logits"], right["logits"], rtol=0, atol=1e-10)


def test_no_scale_gives_the_plain_product(make_model, source, target):
    trace = recorded(make_model(), source, target, "no_scale")
    at = "encoder.layers.0.self_attention"
    torch.testing.assert_close(trace[f"{at}.scores"], trace[f"{at}.query"] @ trace[f"{at}.key"].mT)


def test_the_doubled_exponent_counts_dimensions(make_model, source, target):
    positions = recorded(make_model(), source, target, "doubled_exponent")["source.positions"]
    assert positions[3, 4].item() == pytest.approx(math.sin(3 / 10000 ** (2 * 4 / 11)), abs=1e-12)
    assert positions[3, 5].item() == pytest.approx(math.cos(3 / 10000 ** (2 * 5 / 11)), abs=1e-12)
    halves = recorded(make_model(positions="halves"), source, target, "doubled_exponent")["source.positions"]
    torch.testing.assert_close(halves, torch.cat([positions[:, 0::2], positions[:, 1::2]], dim=-1))


def test_a_masked_score_of_zero_still_has_a_weight(make_model, source, target):
    trace = recorded(make_model(), source, target, "mask_zero")
    weights = trace["decoder.layers.0.self_attention.weights"][0, 0, 0]
    own = trace["decoder.layers.0.self_attention.scores"][0, 0, 0, 0].exp()
    torch.testing.assert_close(weights, torch.stack([own, *3 * [torch.tensor(1.0)]]) / (own + 3))


def test_a_late_mask_leaves_rows_that_do_not_sum_to_one(make_model, source, target):
    trace = recorded(make_model(), source, target, "mask_after_softmax")
    scores = trace["decoder.layers.0.self_attention.scores"]
    torch.testing.assert_close(trace["decoder.layers.0.self_attention.weights"], scores.softmax(-1).tril())


def test_the_targets_padding_hides_the_end_of_the_source(make_model, source, target):
    trace = recorded(make_model(), source, target, "target_padding_mask")
    weights = trace["decoder.layers.0.cross_attention.weights"]
    assert weights.shape == (1, 3, 6, 6)
    assert bool((weights[..., :4] > 0).all())
    assert bool((weights[..., 4:] == 0).all())


def test_the_decoders_keys_are_projected_from_its_own_input(make_model, source, target):
    model = make_model()
    trace = recorded(model, source, target, "decoder_keys")
    cross = model.decoder.layers[0].cross_attention
    _, key, _ = cross.query_key_value(trace["decoder.layers.0.cross_attention.input"])
    assert torch.equal(trace["decoder.layers.0.cross_attention.key"], key)
    assert bool((trace["decoder.layers.0.cross_attention.weights"] > 0).all())


def test_heads_without_the_transpose_are_a_view(make_model, source, target):
    model = make_model()
    trace = recorded(model, source, target, "no_transpose")
    joined = model.encoder.layers[0].self_attention.input_projection(trace["source.input"])[..., :15]
    assert torch.equal(trace["encoder.layers.0.self_attention.query"], joined.reshape(1, 3, 6, 5))


def test_the_unbiased_norm_has_n_minus_one_and_eps_outside_the_root(make_model, source, target):
    model = make_model()
    trace = recorded(model, source, target, "unbiased_norm")
    x, norm = trace["encoder.layers.0.self_attention.added"], model.encoder.layers[0].self_attention_residual.norm
    expected = norm.weight * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5) + norm.bias
    torch.testing.assert_close(trace["encoder.layers.0.self_attention.normed"], expected)


def test_two_mistakes_in_one_step_combine(make_model, source, target):
    model = make_model()
    both = recorded(model, source, target, "scale_d_model", "no_scale")
    assert first_difference(both, recorded(model, source, target, "no_scale")) is None
    late = recorded(model, source, target, "mask_after_softmax", "mask_zero")["decoder.layers.0.self_attention.weights"]
    zero = recorded(model, source, target, "mask_zero")["decoder.layers.0.self_attention.weights"]
    assert torch.equal(late, zero.tril())


def test_all_mistakes_can_be_planted_together(make_model, source, target):
    assert recorded(make_model(), source, target, *MISTAKES)["log_probs"].isfinite().all()


# The end of a mistake


@each_norm
@each_mistake
@pytest.mark.usefixtures("unchecked")
def test_a_mistake_ends_with_its_context_even_after_an_error(make_model, source, target, mistake, norm):
    model = make_model(norm=norm)
    before, methods = recorded(model, source, target), [set(vars(part)) for part in model.modules()]
    with pytest.raises(gf.ShapeError), plant(model, mistake):
        model.encode(source[0])
    assert first_difference(before, recorded(model, source, target)) is None
    assert [set(vars(part)) for part in model.modules()] == methods


@each_norm
@each_mistake
def test_the_names_of_the_weights_stay_the_same(make_model, mistake, norm):
    model = make_model(norm=norm)
    names = list(model.state_dict())
    with plant(model, mistake):
        assert list(model.state_dict()) == names


@each_mistake
def test_every_point_fires_once_under_a_mistake(make_model, source, target, mistake):
    model = make_model()
    trace = recorded(model, source, target, mistake)
    assert {name: len(trace.history(name)) for name in trace} == dict.fromkeys(gf.points(model), 1)


@each_mistake
def test_steps_with_a_cache_run_under_every_mistake(make_model, source, target, mistake):
    model = make_model()
    with plant(model, mistake):
        logits, cache = model.advance(torch.tensor([1]), model.start(source))
        cache = cache.select(torch.tensor([0, 0]), torch.tensor([0]))
        logits, _ = model.advance(torch.tensor([4, 5]), cache)
    assert logits.shape == (2, 23)


def test_each_mistake_has_a_description():
    for mistake in MISTAKES.values():
        assert len({mistake.title, mistake.wrong, mistake.symptom} - {""}) == 3
        unseen = any("point" not in rule for rule in mistake.rules)
        assert bool(mistake.unseen) == unseen == ("unseen" in mistake.zh)


def test_the_points_in_the_table_exist(make_model):
    names = [name for norm in ("post", "pre") for name in gf.points(make_model(norm=norm))]
    for mistake in MISTAKES.values():
        assert all(fnmatch.filter(names, pattern) for pattern in mistake.at), mistake.id
        assert set(mistake.fails) <= set(LIKELY), mistake.id


def test_the_documentation_contains_the_table():
    page = (Path(__file__).parents[3] / "docs/explorer.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith(("| `", "|---")) and "first" not in line]
    table = [f"| `{one.id}` | {one.title} | {points(one.rules)} |" for one in MISTAKES.values()]
    assert "\n".join(table) in "\n".join(rows)


def points(rules):
    """Return the first points of a mistake, each with its settings."""
    told = []
    for rule in rules:
        settings = ", ".join(f"{key} = {value}" for key, value in rule.items() if key != "point")
        told += [f"`{rule['point']}`" + (f" ({settings})" if settings else "")] if "point" in rule else []
    return ", ".join(told)


def test_an_unknown_mistake_is_refused(make_model):
    with pytest.raises(gf.ConfigError, match="did you mean 'no_scale'"), plant(make_model(), "no_scales"):
        pass


def test_an_attribute_replaced_twice_is_restored(make_model):
    model = make_model()
    with replaced(model, "forward", len), replaced(model, "forward", max):
        assert model.forward is max
    assert "forward" not in vars(model)
