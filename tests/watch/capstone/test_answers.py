"""The book's exercises whose answers are checked."""

import math
import re
from typing import NamedTuple

import pytest
import torch
from chapters import CHAPTERS

from glassformer.errors import ConfigError
from glassformer.watch.capstone import verdict
from glassformer.watch.capstone.answers import ANSWERS


def test_every_answer_belongs_to_one_cell_of_its_chapter():
    asked = []
    for chapter in CHAPTERS:
        for name in re.findall(r'print\(verdict\("([\w.]+)", answer\W', chapter.path.read_text(encoding="utf-8")):
            assert chapter.path.stem == name.split(".")[0]
            asked.append(name)
    assert sorted(asked) == sorted(ANSWERS)


class Line(NamedTuple):
    """An output of a search."""

    log_prob: float
    tokens: str
    text: str = ""


class Translator:
    """A translator whose larger beam finds a different output for each sentence with a comma."""

    def translate(self, texts: list[str], beam_size: int) -> list[Line]:
        return [Line(0, "", f"{beam_size}" if "," in text else text) for text in texts]


Q, K, V = torch.tensor([[1.0, 0]]), torch.tensor([[8.0, 0], [0, 0], [8, 0]]), torch.tensor([[1.0, 2], [4, 4], [9, 9]])
TABLES = torch.arange(16.0).view(2, 8)


def bleu(outputs, references):
    return sum(map(len, outputs)), [], len(references)


RIGHT_AND_WRONG = {
    "why_attention.1": (511, 512),
    "why_attention.2": (20, 10),
    "embeddings.1": (18_944_000, 37_000),
    "positions.1": ([0.4794, 0.8776], [0.8776, 0.4794]),
    "positions.2": (60_611, 62_832),
    "positions.4": ([44, 0.6453], [44, 0.02]),
    "positions.5": ([64, 13], [13, 64], lambda length, width: torch.ones(length, width)),
    "attention.1": ([0.5, 1.0], [0.05, 0.1], Q, K, V),
    "attention.2": (torch.full((3,), 1 / 3), [0, 0, 0]),
    "attention.4": ([0, 1, 0, 1 / 3, 1 / 3, 1 / 3], [0, 1, 0, 0, 1, 0], torch.tensor([[1.0, 2.0, 1.5]])),
    "heads.1": (64, lambda: 64),
    "heads.2": (lambda x, heads: torch.stack(x.chunk(heads, -1), 1), lambda x, heads: x.view(2, heads, 5, -1)),
    "masks.1": (14, 15),
    "residual.1": ((-0.57735, -0.57735, -0.57735, 1.73205), (-0.5, -0.5, -0.5, 1.5)),
    "residual.3": (lambda x: torch.nn.functional.rms_norm(x, x.shape[-1:], eps=1e-5), torch.nn.LayerNorm(8)),
    "feed_forward.1": (8_393_728, 8_388_608 // 2),
    "encoder.1": (3_152_384, 3_152_000),
    "geometry.1": (0, 3.5),
    "geometry.2": ([67.5, 67.5], [112.5, 67.5]),
    "decoder.1": (215_040, 92_160),
    "output.1": ([10.519, 37_000, 10.519], [10.519, 37_000, 9.5]),
    "output.2": (1.1618, 20.1),
    "output.3": (12.716, 10.519),
    "training.1": (16_000, [16_000, 1]),
    "training.3": (1.25, "1.5"),
    "grow_it.1": (3.4657, 32),
    "grow_it.2": (0.5, 0.25, {"one layer with both": (1, 2.0, 3), "norm": (1, 1.5, 3)}),
    "decoding.5": ([-2.5244, -2.4328], [-3.0, -3.5]),
    "by_hand.1": (53 / 2**0.5, 53, TABLES, TABLES),
    "by_hand_backward.1": (-8.0, -16.0, TABLES, 2 * TABLES + 1),
    "by_hand_backward.3": ([10, 1], [10, 10]),
    "byte_pairs.1": (5, 4, {"▁ab": 1, "▁ba": 2}, [("a", "b"), ("▁", "ab")]),
    "corpora.1": (1503, 1510, [str(n) for n in range(2000)], [str(n + (n >= 1500)) for n in range(2000)]),
    "corpora.3": (1.5, 2.5, bleu, str.split, ["a b c d", "a b c"], ["a", "b"]),
    "corpora.4": ([3, 7], [7, 3], bleu, lambda sources, references: 7, str.split, ["a b", "c"], ["a", "b"]),
    "corpora.5": (1, 2, [("a b", "a b c"), ("a b", "a b c d")]),
    "what_came_after.1": ([3, 3, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]),
    "alignment.1": (0.375, 0.25, [0b1, 0b110], 4),
    "alignment.2": (0.5, 0.25, [0, 2, 1], [0b1, 0b10]),
    "bank.3": (0.5, 1),
    "beam.2": (1.0, 0.6, Line(-20, "a" * 13), Line(-10, "a" * 4)),
    "beam.3": (2, 1, Translator(), ["a, b", "a b", "b, a"]),
    "hidden_key.3": ([0.13447, 7.053e-6], [0.1345, 0]),
    "importance.1": ([0.69, 4.61], [0.45, 0.891]),
    "importance.2": ([1, -1], [1, 1]),
    "norms.1": ([1.5e-5, 7.5e-4, 3e-3], [3e-3, 3e-3, 3e-3]),
    "norms.3": (2.09, 2.3),
    "one_head.1": (66_048, 65_536),
    "one_head.3": ([3136, 392], [3136, 3136]),
    "parts.1": (5.33, 16),
    "parts.2": ([0.09, 0.25, 0.0099], [0.1, 0.5, 0.99]),
    "pronoun.3": (0.5625, 3 / 16),
}
"""For each exercise: the right answer, a wrong answer, and the values that the chapter gives."""


def test_every_answer_is_tested():
    assert [*RIGHT_AND_WRONG] == [*ANSWERS]


@pytest.mark.parametrize("exercise", RIGHT_AND_WRONG)
def test_right_and_wrong_answers_are_told_apart(exercise):
    right, wrong, *given = RIGHT_AND_WRONG[exercise]
    assert verdict(exercise, right, *given) == "right"
    said = verdict(exercise, wrong, *given)
    assert said.startswith("not yet: ")
    assert said.endswith(ANSWERS[exercise].look) or "TypeError" in said


def test_another_formula_of_the_length_penalty_is_used_by_the_answers(monkeypatch):
    monkeypatch.setattr("glassformer.decoding.hypothesis.length_penalty", lambda length, alpha: length**alpha)
    assert verdict("decoding.5", [-3.0 / 3**0.6, -3.5 / 6**0.6]) == "right"
    alpha = math.log(20 / 10) / math.log(13 / 4)
    assert verdict("beam.2", alpha, *RIGHT_AND_WRONG["beam.2"][2:]) == "right"


def test_a_verdict_says_how_much_of_a_list_is_right():
    assert verdict("parts.2", [0.09, 0.5, 0.0099]).startswith("not yet: 2 of 3 numbers are right; insert")
    assert verdict("parts.2", 0.09).startswith("not yet: expected 3 numbers, got 1; insert")


def test_no_answer_and_an_unknown_exercise_are_named():
    assert verdict("masks.1", None).startswith("no answer yet")
    assert verdict("heads.2", lambda: 1).startswith("not yet: TypeError")
    with pytest.raises(ConfigError, match=r"did you mean .masks\.1."):
        verdict("mask.1", 3)
