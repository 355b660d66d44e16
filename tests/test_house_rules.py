"""The rules of this repository that can be checked automatically."""

import ast
import builtins
import dis
import doctest
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from benchmarks.structure import own_imports

import glassformer as gf
from glassformer import errors
from glassformer.cli import COMMANDS

SRC = Path(gf.__file__).parent
FILES = sorted(SRC.rglob("*.py"))
TORCH_FREE = ("translating/documents", "text", "corpus", "recipes", "evaluation")


def module_name(file: Path) -> str:
    parts = file.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@cache
def trees() -> dict[Path, ast.Module]:
    """Return the syntax tree of each file of the package."""
    return {file: ast.parse(file.read_text(encoding="utf-8")) for file in FILES}


def places(kind: type[ast.AST]) -> Iterator[tuple[str, Any]]:
    """Yield the place (file:line) and the node of everything of this kind in the package."""
    for file, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, kind):
                yield f"{file.relative_to(SRC)}:{node.lineno}", node


def public(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Yield the public functions, the public classes, and the public methods of these classes."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public(node.body)


def listed(tree: ast.Module) -> list[str] | None:
    """Return a module's `__all__`, or None if it has none."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            return ast.literal_eval(node.value)
    return None


def loaded_after(code: str) -> set[str]:
    """Return the modules that a new interpreter has loaded after this code."""
    program = f"{code}\nimport sys\nsys.stdout.write(' '.join(sys.modules))"
    finished = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return set(finished.stdout.split())


# Imports


def test_importing_glassformer_loads_nothing_heavy():
    heavy = {"torch", "numpy", "jaxtyping", "sentencepiece", "sacrebleu", "pydantic", "typer", "rich"}
    assert not heavy & loaded_after("import glassformer; dir(glassformer)")


def test_the_command_line_starts_without_modules_that_only_some_commands_need():
    assert not {"torch", "numpy", "matplotlib", "http.server", "webbrowser"} & loaded_after("import glassformer.cli")


def test_the_command_line_starts_without_configurations():
    """Importing the configurations' modules would take a quarter of the time of `--version`."""
    needless = {"glassformer.recipes.configuration", "glassformer.text.tokenizer"}
    assert not needless & loaded_after("import glassformer.cli")


def test_a_configuration_does_not_need_torch():
    assert not {"torch", "numpy"} & loaded_after("import glassformer as gf; gf.ModelConfig(vocab_size=11).to_json()")


def test_text_corpora_recipes_and_metrics_do_not_need_torch():
    names = [module_name(file) for file in FILES if file.relative_to(SRC).as_posix().startswith(TORCH_FREE)]
    assert "torch" not in loaded_after("\n".join(f"import {name}" for name in names))


def test_imports_are_absolute_and_annotations_are_not_postponed():
    # With postponed annotations, the run-time type checks could not read the shapes.
    imports = places(ast.ImportFrom)
    assert not [place for place, node in imports if node.level > 0 or node.module == "__future__"]


def test_no_module_needs_more_than_twenty_of_our_own():
    counts = {module_name(file): own_imports(file, SRC) for file in FILES}
    assert not {name: count for name, count in counts.items() if count > 20}


# Names


def test_all_lists_the_names_that_type_checkers_see():
    tree = ast.parse(Path(gf.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = [alias.asname or alias.name for node in block.body for alias in node.names]
    assert sorted(seen) == sorted(gf.__all__)
    assert len(set(gf.__all__)) == len(gf.__all__)


@pytest.mark.parametrize("name", gf.__all__)
def test_each_public_name_can_be_used(name):
    value = getattr(gf, name)
    assert value.__doc__
    assert name in dir(gf)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'transformer_'"):
        gf.transformer_  # noqa: B018 – the attribute access is the test


def test_each_module_lists_its_public_names():
    unlisted = {}
    for file, tree in trees().items():
        defined = {node.name for node in public(tree.body) if node in tree.body}
        names = listed(tree) or []
        if not file.name.startswith("_") and (defined - set(names) or len(set(names)) < len(names)):
            unlisted[module_name(file)] = names
    assert not unlisted


def public_names_defined(file: Path) -> set[str]:
    """Return the public names that a module defines, except type variables, which are local to their module."""
    names = set()
    for node in trees()[file].body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(value=ast.Call(func=ast.Name(id="TypeVar" | "ParamSpec"))):
                pass
            case ast.Assign(targets=targets):
                names |= {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return {name for name in names if not name.startswith("_")}


def test_a_public_name_is_defined_in_one_module():
    modules = defaultdict(list)
    for file in FILES:
        for name in public_names_defined(file):
            modules[name].append(module_name(file))
    assert not {name: found for name, found in modules.items() if len(found) > 1}


def test_our_names_are_never_imported_under_an_alias():
    ours = [(place, node) for place, node in places(ast.ImportFrom) if (node.module or "").startswith("glassformer")]
    assert not [place for place, node in ours if any(alias.asname for alias in node.names)]


def test_the_tests_can_check_arguments_against_every_protocol():
    unchecked = [
        where
        for where, node in places(ast.ClassDef)
        if "Protocol" in {ast.unparse(base).partition("[")[0] for base in node.bases}
        and "runtime_checkable" not in map(ast.unparse, node.decorator_list)
    ]
    assert unchecked == []


def test_no_module_is_called_utils_or_helpers():
    drawers = {"utils", "util", "common", "helpers", "misc"}
    assert not [file for file in FILES if drawers & {*file.relative_to(SRC).with_suffix("").parts}]


# Words


def test_every_public_name_has_a_docstring():
    assert not [module_name(file) for file, tree in trees().items() if not ast.get_docstring(tree)]
    defined = [(module_name(file), node) for file, tree in trees().items() for node in public(tree.body)]
    assert not [(module, node.name) for module, node in defined if not ast.get_docstring(node)]


@pytest.mark.parametrize("file", [file for file in FILES if ">>> " in file.read_text()], ids=lambda file: file.stem)
def test_examples_in_docstrings_give_the_shown_results(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # an example may write files
    result = doctest.testmod(import_module(module_name(file)))
    assert result.attempted > 0
    assert result.failed == 0


def test_only_the_command_line_prints():
    calls = [(place, node.func) for place, node in places(ast.Call) if not place.startswith("cli/")]
    assert not [place for place, called in calls if isinstance(called, ast.Name) and called.id == "print"]


def test_values_in_printed_commands_are_quoted_for_the_shell():
    """A path with a space would otherwise become two arguments."""
    command = re.compile(rf"glassformer ({'|'.join(COMMANDS)}) $")
    bare = [
        (place, ast.unparse(value))
        for place, node in places(ast.JoinedStr)
        for before, value in zip(node.values, node.values[1:], strict=False)
        if isinstance(before, ast.Constant) and command.search(before.value)
        if isinstance(value, ast.FormattedValue) and not re.match(r"shlex\.|[A-Z_]+$", ast.unparse(value.value))
    ]
    assert bare == []


def test_the_drawn_tree_of_errors_matches_the_classes():
    drawing = re.findall(r"^    ([│├└─ ]*)(\w+Error)(?:\((\w+)\))?", errors.__doc__, flags=re.MULTILINE)
    drawn, path = {}, []
    for branch, name, builtin in drawing:
        path = [*path[: len(branch) // 4], name]
        drawn[name] = {*path[-2:-1], *filter(None, [builtin])}
    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, Exception)]
    assert drawn == {c.__name__: {base.__name__ for base in c.__bases__} for c in classes}
    assert all(issubclass(c, gf.GlassformerError) for c in classes)


@pytest.mark.slow
def test_every_global_name_that_code_reads_is_defined():
    """The linter's own rule is off, because it would read the shapes in annotations ("B T D") as names."""
    undefined = {}
    for file, tree in trees().items():
        bound = {name for node in ast.walk(tree) for name in names_bound(node)}
        known = bound | {*dir(builtins), "__annotations__", "__file__"}
        undefined[module_name(file)] = globals_read(compile(tree, file, "exec")) - known
    assert not {module: names for module, names in undefined.items() if names}


def names_bound(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [alias.asname or alias.name.split(".")[0] for alias in names]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Name(id=name, ctx=ast.Store()) | ast.ExceptHandler(name=str(name)):
            return [name]
    return []


def globals_read(code: CodeType) -> set[str]:
    own = {one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*(globals_read(const) for const in code.co_consts if isinstance(const, CodeType)))
