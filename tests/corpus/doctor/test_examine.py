import gzip
import inspect
import json
import random
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import word_by_word
from glassformer.corpus.cleaning import CleaningConfig
from glassformer.corpus.doctor import problems, suspicions
from glassformer.corpus.doctor.examination import Findings
from glassformer.corpus.doctor.examine import examine, examine_held_out
from glassformer.corpus.doctor.problem import PairProblem, Problem
from glassformer.corpus.doctor.problems import ALWAYS_LEFT_OUT, PROBLEMS
from glassformer.corpus.kept_pairs import kept_pairs
from glassformer.corpus.readers import Corpus
from glassformer.errors import DataError
from profiles import scaled
from reference import doctor as reference

LEFT_OUT = "{} % of the pairs are left out, repeated ones not counted: are these the right files?"
SKIP = CleaningConfig(on_invalid="skip")

# Difficult pieces of lines: invalid UTF-8, characters that look like line ends, invisible characters.
PIECES = [
    *(
        "a",
        "b",
        "ä",
        "a\u0308",
        "Ω",
        "\u2126",
        "й",
        "и\u0306",
        "語",
        "\uac00",
        "\u1100\u1161",
        "🙂",
        " ",
        "\t",
        "\u00a0",
    ),
    *("\0", "\x01", "\x1c", "\x1f", "\x7f", "\x80", "\x9f", "\v", "\f", "\r", "\x85", "\u2028", "\u2029"),
    *("\ufeff", "\u200f", "\u202e", "\u3000", "\u1680", "\u200b", "long " * 9),
]
INVALID = [b"\xff", b"\xc0\xaf", b"\xe0\x80\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc3", b"\xe2\x80", b"\x80"]
piece = st.sampled_from([text.encode() for text in PIECES] * 3 + INVALID)
line = st.lists(piece, max_size=4).map(b"".join)
pairs = st.lists(st.tuples(line, line) | st.sampled_from([(b"a", b"b"), (b"c", b"c"), (b"d", b"e")]), max_size=40)


def write(folder: Path, pairs: list[tuple[bytes, bytes]], end: bytes = b"\n", last: bytes | None = None) -> Corpus:
    """Write pairs to two files; `last` is the end of the last line."""
    for side, name in enumerate(["source", "target"]):
        ends = [end] * len(pairs)
        if ends and last is not None:
            ends[-1] = last
        (folder / name).write_bytes(b"".join(pair[side] + end for pair, end in zip(pairs, ends, strict=True)))
    return Corpus.of("source", "target", str(folder))


def findings_of(folder: Path, *sides: list[str], cleaning: CleaningConfig = SKIP) -> Findings:
    """Return the findings in these lines."""
    encoded = [[text.encode() for text in side] for side in sides]
    return examine(write(folder, list(zip(*encoded, strict=True))), cleaning).findings


def kept_of(corpus: Corpus, kept: np.ndarray) -> list[tuple[str, str]]:
    return list(kept_pairs(corpus, kept))


