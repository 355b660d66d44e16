"""`glassformer translate --explain`: each line's confidence, attention and beam, for people."""

import json
import math
import re

import pytest

from glassformer.translator import Translator


@pytest.fixture
def explain(glassformer, trained, monkeypatch):
    """Return a function that explains lines in a terminal of this many columns."""

    def call(*options, stdin=b"the cat sees a dog\n", columns=80):
        monkeypatch.setenv("COLUMNS", str(columns))
        return glassformer("translate", trained, "--explain", *options, stdin=stdin)

    return call


def test_all_parts_are_shown_in_order(explain, glassformer, trained):
    shown = explain()
    translated = glassformer("translate", trained, stdin=b"the cat sees a dog\n").out.strip()
    assert shown.status == 0
    module = Translator.load(trained).engine.alignment.module
    parts = [
        "line 1",
        "source  the cat sees a dog <eos>",
        f"output  {translated}",
        "← least sure",
        "log p  ",
        "score  ",
    ]
    parts += [
        module,
        "the beam, of size 3",
        "→",
        "✓",
        "by score = log p / ((5 + tokens) / 6)^0.6",
    ]
    places = [shown.out.index(part) for part in parts]
    assert places == sorted(places)


def test_the_numbers_equal_those_of_the_translation(explain, glassformer, trained):
    shown = explain()
    score = float(re.search(r"^score +(\S+) =", shown.out, re.MULTILINE)[1])
    log_prob = float(re.search(r"^log p +(\S+):", shown.out, re.MULTILINE)[1])
    found = glassformer("translate", trained, "--n-best", 3, stdin=b"the cat sees a dog\n").out.splitlines()
    assert score == float(found[0].split("\t")[1])
    length = len(found[0].split("\t")[2].split()) + 1
    assert score == pytest.approx(log_prob / ((5 + length) / 6) ** 0.6, abs=1e-4)
    table = shown.out.partition("by score")[2].splitlines()[2:5]
    assert [float(line.split()[0]) for line in table] == [float(line.split("\t")[1]) for line in found]


def test_the_confidence_is_a_number_and_a_bar_and_the_lowest_is_marked(explain):
    rows = re.findall(r"^(\S+) +([01]\.\d{3}) +([▏▎▍▌▋▊▉█]*) +(.*)$", explain().out, re.MULTILINE)
    assert [row[0] for row in rows][-1] == "<eos>"
    shares = [float(share) for _, share, _, _ in rows]
    assert all(abs(len(bar) - 8 * share) < 1.1 for (_, _, bar, _), share in zip(rows, shares, strict=True))
    assert ["least sure" in looks for *_, looks in rows] == [share == min(shares) for share in shares]


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_lines_fit_the_width_of_the_terminal(explain, columns):
    shown = explain(
        stdin=b"the cat sees a dog and the big dog sees a cat and a big cat sees the dog\n", columns=columns
    )
    assert max(map(len, shown.out.splitlines())) <= columns
    assert "\x1b" not in shown.out  # output into a pipe has no colours


def test_lines_without_a_translation_say_why(explain, tmp_path):
    status = tmp_path / "status.jsonl"
    lines = b"\nthe cat\n\xff\n" + b"cat " * 50 + b"\n"
    shown = explain("--set", "decoding.max_source=20", "--status", status, stdin=lines)
    assert shown.status == 0
    for number, reason in ((1, "blank: there is nothing"), (3, "undecodable: its bytes"), (4, "too long: it has more")):
        assert f"line {number}  {reason}" in shown.out
    assert [json.loads(line)["status"] for line in status.read_text().splitlines()] == [
        *("blank", "ok", "undecodable", "too_long")
    ]
    assert "no translation of 3 of 4 lines" in shown.err


def test_the_options_of_the_search_apply(explain):
    shown = explain("--beam-size", 1, "--set", "decoding.length_penalty=0", "--prefix", "grand")
    assert "the beam, of size 1: the best 2 candidates" in shown.out
    assert "by score = log p / ((5 + tokens) / 6)^0" in shown.out
    assert re.search(r"^1 → +\S+ grand *$", shown.out, re.MULTILINE)
    log_prob, score = (re.search(rf"^{name} +(-\d+\.\d+)", shown.out, re.MULTILINE)[1] for name in ("log p", "score"))
    assert log_prob == score


def test_the_log_probabilities_along_the_output_add_up(explain):
    out = explain().out
    way = [float(number) for number in re.findall(r" → +(-\d+\.\d+) ", out)]
    shares = [float(share) for share in re.findall(r"^\S+ +([01]\.\d{3}) +[▏▎▍▌▋▊▉█]", out, re.MULTILINE)]
    sums = [sum(math.log(share) for share in shares[: length + 1]) for length in range(len(way))]
    assert way == pytest.approx(sums, abs=0.01)


def test_unknown_words_are_named_without_control_characters(explain):
    shown = explain(stdin=b"the zebra [/bold :cat :smile:x \x1b[31m a cat\n", columns=200)
    assert shown.status == 0
    assert "<unk> stands for what is not in the vocabulary: zebra, [, /bold, :cat, :smile:x" in shown.out
    assert "\x1b" not in shown.out


def test_repeated_words_are_numbered(explain):
    shown = explain(stdin=b"the cat sees the dog\n").out
    assert "source  the#1 cat sees the#2 dog <eos>" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sample"], "--explain shows a search, and --sample draws at random"),
        (["--n-best", 2], "leave out --n-best"),
        (["--beam-size", 0], "decoding.beam_size: expected"),
        (["--set", "decoding.seed=2"], "no effect without --sample"),
    ],
)
def test_contradicting_options_are_an_error_of_one_line(explain, options, message):
    result = explain(*options)
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith("error: ")
    assert message in result.err


BOTH = "`translate` lets the model read 'The cat slept.' and 'The dog ran.'"


@pytest.mark.parametrize(
    ("text", "said"),
    [("THE CAT SLEPT. The dog ran.", BOTH), ("12 %", "`translate` copies it"), ("The cat slept.", "")],
)
@pytest.mark.parametrize("command", ["trace", "explore", "explain"])
def test_what_translate_lets_the_model_read_is_said(glassformer, tmp_path, monkeypatch, command, text, said):
    monkeypatch.setenv("COLUMNS", "120")
    if command == "explain":
        shown = glassformer("translate", "demo", "--explain", stdin=f"{text}\n".encode()).out
    else:
        html = ["--html", tmp_path / "page.html", "--recorded"] if command == "explore" else []
        shown = glassformer(command, "demo", text, *html).err
    assert ("this is the line as it is; " + said in shown) if said else "as it is" not in shown
