"""Read damaged and hostile model folders: `python -m benchmarks.damage [--cases 2000] [--seed 1]`.

First, small runs and exports with every kind of tokenizer are written. Each case copies one of these folders, damages
one file, and reads the folder as the commands do: translate in PyTorch, translate with CTranslate2, resume, report. The
reader is a process with limited time and memory. It must give an answer or one error sentence (a GlassformerError).
Anything else is a fault: a different exception, a message of several lines, too much time or memory, or a crash.

Prints each fault and a table; the exit status is 1 if there is a fault.
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import glassformer as gf
from benchmarks.command import as_command
from benchmarks.results import table
from glassformer.bundle import Bundle, save_weights
from glassformer.errors import GlassformerError
from glassformer.interop.choice import EngineRequest, load_engine
from glassformer.interop.ctranslate2.saturation import saturates_int8
from glassformer.interop.ctranslate2.writer import converted, export_ctranslate2
from glassformer.jobs.averaging import average
from glassformer.jobs.log import read_log
from glassformer.jobs.prepared.manifest import Manifest
from glassformer.recipes.configuration import TrainingConfig
from glassformer.recipes.toml import from_dict, model_config
from glassformer.text.tokenizer import train_tokenizers
from glassformer.training.checkpoint import Checkpoints, TrainingState
from glassformer.training.optimiser import make_optimiser
from glassformer.translator import Translator
from glassformer.watch.report.history import History

CASES = 2000
SECONDS = 10
"""Limit of CPU seconds for reading a folder of a few kilobytes; the wall-clock limit is ten times as high."""
MEBIBYTES = 1024
"""Limit of memory (MiB) for reading a folder, in addition to the memory of a process with all imports."""
LONGEST = 600
"""Maximum number of characters in an error sentence."""
EXPECTED = ("answer", "sentence")

SOURCE = ["the black cat sleeps", "the dog sees a cat", "a dog sleeps", "the big dog sees the black cat"]
TARGET = ["le chat noir dort", "le chien voit un chat", "un chien dort", "le grand chien voit le chat noir"]
SIZES = {"d_model": 12, "heads": 3, "d_ff": 13, "encoder_layers": 1, "decoder_layers": 1}
VALUES: tuple[Any, ...] = (
    *(0, -1, 1, 7, 65_536, 100_000, 10**12, 2**63, 10**400, 0.5, -1e308, float("nan"), float("inf"), True, None),
    *("", "x", "\ud800", "a\nb", "../../etc/passwd", "/dev/zero", "\0", "x" * 5_000_000, [], [1], {}, {"a": []}),
)
"""Values that replace the value of a field."""
TYPES = ("I32", "I64", "U8", "BOOL", "F8_E4M3", "F8_E5M2", "F64", "F16", "BF16", "C64", "X", 3)
"""Values that replace the type of a weight."""

Damage = Callable[[Path, random.Random], None]


# The folders


def write_folders(place: Path) -> list[Path]:
    """Write a complete, converted run for each kind of tokenizer, and an export of each run.

    The exports are in int8; where sums of 8-bit products overflow, they are in float32.
    """
    folders = []
    for kind, joint in (("words", True), ("characters", False), ("bpe", False), ("unigram", True)):
        bundle = _write_run(place / kind, kind, joint)
        converted(bundle, "float32")
        export_ctranslate2(bundle, place / f"{kind}.export", "float32" if saturates_int8() else "int8")
        folders += [place / kind, place / f"{kind}.export"]
    return folders


def _write_run(folder: Path, kind: str, joint: bool) -> Bundle:
    configuration = from_dict(
        {
            "data": {"source": "a.tsv", "max_length": 17},
            "tokenizer": {"kind": kind, "joint": joint, "vocab_size": 45},
            "model": {**SIZES, "positions": "learned" if kind == "words" else "interleaved", "max_length": 64},
            "training": {"steps": 4},
        }
    )
    source, target = train_tokenizers(SOURCE, TARGET, configuration.tokenizer)
    bundle = Bundle(
        folder=folder,
        configuration=configuration,
        model_config=model_config(configuration, len(source), len(target)),
        source_tokenizer=source,
        target_tokenizer=target,
    )
    torch.manual_seed(1)
    model = gf.Transformer(bundle.model_config)
    bundle.save(model)
    optimiser = make_optimiser(model, configuration.training)
    checkpoints = Checkpoints(folder / "checkpoints", keep=2)
    for step in (1, 2):
        _update(model, optimiser)
        checkpoints.save(model, optimiser, TrainingState(step=step))
    checkpoints.close()
    save_weights(model, folder / "model.safetensors")
    lines: list[dict[str, Any]] = [
        {"type": "step", "step": 1, "epoch": 1, "loss": 3.5, "seconds": 1.0, "target_tokens": 9, "padding": 0.1},
        {"type": "validation", "step": 1, "loss": 3.4, "perplexity": 30.0, "metric": ["BLEU", 1.5, True], "best": True},
        {"type": "end", "step": 2, "reason": "steps", "seconds": 2.0},
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    Manifest(settings={"data.source": "a.tsv"}, pairs=4, valid_pairs=1).save(folder)
    return bundle


def _update(model: gf.Transformer, optimiser: torch.optim.Optimizer) -> None:
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 1e-3)
    optimiser.step()


# The damages


def damages(path: Path) -> list[tuple[str, Damage]]:
    """Return the kinds of damage that can be done to a file, by name."""
    found: list[tuple[str, Damage]] = [("special", _special), ("flipped", _flip), ("cut", _cut), ("flipped", _flip)]
    if path.suffix in (".json", ".jsonl"):
        found += [("nested", _nest_json), ("field", _field), ("field", _field), ("field", _field), ("entry", _entry)]
    if path.suffix == ".toml":
        found += [("nested", _nest_toml), *[("field", _setting)] * 6]
    if path.suffix == ".safetensors":
        found += [("header", _header)] * 4
    return found


def _flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    # Most damage is near the beginning of a file, because headers are there and matter most.
    reach = chance.choice([min(len(data), 64), min(len(data), 1024), len(data)])
    for _ in range(chance.choice([1, 1, 3, 20])):
        data[chance.randrange(reach)] = chance.randrange(256)
    path.write_bytes(data)


def _cut(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: chance.choice([0, 1, len(data) // 2, max(len(data) - 1, 0), chance.randrange(len(data))])])


def _special(path: Path, chance: random.Random) -> None:
    kind = chance.choice(["zero", "pipe", "folder", "loop", "nowhere", "missing", "sparse", "forbidden"])
    path.unlink()
    match kind:
        case "zero":
            path.symlink_to("/dev/zero")
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "loop":
            path.symlink_to(path.name)
        case "nowhere":
            path.symlink_to("/nowhere")
        case "sparse":
            with path.open("wb") as file:
                file.truncate(1 << 40)
        case "forbidden":
            path.write_bytes(b"")
            path.chmod(0)
        case _:
            pass  # the file stays missing


def _nest_json(path: Path, chance: random.Random) -> None:
    depth = chance.choice([500, 100_000])
    opening, closing = chance.choice([("[", "]"), ('{"a":', "}")])
    value = opening * depth + "1" * (opening != "[") + closing * depth
    path.write_text(
        chance.choice([value, f'{{"format_version": 1, "tokens": {value}, "joint": true, "source": {value}}}'])
    )


def _nest_toml(path: Path, chance: random.Random) -> None:
    depth = chance.choice([300, 100_000])
    value = chance.choice(["[" * depth + "]" * depth, ".".join(["a"] * depth), "{a=" * depth + "1" + "}" * depth])
    where = chance.choice(["model", "training", "data"])
    path.write_text(
        path.read_text().replace(
            f"[{where}]",
            f"[{where}]\nx = {value}" if "=" in value or value[0] == "[" else f"[{where}.{value}]\nx = 1\n[{where}]",
        )
    )


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield from _places(inner, (*path, key))


def _read(path: Path) -> Any:
    text = path.read_text()
    return [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)


def _dump(path: Path, value: Any) -> None:
    text = "\n".join(map(json.dumps, value)) if path.suffix == ".jsonl" else json.dumps(value)
    path.write_text(text)


def _inner(value: Any, chance: random.Random) -> tuple[Any, Any]:
    """Return a random object or list within a value, and one of its keys."""
    *above, last = chance.choice(list(_places(value)))
    for key in above:
        value = value[key]
    return value, last


def _field(path: Path, chance: random.Random) -> None:
    value = _read(path)
    inside, key = _inner(value, chance)
    inside[key] = chance.choice(VALUES)
    _dump(path, value)


def _entry(path: Path, chance: random.Random) -> None:
    value = _read(path)
    inside, key = _inner(value, chance)
    match chance.choice(["drop", "twice", "key"]):
        case "drop":
            del inside[key]
        case "twice" if isinstance(inside, list):
            inside.append(inside[key])
        case _ if isinstance(inside, dict):
            inside[chance.choice(["x", "\ud800", "y" * 100_000])] = inside.pop(key)
        case _:
            pass
    _dump(path, value)


def _setting(path: Path, chance: random.Random) -> None:
    lines = path.read_text().splitlines()
    place = chance.choice([number for number, line in enumerate(lines) if " = " in line])
    name = lines[place].partition(" = ")[0]
    value = chance.choice(VALUES)
    text = {True: "true", None: "{}"}.get(value) if isinstance(value, bool | None) else None
    written = text or (str(value) if isinstance(value, int | float) else json.dumps(value))
    lines[place] = chance.choice([f"{name} = {written}", f"{name} = {written}", f"{name}x = 1", "", f"[{name}]"])
    path.write_text("\n".join(lines))


def _header(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    name = chance.choice([name for name in header if name != "__metadata__"])
    kind = chance.choice(["type", "type", "missing", "name", "shape", "offsets", "size", "nested"])
    match kind:
        case "type":
            header[name]["dtype"] = chance.choice(TYPES)
        case "missing":
            if chance.random() < 0.5:  # moves the following weights forward, so that the file has no gap
                begin, end = header.pop(name)["data_offsets"]
                body = body[:begin] + body[end:]
                for one in header.values():
                    if "data_offsets" in one and one["data_offsets"][0] >= end:
                        one["data_offsets"] = [place - (end - begin) for place in one["data_offsets"]]
            else:
                del header[name]
        case "name":
            header[chance.choice(["x", "encoder.layers.9.x", "z" * 100_000])] = header.pop(name)
        case "shape":
            header[name]["shape"] = chance.choice(
                [[1, *header[name]["shape"]], header[name]["shape"][::-1], [10**12], [], [0]]
            )
        case "offsets":
            header[name]["data_offsets"] = chance.choice([[0, 4], [0, 10**15], [-4, 4], [8, 0], "x"])
        case _:
            pass  # "size" and "nested" damage the file below
    text = b"[" * 100_000 if kind == "nested" else json.dumps(header).encode()
    size = chance.choice([0, 2**63, 2**40, len(text) - 1]) if kind == "size" else len(text)
    path.write_bytes(struct.pack("<Q", size) + text + body)


# Reading


def translate(folder: Path) -> None:
    """Translate as `translate --engine torch` does."""
    if not (folder / "export.json").exists():
        Translator.load(folder).translate(SOURCE[:2])


def translate_fast(folder: Path) -> None:
    """Translate as `translate` does by default."""
    bundle = Bundle.load(folder)
    Translator(bundle, load_engine(bundle, EngineRequest(engine="auto", workers=1))).translate(SOURCE[:2])


def resume(folder: Path) -> None:
    """Average the checkpoints, and resume as `train` does for one update."""
    if (folder / "export.json").exists():
        return
    bundle = Bundle.load(folder)
    average(folder, 2, folder / "averaged")
    model = bundle.model().train()
    optimiser = make_optimiser(model, TrainingConfig(steps=4))
    if Checkpoints(folder / "checkpoints", keep=2).restore(model, optimiser):
        _update(model, optimiser)


def look(folder: Path) -> None:
    """Read the log and the manifest as `report` and `prepare` do."""
    if (folder / "export.json").exists():
        return
    history = History.of(read_log(folder / "metrics.jsonl"))
    history.loss(), history.validation_metric(), history.status, history.best  # none may raise an error
    history.seconds, history.epochs, history.metric, history.waited(), history.padding()  # none may raise an error
    if manifest := Manifest.load(folder):
        manifest.settings.get("data.source")
        assert manifest.pairs + manifest.valid_pairs + sum(shard.pairs for shard in manifest.shards) >= 0


def readers(path: Path) -> tuple[Callable[[Path], None], ...]:
    """Return the functions that read this file in a folder."""
    if "checkpoints" in path.parts:
        return (resume,)
    if path.name in ("metrics.jsonl", "manifest.json"):
        return (look,)
    return (translate, translate_fast)


# The cases


@dataclass(frozen=True, slots=True)
class Case:
    """A damaged folder and the outcome of reading it."""

    file: str
    damage: str
    seed: int
    outcome: str
    """The outcome: "answer", "sentence" (one error sentence), or the kind of fault."""
    words: str
    seconds: float
    mebibytes: float


def cases(folders: list[Path], count: int, seed: int, work: Path) -> Iterator[Case]:
    """Yield cases; the same seed gives the same cases."""
    chance = random.Random(seed)
    for number in range(count):
        folder = chance.choice(folders)
        found = (path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)  # lock files are empty
        files = sorted(path.relative_to(folder) for path in found)
        file = chance.choice(files)
        name, damage = chance.choice(damages(file))
        reader = chance.choice(readers(file))
        copy = work / "case"
        shutil.copytree(folder, copy)
        try:
            damage(copy / file, random.Random(f"{seed}-{number}"))
            outcome, words, seconds, mebibytes = _apart(reader, copy)
            words = words.replace(str(work), "")
            yield Case(
                f"{folder.name}/{file}", f"{name}, {reader.__name__}", number, outcome, words, seconds, mebibytes
            )
        finally:
            for path in copy.rglob("*"):
                if not path.is_symlink():
                    path.chmod(0o755)
            shutil.rmtree(copy)


def _apart(reader: Callable[[Path], None], folder: Path) -> tuple[str, str, float, float]:
    """Read a folder in a new process; return the outcome, the message, the seconds and the MiB."""
    reading, writing = os.pipe()
    begun = time.perf_counter()
    pid = os.fork()
    if not pid:
        os.close(reading)
        _child(reader, folder, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    _, status, used = os.wait4(pid, 0)
    seconds, mebibytes = time.perf_counter() - begun, max(used.ru_maxrss - _resident(), 0) / 1024
    if told and mebibytes > MEBIBYTES:
        return "memory", told.decode(), seconds, mebibytes
    if told:
        outcome, _, words = told.decode().partition("\n")
        return outcome, words, seconds, mebibytes
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    slow = number in (signal.SIGALRM, signal.SIGXCPU, signal.SIGKILL)
    return ("time" if slow else "crash"), signal.Signals(number).name if number else "no answer", seconds, mebibytes


def _child(reader: Callable[[Path], None], folder: Path, pipe: int) -> None:
    """Read a folder, write the outcome to the pipe, and end this process."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_virtual() + 2 * MEBIBYTES * 2**20,) * 2)
    signal.alarm(10 * SECONDS)
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    try:
        reader(folder)
        said = "answer\n"
    except GlassformerError as error:
        words = str(error)
        said = f"sentence\n{words}" if "\n" not in words and len(words) <= LONGEST else f"words\n{words[:300]!r}"
    except BaseException as error:
        said = f"{type(error).__name__}\n{str(error)[:200]!r} {_where(error)}"
    os.write(pipe, said.encode(errors="replace")[:8000])
    os._exit(0)