@pytest.mark.slow
@scaled(300)
@given(
    pairs=pairs,
    held_out=pairs,
    end=st.sampled_from([b"\n", b"\r\n"]),
    finished=st.booleans(),
    cleaning=st.builds(
        CleaningConfig,
        max_characters=st.sampled_from([0, 3, 4000]),
        max_ratio=st.sampled_from([0, 1.0, 2.5, 9.0]),
        duplicates=st.sampled_from(["drop", "keep"]),
        copies=st.sampled_from(["drop", "keep"]),
        control_characters=st.sampled_from(["drop", "keep"]),
        leakage=st.sampled_from(["warn", "drop"]),
        on_invalid=st.just("skip"),
    ),
)
def test_the_doctor_agrees_with_a_simple_implementation(
    tmp_path_factory: pytest.TempPathFactory, pairs, held_out, end, finished, cleaning
):
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "valid").mkdir()
    corpus = write(folder, pairs, end, None if finished else b"")
    other = write(folder / "valid", held_out)
    source, target = (reference.lines_of(folder / name) for name in ("source", "target"))
    if len(source) != len(target):
        with pytest.raises(DataError, match=f" has {len(source)} lines, .* has {len(target)}: expected equal numbers"):
            examine(corpus, cleaning)
        return
    read = list(zip(source, target, strict=True))
    others = zip(*(reference.lines_of(folder / "valid" / name) for name in ("source", "target")), strict=True)
    reasons = reference.examine(read, cleaning, others)
    examination = examine(corpus, cleaning, {"valid": other})
    findings = examination.findings
    expected = {
        problem.id: [number for number, found in enumerate(reasons, start=1) if found == problem.id]
        for problem in PROBLEMS
    }
    assert findings.pairs == len(read)
    assert {reason: finding.count for reason, finding in findings.dropped.items()} == {
        reason: len(numbers) for reason, numbers in expected.items() if numbers
    }
    assert {reason: [*finding.lines] for reason, finding in findings.dropped.items()} == {
        reason: numbers[:10] for reason, numbers in expected.items() if numbers
    }
    kept = [(s.decode(), t.decode()) for (s, t), reason in zip(read, reasons, strict=True) if reason is None]
    assert kept_of(corpus, examination.kept) == kept
    assert findings.kept == len(kept) == int(np.unpackbits(examination.kept).sum())
    separated = reference.pairs_with_separators(read)
    assert findings.details.get("line_separators", {"count": 0})["count"] == len(separated)


def test_one_problem_of_each_kind_is_found_with_its_line(tmp_path: Path):
    pairs = [(b"word %d" % number, b"mot %d" % number) for number in range(1, 101)]
    pairs[10] = (b" \xc2\xa0", b"mot")
    pairs[20] = (b"a\0b", b"mot")
    pairs[30] = (b"caf\xe9", b"cafe")
    pairs[40] = (b"a" * 4001, b"b" * 4000)
    pairs[50] = (b"a", b"b" * 50)
    pairs[60] = pairs[3]
    pairs[70] = (b"Berlin", b"Berlin")
    findings = examine(write(tmp_path, pairs), SKIP).findings
    assert {reason: finding.lines for reason, finding in findings.dropped.items()} == {
        "invalid_utf8": (31,),
        "blank": (11,),
        "control_characters": (21,),
        "too_long": (41,),
        "length_ratio": (51,),
        "duplicate": (61,),
    }
    assert (findings.pairs, findings.kept) == (100, 94)
    assert [text.split(":")[0] for text in findings.warnings] == ["copies"]
    assert findings.details["copies"] == {"count": 1, "lines": [71]}
    assert findings.dropped["invalid_utf8"].offsets == ((tmp_path / "source").read_bytes().index(0xE9),)
    assert findings.dropped["invalid_utf8"].places == (f"{tmp_path / 'source'}:31",)


def test_the_report_is_json(tmp_path: Path):
    findings = examine(write(tmp_path, [(b"a", b"b"), (b"\xff", b"c"), (b"", b"\xff")]), SKIP).findings
    assert json.loads(json.dumps(findings.to_dict())) == {
        "pairs": 3,
        "kept": 1,
        "dropped": {
            "invalid_utf8": {
                "count": 2,
                "lines": [2, 3],
                "places": [f"{tmp_path / 'source'}:2", f"{tmp_path / 'target'}:3"],
                "offsets": [2, 4],
                "files": [str(tmp_path / "source"), str(tmp_path / "target")],
            }
        },
        "warnings": [LEFT_OUT.format(67)],
    }


def test_invalid_utf_8_is_an_error_unless_it_is_skipped(tmp_path: Path):
    corpus = write(tmp_path, [(b"one", b"un"), ("zwölf".encode(), "dou\u0308".encode() + b"\xed\xa0\x80")])
    with pytest.raises(
        DataError, match=r"target, line 2: expected UTF-8, .* at byte 8 .*cleaning.on_invalid = \"skip\""
    ):
        examine(corpus, CleaningConfig())


