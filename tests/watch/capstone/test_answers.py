"""The book's exercises whose answers are checked."""

import re

import pytest
import torch
from chapters import CHAPTERS

from glassformer.errors import ConfigError
from glassformer.watch.capstone import verdict
from glassformer.watch.capstone.answers import ANSWERS


def test_every_answer_belongs_to_one_cell_of_its_chapter():
    asked = []
    for chapter in CHAPTERS:
        for name in re.findall(r'print\(verdict\("([\w.]+)", answer\)\)', chapter.path.read_text(encoding="utf-8")):
            assert chapter.name == name.split(".")[0]
            asked.append(name)
    assert asked == list(ANSWERS)


@pytest.mark.parametrize(
    ("exercise", "right", "wrong"),
    [
        ("embeddings.1", 18_944_000, 37_000),
        ("positions.1", [0.4794, 0.8776], [0.8776, 0.4794]),
        ("attention.2", torch.full((3,), 1 / 3), [0, 0, 0]),
        ("masks.1", 14, 15),
        ("residual.1", (-0.57735, -0.57735, -0.57735, 1.73205), (-0.5, -0.5, -0.5, 1.5)),
        ("feed_forward.1", 8_393_728, 8_388_608 // 2),
        ("encoder.1", 3_152_384, 3_000_000),
        ("geometry.1", 0, 3.5),
        ("geometry.2", [67.5, 67.5], [112.5, 67.5]),
        ("decoder.1", 215_040, 92_160),
        ("output.2", 1.1618, 20.1),
        ("training.3", 1.25, "1.5"),
        ("grow_it.1", 3.4657, 32),
        ("decoding.5", [-2.5244, -2.4328], [-3.0, -3.5]),
        ("by_hand.1", 0.4473, 0.6326),
        ("by_hand_backward.1", -0.3735, -0.747),
        ("byte_pairs.1", 21, 25),
        ("why_attention.1", 511, 512),
        ("why_attention.2", 20, 10),
        ("what_came_after.1", [3, 3, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]),
        ("heads.2", lambda x, heads: torch.stack(x.chunk(heads, -1), 1), lambda x, heads: x.view(2, heads, 5, -1)),
        ("residual.3", lambda x: torch.nn.functional.rms_norm(x, x.shape[-1:], eps=1e-5), torch.nn.LayerNorm(8)),
        ("heads.1", 64, lambda: 64),
        ("training.1", 16_000, [16_000, 1]),
    ],
)
def test_right_and_wrong_answers_are_told_apart(exercise, right, wrong):
    assert verdict(exercise, right) == "right"
    assert verdict(exercise, wrong).startswith("not yet: ")


def test_no_answer_and_an_unknown_exercise_are_named():
    assert verdict("masks.1", None).startswith("no answer yet")
    assert verdict("heads.2", lambda: 1).startswith("not yet: TypeError")
    with pytest.raises(ConfigError, match=r"did you mean .masks\.1."):
        verdict("mask.1", 3)
