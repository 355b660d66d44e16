"""`glassformer bulk`: each line is translated once, and the parts equal `translate`'s output, however they are made."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from benchmarks.bulk import contents, outputs, write_nasty
from pyarrow.parquet import write_table

import word_by_word
from glassformer.jobs import bulk as module

SMALL = ["--part-bytes", "1000", "--beam-size", "1"]


@pytest.fixture
def nasty(tmp_path) -> Path:
    """Return a file of 300 lines; an over-long first line fills the first parts."""
    path = tmp_path / "nasty.txt"
    write_nasty(path, 299, 5, list(word_by_word.WORDS))
    path.write_bytes(b"the cat " * 600 + b"\n" + path.read_bytes())
    return path


def made(result) -> tuple[int, int]:
    """Return the numbers of parts, and of parts translated by the command."""
    found = re.search(r"parts: ([\d,]+), translated now: ([\d,]+)", result.out)
    return int(found[1]), int(found[2])


def records(folder: Path) -> list[Path]:
    """Return the records of the complete parts, in order."""
    return sorted((folder / "parts").glob("*[0-9].json"))


@pytest.mark.slow
def test_the_parts_are_the_output_of_translate(glassformer, trained, nasty, tmp_path):
    status = tmp_path / "status.jsonl"
    whole = glassformer("translate", trained, nasty, "--beam-size", 1, "--status", status)
    result = glassformer("bulk", trained, nasty, "--output", tmp_path / "out", *SMALL)
    assert result.status == 0
    assert whole.err in result.err
    parts, now = made(result)
    assert parts == now == -(-nasty.stat().st_size // 1000) > 9
    assert outputs(tmp_path / "out") == whole.out.encode()
    statuses = [
        [json.loads(line) for line in path.read_text().splitlines()]
        for path in sorted((tmp_path / "out" / "parts").glob("*.status.jsonl"))
    ]
    assert all([entry["line"] for entry in part] == list(range(1, len(part) + 1)) for part in statuses)
    expected = [json.loads(line)["status"] for line in status.read_text().splitlines()]
    assert [entry["status"] for part in statuses for entry in part] == expected
    assert {"ok", "blank", "undecodable", "too_long"} <= set(expected)

    finished = glassformer("bulk", trained, nasty, "--output", tmp_path / "out", *SMALL, "--finish")
    assert f"parts: {parts}, lines: 300)" in finished.out
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    [file] = manifest["files"]
    assert (manifest["lines"], file["lines"], file["bytes"]) == (300, 300, nasty.stat().st_size)
    assert [part["first_line"] for part in file["parts"][:3]] == [1, 2, 2]
    assert file["parts"][-1]["first_line"] + file["parts"][-1]["lines"] == 301
    assert manifest["statuses"]["blank"] == expected.count("blank")


@pytest.mark.slow
def test_shares_are_the_parts_of_one_process_and_missing_parts_alone_are_made_again(
    glassformer, trained, nasty, tmp_path, monkeypatch
):
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    parts, _ = made(glassformer("bulk", trained, nasty, "--output", alone, *SMALL))
    shares = [glassformer("bulk", trained, nasty, "--output", shared, *SMALL, "--part", f"{n}/3") for n in (1, 2, 3)]
    assert sum(made(one)[1] for one in shares) == parts
    assert contents(alone) == contents(shared)
    removed = sorted((shared / "parts").glob("*.status.jsonl"))[2]
    removed.unlink()
    before = {path: path.stat().st_mtime_ns for path in (shared / "parts").iterdir()}
    assert made(glassformer("bulk", trained, nasty, "--output", shared, *SMALL)) == (parts, 1)
    assert contents(alone) == contents(shared)
    changed = [path.name for path, when in before.items() if path.stat().st_mtime_ns != when]
    assert len(changed) == 2  # the text and the record of one part
    # makes loading fail: a complete translation must not load anything
    monkeypatch.setattr(module.Translator, "load", None)
    assert made(glassformer("bulk", trained, nasty, "--output", shared, *SMALL)) == (parts, 0)


@pytest.mark.slow
def test_finish_finds_a_part_that_is_deleted_cut_or_altered(glassformer, trained, nasty, tmp_path):
    out = tmp_path / "out"

    def run(*options):
        return glassformer("bulk", trained, nasty, "--output", out, *SMALL, *options)

    run()
    whole = contents(out)
    endings = (".txt", ".status.jsonl", "[0-9].json")
    # a part that has lines
    text, status, record = (sorted((out / "parts").glob(f"*{ending}"))[7] for ending in endings)
    for path, content in [
        (text, None),
        (status, None),
        (record, None),
        (text, whole[text.name][:-1]),
        (text, whole[text.name] + b"one more\n"),
        (text, whole[text.name].replace(b"e", b"f", 1)),
        (status, whole[status.name].replace(b"ok", b"no", 1)),
        (record, whole[record.name][:40]),
        (record, whole[record.name].replace(b'"lines": ', b'"lines": 1')),
    ]:
        path.unlink() if content is None else path.write_bytes(content)
        refused = run("--finish")
        assert (refused.status, refused.err.splitlines()[-1].startswith("error: ")) == (1, True)
        assert ("1 missing" if content is None else "1 cut or altered") in refused.err
        assert text.name[:-4] in refused.err
        assert not (out / "manifest.json").exists()
        assert made(run())[1] == 1
        kept = {name: content for name, content in contents(out).items() if not name.endswith(".damaged")}
        assert kept == whole
    assert run("--finish").status == 0


@pytest.mark.slow
def test_finish_finds_parts_that_do_not_fit_the_files(glassformer, trained, nasty, tmp_path):
    out = tmp_path / "out"
    command = ["bulk", trained, nasty, "--output", out, *SMALL]
    assert "without --finish first" in glassformer(*command, "--finish").err
    glassformer(*command)
    (record,) = (out / "parts").glob("*-0000000002000-*[0-9].json")
    extra = record.with_name(record.name.replace("-0000000002000-", "-0000000001000-"))
    extra.write_bytes(record.read_bytes())
    assert "got also 000000-nasty.txt-0000000001000-0000000003000;" in glassformer(*command, "--finish").err
    extra.unlink()
    text = nasty.read_bytes()
    nasty.write_bytes(text.replace(b" ", b"\n", 1))  # of the same length
    refused = glassformer(*command, "--finish")
    assert "expected 301 translated lines, as many as the file has, got 300" in refused.err
    nasty.write_bytes(text)
    (out / "parts" / ".left.txt.0.tmp").touch()
    assert glassformer(*command, "--finish").status == 0
    assert not list((out / "parts").glob(".*"))


@pytest.mark.slow
def test_a_process_that_translates_with_ctranslate2_never_imports_torch(glassformer, trained, tmp_path):
    """Importing torch would take longer than translating a small part."""
    lines = tmp_path / "lines.txt"
    lines.write_text("the cat\na dog\n")
    expected = glassformer("translate", trained, lines).out
    command = ["bulk", str(trained), str(lines), "--output", str(tmp_path / "out")]
    script = (
        f"import sys\nfrom glassformer.cli import main\ntry: main({command})\n"
        "except SystemExit as end: assert not end.code\nprint(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert outputs(tmp_path / "out") == expected.encode()
    loaded = set(done.stderr.split())
    assert "ctranslate2" in loaded
    assert not loaded & {"torch", "numpy", "jaxtyping", "safetensors", "fsspec", "sacrebleu"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (["--beam-size", "2"], "beam_size = 1, not 2"),
        (["--part-bytes", "3000"], "part_bytes = 1000, not 3000"),
        (["--engine", "torch"], "engine = 'auto', not 'torch'"),
        (["--set", "decoding.length_penalty=1"], "length_penalty = 0.6, not 1.0"),
        (["more.txt"], "different files"),
    ],
)
def test_a_command_that_differs_is_refused(glassformer, trained, tmp_path, monkeypatch, changed, message):
    monkeypatch.chdir(tmp_path)
    Path("some.txt").write_text("the cat\n")
    Path("more.txt").write_text("a dog\n")
    command = ["bulk", trained, "some.txt", "--output", "out", *SMALL]
    assert glassformer(*command).status == 0
    refused = glassformer(*command, *changed)
    assert refused.status == 1
    assert f"error: out holds parts that were translated with {message}: choose another folder" in refused.err
    assert refused.err.count("\n") == 1
    Path("some.txt").write_text("the cat \n")
    assert "different files" in glassformer(*command).err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--part", "5/4"], "part: expected I/N with 1 ≤ I ≤ N, such as 1/4, got 5/4"),
        (["--part", "2"], "part: expected I/N with 1 ≤ I ≤ N, such as 1/4, got '2'"),
        (["--part", "1/2", "--finish"], "--finish checks all parts; leave out --part"),
        (["--ray", "--finish"], "--finish checks all parts; leave out --ray"),
        (["--ray", "auto", "--part", "1/2"], "--ray makes all parts; leave out --part"),
        (["--part-bytes", "0"], "part_bytes: expected a positive integer, got 0"),
        (["--column", "text"], "column: expected none for"),
        (["train.txt"], "train.txt is given 2 times"),
        (["none.txt"], "none.txt does not exist"),
        (["*.none"], "*.none matches no file"),
        (["--set", "decoding.temperature=2"], "no effect without --sample"),
    ],
)
def test_impossible_options_are_one_line_and_status_1(glassformer, trained, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text("the cat\n")
    result = glassformer("bulk", trained, "train.txt", "--output", "out", *options)
    assert (result.status, result.err.count("\n")) == (1, 1)
    assert message in result.err
    assert not Path("out").exists()


@pytest.mark.slow
def test_several_files_and_columns_are_translated(glassformer, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder, text in (("a", "the cat"), ("b", "a dog")):
        Path(folder).mkdir()
        Path(folder, "x.tsv").write_text(f"id\ttext\n1\t{text}\n2\t\n")
    Path("y.jsonl").write_text('{"text": "the big cat"}\n')
    Path("empty.tsv").touch()
    command = ["bulk", trained, "*/x.tsv", "y.jsonl", "empty.tsv", "--output", "out", "--column", "text"]
    assert glassformer(*command).status == 0
    lines = ["the cat", "", "a dog", "", "the big cat"]
    expected = glassformer("translate", trained, stdin="".join(f"{line}\n" for line in lines).encode()).out
    assert outputs(Path("out")) == expected.encode()
    assert glassformer(*command, "--finish").status == 0
    files = json.loads(Path("out/manifest.json").read_text())["files"]
    assert [(file["name"], file["lines"]) for file in files] == [
        ("a/x.tsv", 2),
        ("b/x.tsv", 2),
        ("y.jsonl", 1),
        ("empty.tsv", 0),
    ]


@pytest.mark.slow
def test_row_groups_are_translated_and_finish_counts_their_rows(glassformer, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = Path("x.parquet")

    def write(texts: list[str | None]) -> int:
        write_table(pa.table({"text": texts}), file, row_group_size=2, compression="none", write_statistics=False)
        return file.stat().st_size

    texts = ["the cat", None, "a dog", "the big\ncat", "the cat"]
    size = write(texts)
    command = ["bulk", trained, file, "--output", "out", "--column", "text", "--part-bytes", "1"]
    assert made(glassformer(*command)) == (3, 3)
    lines = "".join(f"{(text or '').replace(chr(10), chr(0x2028))}\n" for text in texts)
    assert outputs(Path("out")) == glassformer("translate", trained, stdin=lines.encode()).out.encode()
    assert glassformer(*command, "--finish").status == 0
    [entry] = json.loads(Path("out/manifest.json").read_text())["files"]
    assert (entry["lines"], [part["lines"] for part in entry["parts"]]) == (5, [2, 2, 1])
    assert write([*texts, texts[-1]]) == size
    assert "expected 6 translated lines, as many as the file has, got 5" in glassformer(*command, "--finish").err


@pytest.mark.slow
def test_a_damaged_file_does_not_keep_the_others_from_being_translated(glassformer, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.txt.gz").write_bytes(b"not compressed")
    Path("b.txt").write_text("the cat\n")
    result = glassformer("bulk", trained, "a.txt.gz", "b.txt", "--output", "out")
    assert result.status == 1
    assert "error: 1 of 2 parts failed, the other parts are complete; first error: cannot read a.txt.gz" in result.err
    assert len(list(Path("out/parts").iterdir())) == 3


@pytest.mark.long
def test_kills_lose_no_part_and_repeat_none(trained, glassformer, tmp_path):
    """20 000 nasty lines: three kills of one process, then four processes; the bytes equal `translate`'s."""
    lines = tmp_path / "nasty.txt"
    write_nasty(lines, 20_000, 3, list(word_by_word.WORDS))
    out = tmp_path / "out"
    command = [sys.executable, "-m", "glassformer", "bulk", str(trained), str(lines), "--output", str(out)]
    command += ["--part-bytes", "20000", "--beam-size", "1"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for kill in (1, 2, 3):
        process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        while len(records(out)) < 4 * kill:
            assert process.poll() is None
            time.sleep(0.005)
        process.kill()
        process.wait()
    whole = {path.stem for path in records(out)}
    complete = {path: path.stat().st_mtime_ns for path in out.glob("parts/[!.]*")}
    shares = f"seq 4 | xargs -P 4 -I@ {' '.join(command)} --part @/4"
    done = subprocess.run(["bash", "-ec", shares], env=environment, capture_output=True, text=True, check=True)
    counts = [tuple(map(int, found)) for found in re.findall(r"parts: (\d+), translated now: (\d+)", done.stdout)]
    parts = -(-lines.stat().st_size // 20000)
    assert sum(all_of for all_of, _ in counts) == parts
    assert sum(now for _, now in counts) == parts - len(whole)
    touched = {path.name for path, when in complete.items() if path.stat().st_mtime_ns != when}
    assert not {name for name in touched if name.partition(".status")[0].removesuffix(".txt") in whole}
    assert not list(out.glob("parts/.*"))
    assert outputs(out) == glassformer("translate", trained, lines, "--beam-size", 1).out.encode()
    assert glassformer(*command[3:], "--finish").status == 0


@pytest.mark.slow
def test_a_resumed_command_removes_only_what_its_own_killed_parts_left(glassformer, trained, nasty, tmp_path):
    command = ["bulk", trained, nasty, "--output", tmp_path / "out", *SMALL, "--part", "1/2"]
    assert glassformer(*command).status == 0
    first, other = records(tmp_path / "out")[0], nasty.name
    own = first.with_name(f".{first.stem}.txt.{'0' * 32}.tmp")
    foreign = first.with_name(f".000000-{other}-0000000001000-0000000002000.txt.{'0' * 32}.tmp")
    for path in (own, foreign):
        path.write_bytes(b"half a part")
        os.utime(path, (0, 0))
    new = own.with_name(f".{first.stem}.txt.{'1' * 32}.tmp")
    new.write_bytes(b"half a part")
    os.utime(new, (2**32, 2**32))  # another process is still writing
    assert glassformer(*command).status == 0
    assert (own.exists(), foreign.exists(), new.exists()) == (False, True, True)


@pytest.mark.long
def test_processes_that_start_together_convert_the_run_once(trained, tmp_path, nasty):
    """The first use converts a run for CTranslate2; a process that could not convert it would use another engine."""
    run = shutil.copytree(trained, tmp_path / "run", ignore=shutil.ignore_patterns("ctranslate2"))
    command = [sys.executable, "-m", "glassformer", "bulk", run, nasty, "--output", tmp_path / "out", *SMALL]
    processes = [
        subprocess.Popen([*map(str, command), "--part", f"{number}/4"], stderr=subprocess.PIPE, text=True)
        for number in (1, 2, 3, 4)
    ]
    said = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert {json.loads(path.read_text())["engine"] for path in records(tmp_path / "out")} == {"ctranslate2"}
    assert sum("converting" in one for one in said) == 1
    assert [path.name for path in (run / "ctranslate2").iterdir() if not path.name.startswith(".")] == ["float32"]


@pytest.mark.long
def test_ctrl_c_keeps_complete_parts(trained, tmp_path):
    lines, out = tmp_path / "nasty.txt", tmp_path / "out"
    write_nasty(lines, 20_000, 4, list(word_by_word.WORDS))
    command = [sys.executable, "-m", "glassformer", "bulk", trained, lines, "--output", out, "--part-bytes", "20000"]
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True, start_new_session=True)
    while len(records(out)) < 3:
        assert process.poll() is None
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "Stopped. Run the same command to resume from what is saved."
    assert "Traceback" not in said
    assert len(records(out)) >= 3


@pytest.mark.slow
def test_evaluate_scores_a_finished_folder_as_it_scores_a_run(glassformer, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs = [("the cat", "le chat"), ("", "rien"), ("a dog", "un chat"), *word_by_word.pairs(60, 5)]
    for name, lines in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
        Path(name).write_text("".join(f"{line}\n" for line in lines))
    command = ["bulk", trained, "source", "--output", "out", "--part-bytes", "300"]
    glassformer(*command)
    of_parts = ["evaluate", "out", "source", "target"]
    assert "out has no manifest.json: run `glassformer bulk` with --finish first" in glassformer(*of_parts).err
    glassformer(*command, "--finish")
    expected, found = glassformer("evaluate", trained, "source", "target"), glassformer(*of_parts)
    assert found.status == 0, found.err
    assert found.out == expected.out
    assert re.search(r"no translation of \d+ of 63 sources \(1 blank", found.err)  # others may be empty
    assert "SRC, and REF" in glassformer("evaluate", "out").err
    assert "--beam-size has no effect on finished translations" in glassformer(*of_parts, "--beam-size", 2).err
    Path("target").write_text("le chat\n" * 62)
    Path("source").write_text("the cat\n" * 62)
    assert "expected 62 lines as in the test set, got 63" in glassformer(*of_parts).err
    text = next(path for path in sorted(Path("out/parts").glob("*.txt")) if path.stat().st_size)
    text.write_bytes(text.read_bytes().upper())
    assert "expected the part that --finish has checked" in glassformer(*of_parts).err