@pytest.mark.parametrize("side", [0, 1])
def test_leakage_is_counted_and_dropped_on_demand(tmp_path: Path, side: int):
    pairs = [(b"s%d" % number, b"t%d" % number) for number in range(50)]
    (tmp_path / "valid").mkdir()
    held_out = {"valid": write(tmp_path / "valid", [pairs[7], pairs[3], (b"s11", b"another"), (b"new", b"t13")])}
    corpus = write(tmp_path, [*pairs, pairs[3]])
    findings = examine(corpus, SKIP, held_out).findings
    assert findings.details["leakage"] == {
        "valid": {"pairs": 3, "lines": [4, 8, 51], "sources": 1, "source_lines": [12]}
    }
    assert findings.warnings[0].startswith(
        "leakage: 3 training pairs also in the valid files, such as line 4, 8, 51 (kept"
    )
    assert findings.dropped["duplicate"].lines == (51,)
    dropped = examine(corpus, CleaningConfig(leakage="drop"), held_out).findings.dropped
    assert {reason: finding.lines for reason, finding in dropped.items()} == {"leakage": (4, 8, 51)}


def test_problems_in_kept_pairs_are_warnings(tmp_path: Path):
    keep = CleaningConfig(duplicates="keep", control_characters="keep")
    findings = findings_of(tmp_path, ["a", "b\x01", "a", "a"], ["A", "B", "A", "A"], cleaning=keep)
    assert (findings.kept, findings.dropped) == (4, {})
    assert [text.split(":")[0] for text in findings.warnings] == [
        "control characters are in 1 pair, such as line 2 (kept",
        "duplicates",
    ]
    assert findings.details["duplicates"] == {"count": 2, "lines": [3, 4]}


def test_byte_order_marks_are_found_at_the_beginning_of_files(tmp_path: Path):
    findings = findings_of(tmp_path, ["\ufeffa", "b", "\ufeffc"], ["A", "B", "C"])
    assert findings.kept == 3
    assert findings.warnings == (f"BOM (byte order mark) at the beginning of {tmp_path / 'source'}: skipped",)
    assert findings.details["byte_order_marks"] == {"files": [str(tmp_path / "source")]}


def test_what_the_tokenizers_normalise_is_no_problem(tmp_path: Path):
    findings = findings_of(tmp_path, ["e\u0301", "é", "b\u00adb"], ["É", "E\u0301", "B\u2060"])
    assert (findings.kept, findings.warnings) == (3, ())


def test_line_separators_of_other_programs_are_kept_and_counted(tmp_path: Path):
    findings = findings_of(tmp_path, ["a\u2028b", "c\fd\x85", "e", "f\rg"], ["A", "B", "C\v", "\u2029D"])
    assert (findings.pairs, findings.kept) == (4, 4)
    assert findings.details["line_separators"]["lines"] == [1, 2, 3, 4]
    names = ["CR", "U+000B", "U+000C", "U+0085", "U+2028", "U+2029"]
    assert findings.details["line_separators"]["characters"] == dict.fromkeys(names, 1)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9])
def test_each_pair_of_a_corpus_of_any_size_has_one_bit(tmp_path: Path, count: int):
    corpus = write(tmp_path, [(b"s%d" % number, b"t%d" % number) for number in range(count)])
    examination = examine(corpus, SKIP)
    assert (examination.findings.pairs, examination.findings.kept) == (count, count)
    assert np.unpackbits(examination.kept).tolist() == [1] * count + [0] * (-count % 8)
    assert bool(examination.findings.warnings) == (count == 0)


@pytest.mark.slow
def test_a_million_blank_lines_are_examined(tmp_path: Path):
    (tmp_path / "source").write_bytes(b"\n" * 1_000_000 + b"end")
    (tmp_path / "target").write_bytes(b"\r\n" * 1_000_000 + b"fin")
    corpus = Corpus.of("source", "target", str(tmp_path))
    examination = examine(corpus, SKIP)
    findings = examination.findings
    assert (findings.pairs, findings.kept) == (1_000_001, 1)
    assert findings.dropped["blank"].count == 1_000_000
    assert findings.dropped["blank"].lines == tuple(range(1, 11))
    assert kept_of(corpus, examination.kept) == [("end", "fin")]


