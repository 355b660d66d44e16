"""The signals of suspicious outputs."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.evaluation.signals import SIGNALS, ModelOutput, Usual, longest_repetition, numbers_of, signals

USUAL = Usual(intercept=0.0, slope=1.0, spread=0.1, scripts=frozenset({"LATIN"}))


def output(source: str, target: str, log_probs: Sequence[float] = ()) -> ModelOutput:
    ids = (*map(hash, source.split()), 2)
    return ModelOutput(
        source=source,
        target=target,
        source_ids=ids,
        tokens=(*target.split(), "<eos>"),
        token_log_probs=log_probs,
        log_prob=math.fsum(log_probs) if log_probs else math.nan,
    )


def by_definition(tokens: Sequence[int]) -> int:
    """Try every phrase length at every position, and count the tokens that repeat the token one phrase before."""
    best = 0
    for period in range(1, len(tokens)):
        for start in range(len(tokens) - period):
            length = 0
            while start + period + length < len(tokens) and tokens[start + length] == tokens[start + period + length]:
                length += 1
            best = max(best, length if length >= period else 0)
    return best


@given(tokens=st.lists(st.integers(0, 3), max_size=14))
def test_the_longest_repetition_is_that_of_the_definition(tokens: list[int]) -> None:
    assert longest_repetition(tokens) == by_definition(tokens)


@pytest.mark.parametrize(
    ("text", "expected"), [("a b c", 0), ("very very good", 1), ("a b c a b c a b c d", 6), ("a b a", 0), ("", 0)]
)
def test_repetitions_of_phrases(text: str, expected: int) -> None:
    assert longest_repetition(text.split()) == expected


@given(phrase=st.lists(st.sampled_from("abcd"), min_size=1, max_size=5), times=st.integers(3, 10))
def test_a_phrase_that_stands_several_times_is_found(phrase: list[str], times: int) -> None:
    assert longest_repetition([*"xy", *phrase * times, *"z"]) >= len(phrase) * (times - 1)


@pytest.mark.parametrize(
    ("name", "source", "good", "bad"),
    [
        ("loop", "the cat sees", "le chat voit", "le chat le chat le chat"),
        ("copy", "the black cat", "le chat noir", "The black cat"),
        ("numbers", "12 cats and 1,000 dogs", "12 chats et 1.000 chiens", "13"),
        ("script", "the cat", "le chat", "кошка"),
        ("long", "a b c", "d e f", "d e f g h i"),
        ("short", "a b c", "d e f", "d"),
    ],
)
def test_a_bad_output_has_a_larger_signal(name: str, source: str, good: str, bad: str) -> None:
    assert signals(output(source, bad), USUAL)[name] > signals(output(source, good), USUAL)[name]
    assert signals(output(source, good), USUAL)[name] <= 1e-9


def test_a_repetition_of_the_source_is_no_loop() -> None:
    assert signals(output("no no no", "non non non"), USUAL)["loop"] == 0


def test_what_must_be_copied_is_no_copy() -> None:
    text = "see https://example.org/a or 10 000"
    assert signals(output(text, "voir https://example.org/a ou 10 000"), USUAL)["copy"] == 0
    assert signals(output("<eos> {x} 1234", "<eos> {x} 1234"), USUAL)["copy"] == 0
    assert signals(output(text, text), USUAL)["copy"] == 1


def test_numbers_are_compared_by_their_digits_in_any_script() -> None:
    assert numbers_of("1,000.5 and ٣٤ at 7:30") == numbers_of("10005 34 730")
    assert numbers_of("no digits") == {}


def test_signals_that_cannot_be_told_are_missing() -> None:
    assert signals(output("a", "b"), None).keys() == {"loop", "copy", "numbers", "unknown"}
    assert signals(output("a", "b", (-0.5, -1.5)), USUAL).keys() == SIGNALS.keys()
    found = signals(output("a", "b", (-0.5, -1.5)), USUAL)
    assert (found["improbable"], found["surprise"]) == (1.0, 1.5)


def test_the_usual_length_is_the_line_through_the_outputs() -> None:
    lengths = [(2, 3), (4, 6), (8, 12), (16, 24)]
    some = [ModelOutput(source="", target="é", source_ids=range(a), tokens=range(b)) for a, b in lengths]
    usual = Usual.of(some)
    assert usual.slope == pytest.approx(1)
    assert usual.intercept == pytest.approx(math.log(1.5))
    assert usual.scripts == {"LATIN"}


@given(source=st.text(), target=st.text())
def test_every_text_has_finite_signals(source: str, target: str) -> None:
    assert all(map(math.isfinite, signals(output(source, target), USUAL).values()))


def test_a_sum_of_log_probabilities_suffices_for_the_mean() -> None:
    found = signals(replace(output("a", "b c"), log_prob=-6.0), USUAL)
    assert found["improbable"] == 2.0
    assert "surprise" not in found
