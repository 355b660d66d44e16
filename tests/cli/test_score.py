"""`glassformer score` of files with both sides, as a whole and in parts: the same scores."""

import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from benchmarks.bulk import contents, outputs
from pyarrow.parquet import write_table

import word_by_word

PAIRS = [
    ("the cat", "le chat"),
    ("", "le chat"),
    ("a dog", " "),
    ("the cat", "et et voit voit"),
    ("the dog", "le chien"),
]
PAIRS += word_by_word.pairs(40, 3)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Return the current folder, with pairs in every format."""
    monkeypatch.chdir(tmp_path)
    sources, targets = zip(*PAIRS, strict=True)
    Path("source").write_text("".join(f"{line}\n" for line in sources))
    Path("target").write_text("".join(f"{line}\n" for line in targets))
    Path("pairs.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in PAIRS))
    Path("named.tsv").write_text("id\ten\tfr\n" + "".join(f"0\t{one}\t{other}\n" for one, other in PAIRS))
    records = [{"translation": {"en": one, "fr": other}} for one, other in PAIRS]
    Path("pairs.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    write_table(pa.Table.from_pylist(records), "pairs.parquet", row_group_size=7)
    return tmp_path


@pytest.mark.slow
def test_files_of_both_sides_give_the_scores_of_two_files(glassformer, trained, folder):
    expected = glassformer("score", trained, "source", "target").out
    assert expected.count("\n") == len(PAIRS)
    nested = ["--columns", "translation.en,translation.fr"]
    for file in (
        ["pairs.tsv"],
        ["named.tsv", "--columns", "en,fr"],
        ["pairs.jsonl", *nested],
        ["pairs.parquet", *nested],
    ):
        assert glassformer("score", trained, *file).out == expected


@pytest.mark.slow
def test_parts_hold_the_scores_of_each_line_once(glassformer, trained, folder):
    expected = glassformer("score", trained, "source", "target").out
    nested = ["--columns", "translation.en,translation.fr"]
    for name, file in {"tsv": ["named.tsv", "--columns", "en,fr"], "parquet": ["pairs.parquet", *nested]}.items():
        command = ["score", trained, *file, "--output", name, "--part-bytes", "300"]
        first = glassformer(*command, "--part", "1/2")
        assert "no score of" in first.err
        assert "scored now:" in first.out
        assert "missing" in glassformer(*command, "--finish").err
        assert glassformer(*command).status == 0
        assert len(contents(Path(name))) >= 9
        assert outputs(Path(name)) == expected.encode()
        finished = glassformer(*command, "--finish")
        assert f"each line scored once (files: 1, parts: {len(contents(Path(name))) // 3}, lines: 45)" in finished.out
        assert json.loads(Path(name, "manifest.json").read_text())["statuses"] == {"ok": 43, "blank": 2}
    refused = glassformer("bulk", trained, "named.tsv", "--column", "en", "--output", "tsv", "--part-bytes", "300")
    assert "engine = 'torch', not 'auto'" in refused.err


@pytest.mark.slow
def test_the_worst_pairs_are_dropped_by_the_command_of_the_guide(glassformer, trained, folder):
    guide = Path(__file__).parents[2] / "docs" / "guide" / "bulk.md"
    [command] = [line for line in guide.read_text().splitlines() if line.startswith("paste pairs.tsv")]
    glassformer("score", trained, "pairs.tsv", "--output", "scores", "--part-bytes", "300")
    subprocess.run(["bash", "-ec", command], check=True)
    kept = [tuple(line.split("\t")) for line in Path("kept.tsv").read_text().splitlines()]
    lines = [line.split("\t") for line in glassformer("score", trained, "pairs.tsv").out.splitlines()]
    worth = [line != [""] and float(line[0]) / int(line[2]) > -2 for line in lines]
    assert kept == [pair for pair, good in zip(PAIRS, worth, strict=True) if good]
    assert 0 < len(kept) < len(PAIRS) - 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["source"], "expected SRC and TGT, or one file with sources and targets"),
        (["source", "--output", "out"], "got only 'source'; give TGT as well, or join them by `paste"),
        (["source", "target", "--output", "out"], "--output: expected one file with sources and targets"),
        (["source", "target", "--columns", "a,b"], "leave out TGT or --columns"),
        (["pairs.tsv", "--columns", "a"], "--columns: expected SOURCE,TARGET, such as en,fr, got 'a'"),
        (["pairs.tsv", "--output", "out", "--json"], "--output writes scores as text; leave out --json"),
        (["pairs.tsv", "--part", "1/2"], "--part has no effect without --output"),
        (["pairs.tsv", "--finish"], "--finish has no effect without --output"),
        (["pairs.tsv", "--output", "out", "--ray", "--part", "1/2"], "--ray makes all parts; leave out --part"),
    ],
)
def test_impossible_options_are_one_line(glassformer, trained, folder, options, message):
    result = glassformer("score", trained, *options)
    assert (result.status, result.err.count("\n")) == (1, 1)
    assert message in result.err