def test_lines_of_a_megabyte_do_not_shift_later_lines(tmp_path: Path):
    long = "é".encode() * 500_000
    pairs = [(b"a%d" % number, b"b%d" % number) for number in range(9)]
    pairs[2], pairs[5], pairs[7] = (long, b"x"), (b"x", long), (long, long)
    corpus = write(tmp_path, pairs, last=b"")
    examination = examine(corpus, SKIP)
    assert examination.findings.dropped["too_long"].lines == (3, 6, 8)
    assert [source for source, _ in kept_of(corpus, examination.kept)] == ["a0", "a1", "a3", "a4", "a6", "a8"]


@pytest.mark.slow
def test_many_duplicates_on_disk_are_the_same_as_in_memory(tmp_path: Path, monkeypatch):
    chosen = random.Random(13)
    pairs = [(b"s%d" % (chosen.randrange(40_000)), b"t%d" % chosen.randrange(2)) for _ in range(60_000)]
    corpus = write(tmp_path, pairs)
    first = {pair: number for number, pair in reversed(list(enumerate(pairs)))}
    expected = sorted(first.values())
    for megabytes in (1, 256):
        monkeypatch.setattr("glassformer.corpus.doctor.examine.MEGABYTES", megabytes)
        examination = examine(corpus, CleaningConfig())
        assert np.flatnonzero(np.unpackbits(examination.kept)).tolist() == expected


def test_files_of_unequal_length_are_an_error_that_says_where_they_diverge(tmp_path: Path):
    chosen = random.Random(5)
    lengths = [chosen.randint(3, 90) for _ in range(3001)]
    source = [b"a" * length for length in lengths]
    target = [b"b" * (length + chosen.randint(0, 5)) for length in lengths]
    del target[1977]
    (tmp_path / "source").write_bytes(b"".join(line + b"\n" for line in source))
    (tmp_path / "target").write_bytes(b"".join(line + b"\n" for line in target))
    with pytest.raises(DataError, match=r"source has 3001 lines, .*target has 3000: expected equal numbers") as caught:
        examine(Corpus.of("source", "target", str(tmp_path)), CleaningConfig(duplicates="keep"))
    line = int(str(caught.value).split("run apart at line ")[1].split(":")[0])
    assert abs(line - 1978) <= 10
    assert "source fits line n − 1 of the target" in str(caught.value)


@pytest.mark.parametrize("kind", ["sentences", "numbers"])
def test_a_shift_is_a_warning_with_its_first_and_last_line(tmp_path: Path, kind: str):
    if kind == "sentences":
        corpus = word_by_word.pairs(3000, 3, 2, 12)
    else:
        corpus = [(f"sentence number {number} of a book", f"Satz {number}") for number in range(3000)]
    source, target = ([pair[side] for pair in corpus] for side in (0, 1))
    assert "shift" not in findings_of(tmp_path, source, target).details
    shifted = [*target[:999], *target[1000:2000], "une ligne de plus", *target[2000:]]
    findings = findings_of(tmp_path, source, shifted)
    assert findings.warnings[0].startswith("suspected shift of the alignment: from about line ")
    shift = findings.details["shift"]
    assert abs(shift["line"] - 1000) <= 20
    assert abs(shift["until"] - 1999) <= 20
    assert shift["by"] == -1


@pytest.mark.slow
def test_progress_counts_stored_bytes(tmp_path: Path):
    (tmp_path / "words.tsv.gz").write_bytes(gzip.compress(b"a\tb\n" * 100_000))
    seen: list[tuple[int, int]] = []
    examine(
        Corpus.of("words.tsv.gz", "", str(tmp_path)), SKIP, on_progress=lambda done, total: seen.append((done, total))
    )
    size = (tmp_path / "words.tsv.gz").stat().st_size
    assert seen[-1] == (size, size)


def test_lines_are_counted_with_headers_and_named_by_file(tmp_path: Path):
    (tmp_path / "1.tsv").write_text("en\tde\na\tb\n\tx\n")
    (tmp_path / "2.tsv").write_text("id\tde\ten\n1\td\tc\n2\t\te\n")
    corpus = Corpus.of("*.tsv", "", str(tmp_path), "en", "de")
    examination = examine(corpus, SKIP)
    blank = examination.findings.dropped["blank"]
    assert (blank.lines, blank.places) == ((3, 6), (f"{tmp_path}/1.tsv:3", f"{tmp_path}/2.tsv:3"))
    assert kept_of(corpus, examination.kept) == [("a", "b"), ("c", "d")]


