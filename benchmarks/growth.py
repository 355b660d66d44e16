"""Measure how time and memory grow with glassformer and Hugging Face: `python -m benchmarks.growth [AXIS ...]`.

    length      sentences of 32 … 1 024 tokens on both sides, 2 048 target tokens an update
    batch       512 … 8 192 target tokens an update
    vocabulary  8 000 … 64 000 entries
    width       d_model 128 … 1 024
    decoding    sources of 32 … 1 000 tokens, 8 at a time, greedy; an output has 50 tokens more than its source
    corpus      `glassformer prepare` and 20 updates on 10 000 … 1 000 000 generated pairs (only glassformer)

No data is needed: models and sentences are random. The peers take turns. For decoding, `<eos>` is made improbable, so
that every output reaches its maximum length.

Writes results/growth.json and .png. The earlier figures of axes that are not named stay in the file.
"""

import argparse
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.command import as_command
from benchmarks.doctor import generate
from benchmarks.peers.ours import RUN, model_config
from benchmarks.peers.task import EOS, TOKENIZER, Task, write_task, write_weights
from benchmarks.prepare import configuration, measured
from benchmarks.processes import Entry, take_turns
from benchmarks.results import (
    OURS,
    RESULTS,
    described,
    failures,
    figure,
    machine,
    number,
    read,
    save,
    spread,
    table,
    write,
)
from benchmarks.work import WORK, synthetic, write_examples
from glassformer.bundle import Bundle
from glassformer.model.transformer import Transformer
from glassformer.recipes.toml import from_dict
from glassformer.text.subwords import SentencePieceTokenizer

NAME = "growth"
TOKENS = 2048
"""Number of target tokens per update, except on the axis `batch`."""
SHORT = 32
"""Number of tokens per sentence, except on the axis `length`."""
LENGTHS, BATCHES, VOCABULARIES = (32, 64, 128, 256, 512, 1024), (512, 1024, 2048, 4096, 8192), (8, 16, 32, 64)
WIDTHS, SOURCES, PAIRS = (128, 256, 512, 1024), (32, 128, 512, 1000), (10_000, 100_000, 1_000_000)
HEAD = 64
"""Width of a head; the feed-forward network is four times as wide as the model."""
ROWS = 8
"""Batch size of decoding."""
UNITS = {
    "length": "tokens per sentence",
    "batch": "target tokens per batch",
    "vocabulary": "vocabulary entries",
    "width": "d_model",
    "decoding": "source tokens",
    "corpus": "pairs",
}
"""The quantity that grows on each axis."""
UPDATES = 20
"""Number of updates of each training run on a generated corpus."""
ABOUT = {
    "length": f"Training, {number(TOKENS)} target tokens per update.",
    "batch": f"Training, sentences of {SHORT} tokens.",
    "vocabulary": f"Training, {number(TOKENS)} target tokens per update, sentences of {SHORT} tokens.",
    "width": f"Training, {number(TOKENS)} target tokens per update, sentences of {SHORT} tokens.",
    "decoding": f"Greedy search, {ROWS} sentences at a time; an output has 50 tokens more than its source.",
    "corpus": f"`glassformer prepare` on a generated corpus, then {UPDATES} updates, without peers.",
}
"""A description of the measurement on each axis."""

Case = tuple[Task, int, int]
"""A task, the number of rows in a batch, and the number of tokens in each sentence."""