def _where(error: BaseException) -> str:
    """Return the name of the innermost function of the package in an exception's traceback."""
    trace, places = error.__traceback__, [""]
    while trace:
        code = trace.tb_frame.f_code
        if "glassformer" in code.co_filename:
            places.append(f"{Path(code.co_filename).name}:{code.co_name}")
        trace = trace.tb_next
    return places[-1]


def _resident() -> int:
    """Return this process's resident memory in KiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1024


def _virtual() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def report(found: list[Case]) -> None:
    """Print the table of outcomes."""
    by_outcome: defaultdict[str, list[Case]] = defaultdict(list)
    for case in found:
        by_outcome[case.outcome].append(case)
    rows = []
    for name, some in sorted(by_outcome.items(), key=lambda item: -len(item[1])):
        seconds, mebibytes = max(one.seconds for one in some), max(one.mebibytes for one in some)
        rows.append([name, str(len(some)), f"{seconds:.1f} s", f"{mebibytes:.0f} MiB"])
    print(table(["outcome", "cases", "longest", "largest"], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        folders = Path(place) / "folders"
        # A child process writes the folders: writing starts threads, and a process with threads cannot be forked later.
        if not (pid := os.fork()):
            write_folders(folders)
            os._exit(0)
        if os.waitpid(pid, 0)[1]:
            raise SystemExit("the folders could not be written; see the error above")
        import ctranslate2  # noqa: F401  # imported once for all cases

        found = []
        for case in cases(sorted(folders.iterdir()), given.cases, given.seed, Path(place)):
            found.append(case)
            if case.outcome not in EXPECTED:
                print(f"{case.outcome}: {case.file} ({case.damage}; case {case.seed}): {case.words}", flush=True)
    report(found)
    sys.exit(any(case.outcome not in EXPECTED for case in found))


if __name__ == "__main__":
    as_command(main)
