"""The book's solution with one small change for each classic mistake: the check names the mistake."""

import re
from pathlib import Path

import pytest
import torch

from glassformer.watch.capstone.attempts import ATTEMPTS
from glassformer.watch.capstone.exercises import EXERCISES
from glassformer.watch.capstone.reading import Mine, RejectedError
from glassformer.watch.inspection.mistakes import MISTAKES

SOLUTION = (Path(__file__).parents[3] / "book" / "capstone" / "mine.py").read_text(encoding="utf-8")
MASKED = "    scores = scores.masked_fill(~mask, -math.inf)\n"
SOFTMAX = "    weights = scores.softmax(-1)\n"
[ZEROED] = re.findall(r"    weights = weights\.masked_fill.*\n", SOLUTION)
UNBIASED = """class UnbiasedNorm(nn.LayerNorm):
    def forward(self, x):
        return self.weight * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + self.eps) + self.bias


# Step 5"""

CHANGES = {
    "norm_order": (
        (
            "x = self.self_attention_norm(x + self.self_attention(x, x, mask))",
            "y = self.self_attention_norm(x)\n        x = x + self.self_attention(y, y, mask)",
        ),
        (
            "return self.feed_forward_norm(x + self.feed_forward(x))",
            "return x + self.feed_forward(self.feed_forward_norm(x))",
        ),
    ),
    "residual_normed": (
        (
            "_norm(x + self.self_attention(x, x, mask))",
            "_norm(self.self_attention_norm(x) + self.self_attention(x, x, mask))",
        ),
        ("_norm(x + self.feed_forward(x))", "_norm(self.feed_forward_norm(x) + self.feed_forward(x))"),
    ),
    "no_scale": ((" / math.sqrt(query.shape[-1])", ""),),
    "scale_d_model": (("math.sqrt(query.shape[-1])", "math.sqrt(query.shape[1] * query.shape[-1])"),),
    "no_embedding_scale": ((" * math.sqrt(embedding.embedding_dim)", ""),),
    "doubled_exponent": (
        ("pair = torch.arange(0, d_model, 2)", "pair = 2 * torch.arange(d_model)"),
        ("angles.sin()", "angles[:, 0::2].sin()"),
        ("angles.cos()", "angles[:, 1::2].cos()"),
    ),
    "softmax_over_queries": (("scores.softmax(-1)", "scores.softmax(-2)"),),
    "mask_zero": (("~mask, -math.inf", "~mask, 0.0"), (ZEROED, "")),
    "mask_after_softmax": ((MASKED, ""),),
    "target_padding_mask": (
        ("target_mask(target_input), source_mask(source)", "target_mask(target_input), source_mask(target_input)"),
    ),
    "no_causal_mask": (("source_mask(target) & causal", "source_mask(target) & torch.ones_like(causal)"),),
    "decoder_keys": (("self.cross_attention(x, memory, memory_mask)", "self.cross_attention(x, x, memory_mask)"),),
    "double_softmax": (("logits.log_softmax(-1)", "logits.softmax(-1).log_softmax(-1)"),),
    "no_transpose": (
        (
            "view(batch, length, self.heads, d_model // self.heads).transpose(1, 2)",
            "reshape(batch, self.heads, length, d_model // self.heads)",
        ),
    ),
    "unbiased_norm": (("# Step 5", UNBIASED), ("nn.LayerNorm(d_model)", "UnbiasedNorm(d_model)")),
}


@pytest.fixture(autouse=True)
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def attempted(tmp_path, source):
    """Return the number of the first step that is wrong, and why; the training is left out."""
    mine = Mine(tmp_path / "mine.py", source)
    for number, (exercise, attempt) in enumerate(zip(EXERCISES[:-1], ATTEMPTS[:-1], strict=True), 1):
        torch.manual_seed(number)
        try:
            attempt(mine)
        except RejectedError as error:
            return exercise.title, error
    return None, None


def changed(*changes):
    source = SOLUTION
    for old, new in changes:
        assert old in source, f"the solution no longer holds {old!r}"
        source = source.replace(old, new)
    return source


def test_every_classic_mistake_has_a_change_of_the_solution():
    assert list(CHANGES) == list(MISTAKES)


def test_the_solution_agrees_with_the_reference(tmp_path):
    assert attempted(tmp_path, SOLUTION) == (None, None)
    assert len(SOLUTION.splitlines()) <= 170


