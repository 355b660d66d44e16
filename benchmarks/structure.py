"""Count lines, imports, settings and more of checkouts: `python -m benchmarks.structure CHECKOUT [CHECKOUT …]`.

CHECKOUT is a folder with a version of glassformer, made by `git worktree add ../before COMMIT`, for example. Lines,
folders and imports are counted in the sources. Settings, commands and walks are counted by the package itself, in a
process for each checkout. A walk is a call under `sys.setprofile`; it counts the package's functions that are entered.
"""

import argparse
import ast
import io
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import redirect_stdout, suppress
from dataclasses import fields, is_dataclass
from importlib import import_module
from inspect import signature, unwrap
from pathlib import Path
from types import FrameType
from typing import Any

__all__: list[str] = []

ROOT = Path(__file__).resolve().parents[1]
CORPUS = "".join(f"{one}\t{one[::-1]}\n" for one in ("a b c", "b c d", "c d e", "d e a", "e a b") * 8)
CONFIGURATION = """
[data]
source = "pairs.tsv"
valid_lines = 1
[cleaning]
duplicates = "keep"
[tokenizer]
kind = "words"
[model]
preset = "tiny"
[training]
steps = 3
batch_tokens = 50
learning_rate = 0.001
validate_every = 0
[decoding]
beam_size = 1
"""


def lines(paths: Iterator[Path]) -> int:
    """Return the number of lines of some files."""
    return sum(path.read_bytes().count(b"\n") for path in paths)


def own_imports(file: Path, package: Path) -> int:
    """Return the number of the package's modules that a file imports from, anywhere in the file."""
    found = set[str]()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "glassformer":
            path = package.joinpath(*str(node.module).split(".")[1:])
            modules = [name.name for name in node.names if (path / f"{name.name}.py").exists()]
            found.update(f"{node.module}.{name}" for name in modules or [""])
    return len(found)


def read_sources(checkout: Path) -> dict[str, Any]:
    """Return the counts that the source files of a checkout give."""
    package = checkout / "src/glassformer"
    files = sorted(package.rglob("*.py"))
    room_of = {file: file.relative_to(package).parts[0] for file in files}
    rooms, counts = Counter[str](), Counter(room_of.values())
    for file, room in room_of.items():
        rooms[room] += lines(iter([file]))
    imports = {str(file.relative_to(package)): own_imports(file, package) for file in files}
    most = max(imports, key=lambda name: imports[name])
    web = [path for ending in ("js", "ts") for path in (checkout / "web").rglob(f"*.{ending}")]
    return {
        "lines of Python in src": sum(rooms.values()),
        "files": len(files),
        "folders at the top": len({room for room in rooms if not room.endswith(".py")}),
        "own modules that one file imports, at most": f"{imports[most]} ({most})",
        "lines of translator.py": lines(iter([package / "translator.py"])),
        "lines of recipes": lines((package / "recipes").rglob("*.toml")),
        "lines of JavaScript and TypeScript": lines(path for path in web if "node_modules" not in path.parts),
        "lines of Python in tests": lines((checkout / "tests").rglob("*.py")),
        "rooms": {room: f"{rooms[room]} / {counts[room]}" for room in sorted(rooms) if not room.endswith(".py")},
    }


