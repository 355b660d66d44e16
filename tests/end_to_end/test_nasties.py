r"""For any bytes, `translate` gives one output line per input line, in order.

A line ends at "\n"; text after the last "\n" is also a line. So an empty file has no line. A file with only a byte
order mark has no line either, because the mark does not belong to a line.
"""

import io
import json
import os
import random
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

import glassformer as gf
from glassformer.cli import main
from glassformer.recipes.toml import from_dict
from glassformer.translator import Translator
from models import new_bundle
from profiles import scaled

BOM = b"\xef\xbb\xbf"
SIZES = {"d_model": 16, "heads": 2, "d_ff": 24, "encoder_layers": 1, "decoder_layers": 1}
TEXT = ["the cat sees a dog", "a big house and the old man", "un chat voit le grand chien noir", "été où ça ñ ß א ب"]
WORDS = " ".join(TEXT).split()
TOKENIZERS = {
    "bytes": {"kind": "unigram", "vocab_size": 340, "byte_fallback": True},
    "words": {"kind": "words"},
    "characters": {"kind": "characters"},
}

NASTIES = {
    "nothing": b"",
    "only a byte order mark": BOM,
    "a byte order mark and a line end": BOM + b"\n",
    "a byte order mark before text": BOM + b"the cat\na dog\n",
    "a byte order mark inside": b"the cat\n" + BOM + b"a dog\n",
    "no line end at the end": b"the cat\na dog",
    "only a line end": b"\n",
    "blank lines at both ends": b"\n\n \nthe cat\n\t\n\n",
    "NUL": b"the\0cat\n\0\na dog\n",
    "CRLF": b"the cat\r\n\r\na dog\r\n",
    "CRLF without the last line end": b"the cat\r\na dog\r",
    "lone carriage returns": b"the cat\ra dog\nsees\r\r\n\r",
    "line separators of Unicode": "the\u2028cat\u2029sees\na\x85dog\n".encode(),
    "form feed and vertical tab": b"the\x0ccat\x0bsees\n\x0c\na\x1cdog\x1d\x1e\n",
    "overlong slash": b"the cat\n\xc0\xaf\n\xe0\x80\xaf a dog\nsees\n",
    "truncated character": b"the cat\nsees \xe2\x82\n\xf0\x9f\x98\na dog",
    "truncated character at the end": b"the cat\nsees \xf0\x9f",
    "surrogates": b"\xed\xa0\x80\nthe cat\n\xed\xa0\xbd\xed\xb8\x80\n",
    "beyond Unicode": b"\xf4\x90\x80\x80\nthe cat\n\xff\xfe\n",
    "UTF-16 without its mark": "the cat\na dog\n".encode("utf-16-le"),
    "Latin-1": "été\nthe cat\noù\n".encode("latin-1"),
    "right to left marks": "\u202eשלום\u200f the cat\u202c\n\u200f\n\u2066a dog\u2069\n".encode(),
    "zero width and combining": "a\u0301\u200d\u200b\n\u0301\nthe\ufeffcat\n".encode(),
    "spaces that are none": "\u00a0\n\u3000\u2003\nthe\u00a0cat\n".encode(),
    "unassigned and private": "\U0010ffff\ue000\ufffe\nthe cat\n".encode(),
    "special tokens as text": b"<pad> <bos> <eos> <unk>\n<eos>\n\xe2\x96\x81\xe2\x96\x81\nthe cat\n",
    "control characters": bytes(set(range(32)) - {10}) + b"\nthe cat\n\x1b[31mred\x1b[0m\x7f\n",
    "emoji": "👩‍👩‍👧‍👦 🏴󠁧󠁢󠁥󠁮󠁧󠁿\nthe cat\n".encode(),
}
EVERYWHERE = {"NUL", "line separators of Unicode", "spaces that are none", "special tokens as text"}
"""Inputs that each tokenizer gets in `make test`, from stdin and from a file."""
INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
"""Characters that a text may lose."""
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Result:
    """The output of the command."""

    lines: list[bytes]
    statuses: list[str]
    err: str


def lines_of(data: bytes) -> list[bytes]:
    """Return the lines of a file, by the definition above."""
    parts = data.removeprefix(BOM).split(b"\n")
    return parts if parts[-1] else parts[:-1]


def status_of(line: bytes, translator: Translator, longest: int = 1024) -> str:
    """Return why a line cannot be translated, or "ok"."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return "undecodable"
    if not INVISIBLE.sub("", text.replace("▁", " ")).strip():
        return "blank"
    return "too_long" if len(translator.bundle.source_tokenizer.encode(text)) >= longest else "ok"


def make_run(folder: Path, name: str) -> Path:
    """Write a run with random weights, whose outputs are noise, but always the same."""
    configuration = from_dict({"data": {"source": "a.tsv"}, "tokenizer": TOKENIZERS[name], "model": SIZES})
    bundle = new_bundle(folder / name, configuration, TEXT, TEXT)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        bundle.save(gf.Transformer(bundle.model_config))
    return bundle.folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return runs with each kind of tokenizer."""
    folder = tmp_path_factory.mktemp("runs")
    return {name: make_run(folder, name) for name in TOKENIZERS}


