from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from glassformer.corpus.tasks.draw import Draw, Table


@given(st.text(max_size=8), st.lists(st.integers(), min_size=1, max_size=9))
def test_the_same_seed_makes_the_same_choices(seed, options):
    first, again = Draw(seed), Draw(seed)
    assert [first.choose(options) for _ in range(5)] == [again.choose(options) for _ in range(5)]


def test_choices_are_the_same_in_every_version_of_python():
    draw = Draw("stable")
    assert [draw.choose("abcdefgh") for _ in range(8)] == list("bhdcehbg")


def test_tables_are_drawn_by_weight():
    draw = Draw("weights")
    counts = Counter(draw.pick(Table(("often", 3), ("never", 0), ("seldom", 1))) for _ in range(4_000))
    assert set(counts) == {"often", "seldom"}
    assert 2_850 < counts["often"] < 3_150  # mean 3000, standard deviation 27: a false alarm once in 10⁷ times


def test_chances_have_the_given_probability():
    draw = Draw("chances")
    assert 850 < sum(draw.chance(0.3) for _ in range(3_000)) < 950
    assert not any(draw.chance(0) for _ in range(100))


def test_the_record_is_reset_for_every_sentence():
    draw = Draw("record")
    draw.note("black", "cat")
    assert draw.combinations == [("black", "cat")]
    draw.forget()
    assert (draw.combinations, draw.nouns) == ([], [])
