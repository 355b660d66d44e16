"""Messages name only options that exist; the messages of a command name only its own options."""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
import typer.main

import glassformer as gf
from glassformer.cli import COMMANDS, application

SRC = Path(gf.__file__).parent
OTHERS = (
    "--help",
    "--version",
    "--debug",
    "--verbose",
    "--ignore-scripts",
    "--head",
    "--bind",
    "--nproc-per-node",
    "--from",
    "--constraint",
)
"""Options of the command line as a whole, and options of npm, Ray, http.server, torchrun, Argos and pip."""


@cache
def options() -> dict[str, set[str]]:
    """Return the options of each command."""
    commands = typer.main.get_command(application()).commands
    return {
        name: {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
        for name, command in commands.items()
    }


@cache
def definitions(file: Path) -> dict[str, ast.stmt]:
    """Return the definitions at the top of a file by name."""
    found: dict[str, ast.stmt] = {}
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        for target in node.targets if isinstance(node, ast.Assign) else ():
            found[ast.unparse(target)] = node
    return found


@cache
def imported(file: Path) -> dict[str, Path]:
    """Return the files of the command line from which a file imports names, by name."""
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    ours = [one for one in nodes if isinstance(one, ast.ImportFrom) and str(one.module).startswith("glassformer.cli.")]
    return {name.name: SRC.parent / f"{one.module.replace('.', '/')}.py" for one in ours for name in one.names}


def reached(file: Path, name: str, seen: set[tuple[Path, str]]) -> Iterator[ast.stmt]:
    """Yield the definition of a name, and all definitions in the command line that it reads."""
    file = imported(file).get(name, file)
    if (file, name) in seen or name not in definitions(file):
        return
    seen.add((file, name))
    definition = definitions(file)[name]
    yield definition
    for node in ast.walk(definition):
        if isinstance(node, ast.Name):
            yield from reached(file, node.id, seen)


def named(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield the options in the texts of a program, each with the command before it, if any, but not declarations."""
    nodes = [*nodes]
    calls = (node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "typer.Option")
    declared = {id(name) for call in calls for name in call.args}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in declared:
            yield from re.findall(rf"(?:\b({'|'.join(COMMANDS)})(?: [A-Z]+)* )?(?<![\w-])(--[a-z][a-z-]+)", node.value)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_messages_of_a_command_name_its_own_options(command):
    [file] = [one for one in SRC.glob("cli/*/*.py") if one.stem.rstrip("_") == command]
    nodes = (node for one in reached(file, f"{command}_command", set()) for node in ast.walk(one))
    assert not [
        option for other, option in named(nodes) if option not in options()[other or command] and option not in OTHERS
    ]


@pytest.mark.parametrize("package", sorted({file.relative_to(SRC).parts[0] for file in SRC.rglob("*.py")}))
def test_the_options_in_the_messages_of_a_package_exist(package):
    known = {*OTHERS}.union(*options().values())
    files = [SRC / package, *(SRC / package).rglob("*.py")]
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in files if file.is_file())
    assert not [option for tree in trees for _, option in named(ast.walk(tree)) if option not in known]