@pytest.fixture(scope="module")
def translators(runs: dict[str, Path]) -> dict[str, Translator]:
    """Return the runs' translators."""
    return {name: Translator.load(run) for name, run in runs.items()}


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]):
    """Return a function that calls `translate` in this process, with bytes on stdin or in a file."""

    def call(run: Path, data: bytes, *, file: bool) -> Result:
        status, place = tmp_path / "status.jsonl", tmp_path / "input.txt"
        place.write_bytes(data)
        capfdbinary.readouterr()
        arguments = ["translate", run, *([place] if file else []), "--beam-size", 1, "--status", status]
        with (Path(os.devnull) if file else place).open("rb") as stdin:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stdin, encoding="ascii"))
            with pytest.raises(SystemExit) as end:
                main([str(argument) for argument in arguments])
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        assert not end.value.code, err
        assert out.endswith(b"\n") or not out
        statuses = [json.loads(line) for line in status.read_text().splitlines()]
        assert [one["line"] for one in statuses] == list(range(1, len(statuses) + 1))
        return Result(out.split(b"\n")[:-1], [one["status"] for one in statuses], err.decode())

    return call


@cache
def alone(translator: Translator, line: bytes) -> bytes:
    """Return the translation of a line that is translated alone."""
    return translator.translate([line.decode()], beam_size=1)[0].text.encode()


def check(result: Result, data: bytes, translator: Translator) -> None:
    """Assert that each line has its own translation, in its place."""
    lines = lines_of(data)
    assert len(result.lines) == len(result.statuses) == len(lines)
    expected = [status_of(line, translator) for line in lines]
    assert ["ok" if status in ("max_length", "suspicious") else status for status in result.statuses] == expected
    for line, status, out in zip(lines, expected, result.lines, strict=True):
        assert out == (alone(translator, line) if status == "ok" else b"")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tokenizer", "file"),
    [
        pytest.param(name, *given, marks=() if given == ("bytes", False) or name in EVERYWHERE else pytest.mark.long)
        for name in NASTIES
        for given in (*((tokenizer, False) for tokenizer in TOKENIZERS), ("bytes", True))
    ],
)
def test_each_input_line_gives_one_output_line(command, runs, translators, name, tokenizer, file):
    """Lines are cut before any tokenizer sees them, so one tokenizer shows that a file is cut as stdin is."""
    data = NASTIES[name]
    check(command(runs[tokenizer], data, file=file), data, translators[tokenizer])


@pytest.mark.slow
@pytest.mark.parametrize("file", [False, True], ids=["stdin", "file"])
def test_nasty_lines_in_one_file_stay_in_order(command, runs, translators, file):
    parts = [part + b"\n" + random.Random(place).choice(WORDS).encode() for place, part in enumerate(NASTIES.values())]
    data = b"\n".join(parts)
    check(command(runs["bytes"], data, file=file), data, translators["bytes"])


BYTES = st.sampled_from(
    [b"\n", b"\r", b"\0", b" ", b"the cat", b"\xe2\x82", b"\xc2\x85", BOM, b"\xed\xa0\x80", b"\x0c"]
)
SOUP = st.lists(st.one_of(BYTES, st.binary(max_size=3)), max_size=12).map(b"".join)


@pytest.mark.slow
@scaled(40)
@given(data=SOUP, file=st.booleans())
@example(data=BOM + BOM + b"\r", file=True)
def test_any_bytes_give_one_output_line_per_input_line(command, runs, translators, data, file):
    check(command(runs["words"], data, file=file), data, translators["words"])


@pytest.mark.slow
@scaled(40)
@given(texts=st.lists(st.text(st.characters(), max_size=8), max_size=7), window=st.integers(1, 5))
def test_any_texts_give_one_translation_each(translators, texts, window):
    """The texts contain any characters, including line ends and halves of surrogate pairs, in windows of any size."""
    translator = translators["bytes"]
    together = list(translator.stream(texts, window=window, beam_size=1))
    assert [one.text for one in together] == [translator.translate([text], beam_size=1)[0].text for text in texts]
    assert not any("\n" in one.text for one in together)