@pytest.mark.parametrize("mistake", CHANGES)
def test_the_classic_mistake_is_named(tmp_path, mistake):
    step, error = attempted(tmp_path, changed(*CHANGES[mistake]))
    assert error is not None, "no step is wrong"
    assert [likely.split(". ")[0] for likely in error.likely] == [MISTAKES[mistake].title], error.message
    assert "the first tensor that differs is `" in error.message
    definition = changed(*CHANGES[mistake]).splitlines()[error.line - 1]
    assert re.match(rf"(def|class) ({step.replace(', ', '|')})\b", definition)


@pytest.mark.parametrize(
    ("old", "new", "likely"),
    [
        ("~mask", "mask", "the mask inverted: True means may attend"),
        (MASKED + SOFTMAX + ZEROED, SOFTMAX, "the mask not used"),
        ("-math.inf)\n" + SOFTMAX + ZEROED, "-1e9)\n" + SOFTMAX, "a row that is False everywhere"),
        (MASKED, "    scores = scores * mask\n    scores[scores == 0] = -math.inf\n", "scores of 0 hidden"),
        (MASKED, "    scores = torch.where(scores * mask != 0, scores, -math.inf)\n", "scores of 0 hidden"),
        ("(pair / d_model)", "(2 * pair / d_model)", "an i that already steps by two, doubled once more"),
        ("math.sqrt(query.shape[-1])", "query.shape[-1]", "scores divided by d_k instead of its root"),
        (
            "attention(query, key, value, mask)\n        return",
            "attention(query / self.heads**0.5, key, value, mask)\n        return",
            "√d_model instead of √d_k",
        ),
        ("torch.arange(length)[:, None]", "torch.arange(1, length + 1)[:, None]", "positions counted from 1"),
        (
            "return source_mask(target) & causal",
            "return causal.expand(len(target), 1, length, length)",
            "padding attended",
        ),
        ("right[target != 0]", "right", "padding counted in the mean"),
    ],
)
def test_further_mistakes_are_named(tmp_path, old, new, likely):
    _, error = attempted(tmp_path, changed((old, new)))
    assert [one.startswith(likely) for one in error.likely] == [True], error.message


RENORMED = "    weights = scores.softmax(-1) * mask\n    weights = weights / (weights.sum(-1, keepdim=True) + 1e-9)\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("-math.inf", "-10.0"),
        ("-math.inf", "-100.0"),
        (MASKED, "    scores = scores + ~mask * -100.0\n"),
        (MASKED, "    scores = scores * mask\n"),
        (MASKED, "    scores = torch.where(scores * mask > 0, scores, -math.inf)\n"),
        (MASKED, MASKED + "    scores = scores.clamp(-20, 20)\n"),
        (MASKED + SOFTMAX + ZEROED, RENORMED),
    ],
)
def test_keys_that_are_hidden_only_from_small_scores_are_wrong(tmp_path, old, new):
    step, error = attempted(tmp_path, changed((old, new)))
    assert step == "attention"
    assert "the first tensor that differs is `weights`" in error.message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("-math.inf", "-1e9"),
        ("-math.inf", "torch.finfo(scores.dtype).min"),
        (MASKED, "    scores = scores + ~mask * -1e9\n"),
        (
            MASKED + SOFTMAX + ZEROED,
            "    weights = scores.softmax(-1) * mask\n"
            "    weights = (weights / weights.sum(-1, keepdim=True)).nan_to_num()\n",
        ),
    ],
)
def test_other_ways_to_hide_keys_are_right(tmp_path, old, new):
    assert attempted(tmp_path, changed((old, new))) == (None, None)


def test_a_row_that_is_false_everywhere_must_not_become_nan(tmp_path):
    step, error = attempted(tmp_path, changed((ZEROED, "")))
    assert step == "attention"
    assert re.search(r"`weights`: expected 0\.0000 at .*, got NaN", error.message)
    [likely] = error.likely
    assert likely.startswith("a row that is False everywhere: the softmax of −∞ only is NaN")


def test_nan_in_other_rows_is_not_blamed_on_a_row_that_is_false_everywhere(tmp_path):
    _, error = attempted(tmp_path, changed((ZEROED, ZEROED + "    weights[0, 0, 0] = math.nan\n")))
    assert "got NaN" in error.message
    assert error.likely == ()