class Shouting(PairProblem):
    """A problem for these tests: lines that end with "!"."""

    id, sentence = "shouting", "shouting: {} end with an exclamation mark"

    def find(self, pairs):
        source, target = ([line.endswith(b"!") for line in side] for side in pairs.lines)
        return np.array(source) | np.array(target)


class ShoutingByChoice(Shouting):
    """The problem `Shouting`, with a setting that decides its effect."""

    setting = "shouting"


def test_a_class_in_the_table_makes_a_new_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("glassformer.corpus.doctor.examine.PROBLEMS", (Shouting, *PROBLEMS))
    corpus = write(tmp_path, [(b"a", b"b"), (b"c!", b"d"), (b"", b"e!"), (b"f", b"g")])
    examination = examine(corpus, CleaningConfig())
    assert {reason: finding.lines for reason, finding in examination.findings.dropped.items()} == {"shouting": (2, 3)}
    assert kept_of(corpus, examination.kept) == [("a", "b"), ("f", "g")]
    assert kept_of(corpus, examine_held_out(corpus).kept) == [("a", "b"), ("c!", "d"), ("f", "g")]


@pytest.mark.parametrize("choice", ["drop", "keep"])
def test_a_setting_decides_about_a_new_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: str):
    @dataclass(frozen=True, kw_only=True)
    class Cleaning(CleaningConfig):
        shouting: str = "keep"

    monkeypatch.setattr("glassformer.corpus.doctor.examine.PROBLEMS", (ShoutingByChoice, *PROBLEMS))
    corpus = write(tmp_path, [(b"a", b"b"), (b"c!", b"d"), (b"", b"e!"), (b"f", b"g")])
    examination = examine(corpus, Cleaning(shouting=choice))
    findings = examination.findings.to_dict()
    if choice == "drop":
        assert {reason: found["lines"] for reason, found in findings["dropped"].items()} == {"shouting": [2, 3]}
        assert kept_of(corpus, examination.kept) == [("a", "b"), ("f", "g")]
        assert findings["warnings"] == [LEFT_OUT.format(50)]
    else:
        assert {reason: found["lines"] for reason, found in findings["dropped"].items()} == {"blank": [3]}
        assert findings["shouting"] == {"count": 2, "lines": [2, 3]}
        assert findings["warnings"] == [
            "shouting: 2 pairs end with an exclamation mark, such as line 2, 3 "
            '(kept: cleaning.shouting = "drop" leaves them out)',
            LEFT_OUT.format(25),
        ]


PAIRS = [(b"a\0", b"b"), (b"c", b"c"), (b"d" * 5000, b"e"), (b"a", b"b"), (b"a", b"b"), (b"\xc2\xa0", b"f")]


def test_only_blank_sides_leave_pairs_out_of_validation_and_test_files(tmp_path: Path):
    corpus = write(tmp_path, PAIRS)
    assert {reason: one.lines for reason, one in examine_held_out(corpus).findings.dropped.items()} == {"blank": (6,)}
    keep = CleaningConfig(max_characters=0, max_ratio=0, duplicates="keep", control_characters="keep")
    assert examine(corpus, keep).findings.dropped.keys() == {*ALWAYS_LEFT_OUT} == {"blank"}
    with pytest.raises(DataError, match="expected UTF-8"):
        examine_held_out(write(tmp_path, [(b"a", b"\xff")]))
    (tmp_path / "source").write_bytes(b"a\n")
    (tmp_path / "target").write_bytes(b"b\nc\n")
    with pytest.raises(DataError, match="expected equal numbers"):
        examine_held_out(corpus)


def test_every_problem_is_in_the_table_with_its_own_name_and_setting():
    defined = [*vars(problems).values(), *vars(suspicions).values()]
    written = {one for one in defined if inspect.isclass(one) and issubclass(one, Problem)}
    assert {one for one in written if hasattr(one, "id")} == {*PROBLEMS}
    assert len({kind.id for kind in PROBLEMS}) == len(PROBLEMS)
    settings = {field.name for field in fields(CleaningConfig)} - {"memory", "workers"}
    assert {kind.setting for kind in PROBLEMS} == settings | {""}