def ask_package(checkout: Path) -> dict[str, Any]:
    """Return the counts that the package of a checkout gives, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, "-P", __file__, "--ask"]
    asked = subprocess.run(command, env=environment, cwd=checkout, capture_output=True, text=True, check=False)
    if asked.returncode:
        raise SystemExit(f"{checkout}: the package could not be asked:\n{asked.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(asked.stdout.splitlines()[-1])
    return answer


def answers() -> dict[str, Any]:
    """Return the number of settings, the number of commands, and the walks of the package that this process imports."""
    commands = list(command_functions())
    return {
        "settings": count_settings(),
        "commands": len(commands),
        "parameters of commands": count_parameters(commands),
        **{f"walk of {name} (functions / files / depth)": walk for name, walk in walks().items()},
    }


def count_settings() -> int:
    """Return the number of settings that a configuration file, `documents.…` and `serving.…` accept."""
    from glassformer.model.config import ModelConfig
    from glassformer.recipes import configuration

    sections = [section.type for section in fields(configuration.Configuration) if is_dataclass(section.type)]
    # fields of the model that no configuration file may set
    facts: Collection[str] = getattr(configuration, "MODEL_FACTS", ())
    # + 1 for the preset
    count = sum(len(fields(section)) for section in sections) + len(fields(ModelConfig)) - len(facts) + 1
    homes = {
        "DocumentOptions": ("documents.document", "translating.documents.document"),
        "Limits": ("serving.limits",),
    }
    for name, places in homes.items():
        for place in places:
            with suppress(ImportError):
                count += len(fields(getattr(import_module(f"glassformer.{place}"), name)))
                break
    return count


def command_functions() -> Iterator[Callable[..., Any]]:
    """Yield the functions of all commands; a command with subcommands yields a function for each subcommand."""
    import typer

    from glassformer import cli

    for name in cli.COMMANDS:
        command = getattr(import_module(cli._module_of(name)), f"{name}_command")
        if isinstance(command, typer.Typer):
            yield from (one.callback for one in command.registered_commands if one.callback)
        else:
            yield command


def count_parameters(commands: Iterable[Callable[..., Any]]) -> int:
    """Return the number of the commands' parameters; an option of a group counts once for all commands of the group.

    A group is a parameter whose type is a named tuple, and its options are the fields.
    """
    kinds = [one.annotation for command in commands for one in signature(unwrap(command)).parameters.values()]
    groups = {kind for kind in kinds if hasattr(kind, "_fields")}
    return sum(kind not in groups for kind in kinds) + sum(len(group._fields) for group in groups)


class Walk:
    """The functions of the package that a call enters: their number, the number of their files, and the depth."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, str]] = set()
        self.depth, self.deepest = 0, 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Take note of a call or a return, as a function for `sys.setprofile`."""
        code = frame.f_code
        if event not in ("call", "return") or "src/glassformer" not in code.co_filename or code.co_name[0] == "<":
            return  # comprehensions and lambdas count as a part of the function around them
        self.depth += 1 if event == "call" else -1
        if event == "call":
            self.functions.add((code.co_filename, code.co_qualname))
            self.deepest = max(self.deepest, self.depth)

    def of(self, call: Callable[[], Any]) -> str:
        """Return the walk of a call as text."""
        sys.setprofile(self)
        try:
            call()
        finally:
            sys.setprofile(None)
        return f"{len(self.functions)} / {len({file for file, _ in self.functions})} / {self.deepest}"


def walks() -> dict[str, str]:
    """Return the walks of a forward pass, of an update, and of a sentence from the command line to its text."""
    import numpy as np
    import torch

    import glassformer as gf
    from glassformer.cli import main
    from glassformer.corpus.batching import Examples
    from glassformer.recipes.configuration import TrainingConfig

    torch.manual_seed(1)
    model = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11)).eval()
    ids = torch.tensor([[4, 5, 6, 2]])
    model(ids, ids)
    forward = Walk().of(lambda: model(ids, ids))
    pairs = [np.array([4, 5, 6, 2]), np.array([7, 8, 2])]
    updates = gf.training.steps(model, Examples(source=pairs, target=pairs), TrainingConfig(steps=9))
    for _ in range(2):
        next(updates)
    update = Walk().of(lambda: next(updates))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("pairs.tsv").write_text(CORPUS)
        Path("small.toml").write_text(CONFIGURATION)
        Path("text").write_text("a b c\n")

        def run(*words: str) -> None:
            with redirect_stdout(io.StringIO()), suppress(SystemExit):
                main(words)

        run("train", "small.toml", "--set", "run.directory=run")
        run("translate", "run", "text", "--engine", "torch")
        sentence = Walk().of(lambda: run("translate", "run", "text", "--engine", "torch"))
    return {"a forward pass": forward, "an update": update, "a sentence": sentence}


def table(checkouts: list[Path]) -> str:
    """Return all numbers as a Markdown table with a column for each checkout."""
    columns = [{**read_sources(one), **ask_package(one)} for one in checkouts]
    rooms = [column.pop("rooms") for column in columns]
    rows = [[name, *(str(column[name]) for column in columns)] for name in columns[0]]
    rows += [
        [f"`{name}/` (lines / files)", *(one.get(name, "") for one in rooms)]
        for name in sorted(set[str]().union(*rooms))
    ]
    head = [["", *(one.name for one in checkouts)], ["---", *["---:"] * len(checkouts)]]
    return "\n".join(f"| {' | '.join(row)} |" for row in head + rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path, nargs="*", metavar="CHECKOUT", help="[default: this one]")
    parser.add_argument("--ask", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    print(json.dumps(answers()) if given.ask else table([one.resolve() for one in given.checkouts or [ROOT]]))


if __name__ == "__main__":
    main()