def cases() -> dict[str, dict[int, Case]]:
    """Return the cases of each axis, by their value on the axis."""
    task = Task()
    return {
        "length": {length: (task, TOKENS // length, length) for length in LENGTHS},
        "batch": {tokens: (task, tokens // SHORT, SHORT) for tokens in BATCHES},
        "vocabulary": {
            1000 * size: (replace(task, vocabulary=1000 * size), TOKENS // SHORT, SHORT) for size in VOCABULARIES
        },
        "width": {
            width: (replace(task, d_model=width, heads=width // HEAD, d_ff=4 * width), TOKENS // SHORT, SHORT)
            for width in WIDTHS
        },
    }


def trainers(axis: str) -> list[Entry]:
    """Return the entries of an axis; for `length`, Hugging Face's model without fused attention is also an entry."""
    theirs = {"smoothing": False}
    found = [Entry(peer="ours"), Entry(peer="hugging_face", keeping=True, options=theirs)]
    if axis == "length":
        found.append(Entry(peer="hugging_face", keeping=True, options={**theirs, "attention": "eager"}))
    return found


def train(folder: Path, case: Case, chosen: Sequence[Entry], updates: int) -> dict[str, Any]:
    """Return the figures of updates on random sentences of equal length."""
    task, rows, length = case
    task = replace(task, batch_tokens=rows * length, max_length=max(task.max_length, length))
    write_task(task, folder)
    write_examples(folder, task, *synthetic(rows, length, length, updates + 1, task.vocabulary))
    turns = take_turns(chosen, folder, [{"do": "update", "batch": place} for place in range(updates + 1)], warm=1)
    return {"tokens": rows * length, **asdict(turns)}


def decode(folder: Path, length: int, chosen: Sequence[Entry], rounds: int) -> dict[str, Any]:
    """Return the figures of translating random sources of about `length` tokens."""
    tokenizer = SentencePieceTokenizer("unigram", (folder / TOKENIZER).read_bytes())
    source, _ = synthetic(ROWS, length, 2, 1, len(tokenizer))
    # A text joined from random pieces, and tokenized again, has different pieces, and more of them.
    cut = [tokenizer.encode(tokenizer.decode(ids.tolist()))[: length - 1] for ids in source]
    texts = [tokenizer.decode(ids) for ids in cut]
    question = {"do": "translate", "texts": texts, "batch_size": ROWS, "beam_size": 1}
    turns = take_turns(chosen, folder, [{**question, "texts": texts[:1]}, *[question] * rounds], warm=1)
    for answer in (answer for answers in turns.answers.values() for answer in answers):
        answer.pop("texts")
    return {"tokens": ROWS * (length + 50), **asdict(turns)}


def make_decoding_work(folder: Path) -> None:
    """Write a random glassformer model that almost never chooses `<eos>`, and a tokenizer trained on generated text."""
    with tempfile.TemporaryDirectory() as name:
        files = generate(Path(name), 20_000)
        text = [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    tokenizer = SentencePieceTokenizer.train("unigram", text, Task().vocabulary)
    task = replace(Task(), vocabulary=len(tokenizer))
    sizes = {"d_model": task.d_model, "heads": task.heads, "d_ff": task.d_ff, "positions": "halves"}
    sizes |= {"encoder_layers": task.encoder_layers, "decoder_layers": task.decoder_layers}
    settings = from_dict({"data": {"source": "a.tsv"}, "tokenizer": {"kind": "unigram"}, "model": sizes})
    torch.manual_seed(task.seed)
    model = Transformer(model_config(task))
    with torch.no_grad():
        # <eos> gets logit 0, while the largest other logit is positive, so no output ends
        model.output.weight[EOS] = 0.0
    Bundle(
        folder=folder / RUN,
        configuration=settings,
        model_config=model.config,
        source_tokenizer=tokenizer,
        target_tokenizer=tokenizer,
    ).save(model)
    write_task(task, folder)
    write_weights({name: weight.detach().numpy() for name, weight in model.named_parameters()}, folder)
    tokenizer.save(folder / TOKENIZER)


def prepare(folder: Path, pairs: int) -> dict[str, Any]:
    """Return the time and memory of preparing a generated corpus and of a short training run on this corpus."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    generate(folder, pairs)
    configuration(folder)
    options = [str(folder / "unigram.toml"), "--data", str(folder), "--set", f"run.directory={folder / 'run'}"]
    options += ["--set", f"training.steps={UPDATES}", "--set", f"training.checkpoint_every={UPDATES}"]
    found = {"prepare": measured("prepare", *options), f"{UPDATES} updates": measured("train", *options)}
    shutil.rmtree(folder)
    return found


def rows_of(axis: str, found: Mapping[str, Any]) -> dict[str, dict[int, tuple[float, float]]]:
    """Return, for each entry and value on the axis, tokens per second (`corpus`: seconds) and peak memory in bytes."""
    rows: dict[str, dict[int, tuple[float, float]]] = {}
    for value, one in found.items():
        if axis == "corpus":
            for name, took in one.items():
                rows.setdefault(name, {})[int(value)] = (took["seconds"], took["peak"])
            continue
        for name, answers in one["answers"].items():
            speed = spread([one["tokens"] / answer["seconds"] for answer in answers]).median
            rows.setdefault(name, {})[int(value)] = (speed, one["peaks"][name])
    return rows


def markdown(figures: dict[str, Any]) -> str:
    """Return the figures as Markdown, with a table for each axis."""
    parts = [
        "## Growth\n\nThis section shows how speed and memory of glassformer and of Hugging Face's Marian change as "
        "one size grows. Models and sentences are random; each cell has the median speed or time, and the peak "
        f"memory.\n\nThe last command was `{figures['command']}`, {figures['day']}. The other tables are from "
        "earlier runs."
    ]
    for axis, found in figures["axes"].items():
        rows = rows_of(axis, found)
        unit = "s" if axis == "corpus" else "tokens/s"
        lines = [[name, *(_cell(values.get(int(value)), unit) for value in found)] for name, values in rows.items()]
        failed = {
            f"{name} at {value}": why for value, one in found.items() for name, why in one.get("failed", {}).items()
        }
        text = f"### {axis.capitalize()}\n\n{ABOUT[axis]}{_verdict(rows)}\n\n"
        parts.append(f"{text}{table([UNITS[axis], *found], lines)}{failures(failed)}")
    return "\n\n".join([*parts, f"{described(figures['machine'])}.\n"])


def _verdict(rows: Mapping[str, dict[int, tuple[float, float]]]) -> str:
    """Return a space and a sentence on the ratios of glassformer to the best peer, or "" without a peer."""
    ours = next((values for name, values in rows.items() if name.startswith("ours")), {})
    theirs = [values for name, values in rows.items() if name.startswith("hugging_face")]
    sizes = [size for size in ours if any(size in values for values in theirs)]
    if not sizes:
        return ""
    best = {size: [values[size] for values in theirs if size in values] for size in sizes}
    speeds = [ours[size][0] / max(speed for speed, _ in best[size]) for size in sizes]
    peaks = [ours[size][1] / min(peak for _, peak in best[size]) for size in sizes]
    return (
        f" Compared with Hugging Face's best entry at each size, glassformer has {min(speeds):.2f} to "
        f"{max(speeds):.2f} times the speed and {min(peaks):.2f} to {max(peaks):.2f} times the peak memory."
    )


def _cell(value: tuple[float, float] | None, unit: str) -> str:
    return "" if value is None else f"{number(value[0])} {unit} · {value[1] / 1e9:.2f} GB"


def plot(figures: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Draw a chart of the memory for each axis."""
    axes = figures["axes"]
    made, charts = figure(4.0 * len(axes), 3.4, columns=len(axes))
    for chart, (axis, found) in zip(charts, axes.items(), strict=True):
        others = iter(("tab:orange", "tab:red", "tab:gray"))
        for name, values in rows_of(axis, found).items():
            colour = OURS if name.startswith("ours") else next(others)
            chart.plot(list(values), [peak / 1e9 for _, peak in values.values()], marker=".", color=colour, label=name)
        chart.set_xscale("log", base=2)
        chart.set_ylim(bottom=0)
        chart.set_xlabel(axis)
        chart.set_ylabel("peak memory, GB")
        chart.legend(frameon=False, fontsize="x-small")
    return save(made, NAME, folder)


def measure(axis: str, work: Path, updates: int) -> dict[str, Any]:
    """Return the figures of an axis, by value on the axis."""
    found: dict[str, Any] = {}
    if axis == "decoding":
        make_decoding_work(work / axis)
    values: Sequence[int] = {"decoding": SOURCES, "corpus": PAIRS}.get(axis) or tuple(cases()[axis])
    for value in values:
        print(f"{axis} {value}", flush=True)
        if axis == "corpus":
            found[str(value)] = prepare(work / axis, value)
        elif axis == "decoding":
            decoders = [Entry(peer="ours"), Entry(peer="hugging_face", keeping=True)]
            found[str(value)] = decode(work / axis, value, decoders, rounds=3)
        else:
            found[str(value)] = train(work / axis / str(value), cases()[axis][value], trainers(axis), updates)
    return found


def main() -> None:
    everything = [*cases(), "decoding", "corpus"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("axes", nargs="*", metavar="AXIS", help=f"one of {', '.join(everything)} [default: all]")
    parser.add_argument("--work", type=Path, default=WORK, help="folder for the shared work [default: %(default)s]")
    parser.add_argument("--updates", type=int, default=7)
    given = parser.parse_args()
    if unknown := set(given.axes) - set(everything):
        parser.error(f"{', '.join(unknown)}: expected some of {', '.join(everything)}")
    of = machine()
    kept = read(NAME).get("axes", {}) if given.axes else {}
    for axis in given.axes or everything:
        kept[axis] = measure(axis, given.work / NAME, given.updates)
        write(NAME, {"axes": kept}, of)  # written now, so that a later failure does not lose these figures
    plot(read(NAME))
    print(markdown(read(NAME)))


if __name__ == "__main__":
    as_command(main)