def test_a_model_that_can_write_line_ends_does_not_shift_later_lines(translators):
    """A vocabulary with byte fallback can write any byte, including the line end, which this model always writes."""
    bundle = translators["bytes"].bundle
    model = bundle.model()
    tokens = bundle.target_tokenizer.tokens(range(len(bundle.target_tokenizer)))
    weights = dict(model.named_parameters())
    with torch.no_grad():
        weights["source.tokens.weight"].zero_()[tokens.index("<0x0A>")] = 1.0
        weights["decoder.layers.0.feed_forward_residual.norm.weight"].zero_()
        weights["decoder.layers.0.feed_forward_residual.norm.bias"].fill_(1.0)
    [found] = Translator(bundle, model).translate(["the cat"], beam_size=1)
    assert set(found.tokens) == {"<0x0A>", "<eos>"}
    assert found.text == " " * (len(found.tokens) - 1)


# Real processes, with large inputs

COMMAND = [sys.executable, "-m", "glassformer", "translate"]
MEASURED = """
import re, sys
from glassformer.cli import main
try:
    main(sys.argv[1:])
finally:
    print(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1], file=sys.stderr)
"""


def run_process(data: bytes, *arguments: object) -> tuple[bytes, str]:
    """Return stdout and stderr of a new process with this standard input."""
    done = subprocess.run([*COMMAND, *map(str, arguments)], input=data, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done.stdout, done.stderr.decode()


@pytest.mark.slow
def test_a_new_process_gives_the_same_from_stdin_and_from_a_file(command, runs, translators, tmp_path):
    data = b"\n".join(part + b"\nthe cat" for part in NASTIES.values())
    (tmp_path / "input").write_bytes(data)
    run = runs["characters"]
    # the first use converts the model and prints a message, unless an earlier test did so
    command(run, b"", file=False)
    out, err = run_process(data, run, "--beam-size", 1)
    assert run_process(b"", run, tmp_path / "input", "--beam-size", 1) == (out, err)
    for file in (False, True):
        assert command(run, b"", file=file) == Result([], [], "")
    statuses = [status_of(line, translators["characters"]) for line in lines_of(data)]
    check(Result(out.split(b"\n")[:-1], statuses, err), data, translators["characters"])
    empty = sum(status != "ok" for status in statuses)
    assert f"no translation of {empty} of {len(statuses)} lines" in err


@pytest.mark.slow
def test_a_terminal_with_a_different_encoding_gets_utf_8(runs, translators, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    line = "été où"
    alone = translators["characters"].translate([line], beam_size=1)[0].text
    assert run_process(f"{line}\n".encode(), runs["characters"], "--beam-size", 1)[0] == f"{alone}\n".encode()


@pytest.mark.long
def test_lines_of_a_megabyte_are_skipped_and_their_neighbours_translated(runs, translators, tmp_path):
    long = [
        b"a" * MEGABYTE,
        b"the cat " * (MEGABYTE // 8),
        b"\xff" * MEGABYTE,
        b" " * MEGABYTE,
        "é".encode() * MEGABYTE,
    ]
    data = b"\n".join(part for line in long for part in (line, b"the cat"))
    out, err = run_process(data, runs["bytes"], "--beam-size", 1)
    alone = translators["bytes"].translate(["the cat"], beam_size=1)[0].text.encode()
    assert out == b"\n".join(part for _ in long for part in (b"", alone)) + b"\n"
    assert "no translation of 5 of 10 lines: 5 too long" in err  # refused before they are read


measurable = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read where Linux says it")


def memory(run: Path, place: Path) -> tuple[bytes, int]:
    """Return the translation of a file, and the peak memory in MB."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, "translate", str(run), str(place), "--beam-size", "1"],
        capture_output=True,
        check=True,
    )
    return done.stdout, int(done.stderr.split()[-1]) // 1000


@measurable
@pytest.mark.long
@pytest.mark.parametrize(("line", "count"), [(b"", 1_000_003), (b"the cat", 200_003)], ids=["blank", "text"])
def test_a_million_lines_take_as_little_memory_as_ten_thousand(runs, tmp_path, line, count):
    taken = {}
    for lines in (10_007, count):
        (tmp_path / "input").write_bytes((line + b"\n") * lines)
        out, taken[lines] = memory(runs["words"], tmp_path / "input")
        assert out.count(b"\n") == lines
        assert len(set(out.split(b"\n")[:-1])) == 1
    assert taken[count] < taken[10_007] + 30


@measurable
@pytest.mark.long
def test_many_long_lines_are_not_all_held_in_memory(runs, tmp_path):
    taken = {}
    for lines in (10, 400):  # each line has a megabyte, so that holding all of them would take 400 MB
        with (tmp_path / "input").open("wb") as file:
            file.writelines(b"\xff" * 500_000 + b"\n" for _ in range(lines))
        out, taken[lines] = memory(runs["words"], tmp_path / "input")
        assert out == b"\n" * lines
    assert taken[400] < taken[10] + 60
