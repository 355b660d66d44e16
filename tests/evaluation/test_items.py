"""Test sets: lines with the same source are one item with several references, and lines stay in order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.corpus.readers import Corpus
from glassformer.errors import ConfigError, DataError
from glassformer.evaluation.items import Items, default_metrics, read_items
from glassformer.evaluation.metrics import METRICS

word = st.text("abc", min_size=1, max_size=2)
pairs = st.lists(st.tuples(word, word), min_size=1, max_size=17)


def test_lines_with_the_same_source_are_one_item_in_order_of_first_appearance():
    items = Items.of([("read", "R EH D"), ("a", "AH"), ("read", "R IY D"), ("a", "AH"), (" read ", "X")], group=True)
    assert items.sources == ("read", "a")
    assert items.references == (("R EH D", "R IY D", "X"), ("AH",))
    assert items.places == (0, 1, 0, 1, 0)
    assert str(items) == "5 lines, 2 different sources"


def test_sources_that_look_the_same_are_one_item():
    items = Items.of([("été", "x"), ("e\u0301te\u0301", "y"), ("\u00adété", "z")], group=True)
    assert (items.sources, items.references) == (("été",), (("x", "y", "z"),))


def test_each_line_is_an_item_without_grouping():
    items = Items.of([("a", "x"), ("a", "y")], group=False)
    assert (items.sources, items.references, items.places) == (("a", "a"), (("x",), ("y",)), (0, 1))
    assert str(items) == "2 lines"


def test_the_first_items_have_all_their_references():
    items = Items.of([("a", "x"), ("b", "y"), ("a", "z"), ("c", "w")], group=True).first(1)
    assert (items.sources, items.references, items.places) == (("a",), (("x", "z"),), (0, 0))
    assert str(items) == "2 lines, 1 different source"


@given(pairs)
def test_grouping_keeps_exactly_the_given_references(lines):
    items = Items.of(lines, group=True)
    assert len(set(items.sources)) == len(items.sources)
    assert {(s, r) for s, several in zip(items.sources, items.references, strict=True) for r in several} == set(lines)
    assert [items.sources[place] for place in items.places] == [source for source, _ in lines]


@given(pairs)
def test_the_error_of_grouped_words_equals_a_count_by_hand(lines):
    items = Items.of(lines, group=True)
    outputs = [references[0][::-1] for references in items.references]
    right = sum((source, output) in lines for source, output in zip(items.sources, outputs, strict=True))
    expected = 100 - 100 * right / len(items.sources)
    assert METRICS["word_error"](outputs, items.references).value == pytest.approx(expected)


@given(pairs, st.sets(st.integers(1, 30), max_size=5))
def test_outputs_are_assigned_to_lines_and_back_to_items(lines, numbers):
    blank = sorted(number for number in numbers if number <= len(lines) + len(numbers))
    blank = [number for place, number in enumerate(blank) if number <= len(lines) + place + 1]
    items = Items.of(lines, group=True, blank=blank)
    outputs = [source.upper() for source in items.sources]
    written = items.to_lines(outputs)
    assert len(written) == len(lines) + len(blank)
    assert [number for number, line in enumerate(written, start=1) if not line] == blank
    assert items.from_lines(written) == outputs


def test_too_few_outputs_are_an_error():
    with pytest.raises(DataError, match="expected 3 lines as in the test set, got 1"):
        Items.of([("a", "x"), ("a", "y")], group=True, blank=[2]).from_lines(["x"])


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return a function that writes files into the current folder."""
    monkeypatch.chdir(tmp_path)

    def write(**files):
        for name, text in files.items():
            (tmp_path / name.replace("_", ".")).write_text(text)

    return write


def test_one_file_is_grouped_and_its_blank_lines_are_counted(write):
    write(words_tsv="a\tx\n\nb\ty\na\tz\n\tz\n")
    items = read_items(Corpus.of("words.tsv"))
    assert (items.sources, items.references, items.blank) == (("a", "b"), (("x", "z"), ("y",)), (2, 5))
    assert str(items) == "3 lines, 2 different sources (2 with a blank side left out)"
    assert items.to_lines(["A", "B"]) == ["A", "", "B", "A", ""]
    assert read_items(Corpus.of("words.tsv"), group=False).sources == ("a", "b", "a")


def test_named_columns_and_json_fields_are_read(write):
    write(words_tsv="id\tphones\tword\n1\tx\ta\n2\tz\ta\n", words_jsonl='{"word": "a", "ipa": "x"}\n')
    assert read_items(Corpus.of("words.tsv", "", "", "word", "phones")).references == (("x", "z"),)
    assert read_items(Corpus.of("words.jsonl", "", "", "word", "ipa")).references == (("x",),)


def test_two_files_are_scored_line_by_line_by_default(write):
    write(src="a\nb\na\n", ref="x\n\nz\n")
    items = read_items(Corpus.of("src", "ref"))
    assert (items.sources, items.references) == (("a", "b", "a"), (("x",), ("",), ("z",)))
    assert read_items(Corpus.of("src", "ref"), group=True).references == (("x", "z"), ("",))


def test_further_files_add_references_for_lines_that_have_one(write):
    write(src="a\nb\n", ref="x\ny\n", second="w\n \n", short="w\n", both_tsv="a\tx\n")
    assert read_items(Corpus.of("src", "ref"), more=["second"]).references == (("x", "w"), ("y",))
    with pytest.raises(DataError, match="short: expected 2 lines as in the source, got 1"):
        read_items(Corpus.of("src", "ref"), more=["short"])
    with pytest.raises(ConfigError, match=r"both\.tsv already holds references"):
        read_items(Corpus.of("both.tsv"), more=["second"])


def test_a_file_that_cannot_be_read_is_named_with_its_line(write, tmp_path):
    write(src="a\nb\n", ref="x\n", blank_tsv="\n\t\n", empty_tsv="")
    (tmp_path / "broken").write_bytes(b"x\n\xff\n")
    for files, message in {
        ("src", "ref"): "src has 2 lines, ref has 1",
        ("src", "broken"): "broken, line 2: expected UTF-8",
        ("blank.tsv",): "got none among 2",
        ("empty.tsv",): "got an empty file",
    }.items():
        with pytest.raises(DataError, match=message):
            read_items(Corpus.of(*files))


@pytest.mark.parametrize(
    ("lines", "metrics"),
    [
        ([("aardema", "AA R D EH M AH"), ("a", "AH"), ("abates", "AH B EY T S")], ("word_error", "per")),
        ([("falla", "ф а л ь я"), ("aa", "а")], ("word_error", "per")),
        ([("آرنز", "arens"), ("آب", "abbe")], ("word_error", "cer")),
        ([("the cat", "le chat"), ("a dog sees", "un chien voit"), ("yes", "oui")], ("bleu", "chrf", "exact")),
        ([("猫は黒い", "the cat is black"), ("犬がいる", "there is a dog here")], ("bleu", "chrf", "exact")),
        ([("", "")], ("bleu", "chrf", "exact")),
    ],
    ids=["phones", "letters", "names", "sentences", "no spaces", "blank"],
)
def test_the_default_metrics_suit_the_items(lines, metrics):
    assert default_metrics(Items.of(lines, group=True)) == metrics
    assert set(metrics) <= set(METRICS)
