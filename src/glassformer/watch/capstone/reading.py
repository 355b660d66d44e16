"""Load a reader's file, and turn every exception of the file into one sentence with its line."""

import ast
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import TextIOBase
from pathlib import Path
from types import FrameType, ModuleType, TracebackType
from typing import Any

from glassformer.errors import nearest, quoted

__all__ = ["Mine", "Printed", "RejectedError"]

_ALLOWED = frozenset(sys.stdlib_module_names) | {"torch"}
_LONGEST = 200


class RejectedError(Exception):
    """The reader's file is wrong; the error has the line, a sentence, and the likely mistakes."""

    def __init__(self, message: str, line: int | None = None, point: str = "", likely: tuple[str, ...] = ()) -> None:
        """`point` is the first tensor that differs, and `likely` the likely mistakes."""
        super().__init__(message)
        self.message, self.line, self.point, self.likely = message, line, point, likely


class Mine:
    """A reader's file as a module, with the lines of its definitions; calls of its code raise only `RejectedError`."""

    def __init__(self, path: Path, source: str) -> None:
        """Compile and run the file.

        Raises:
            RejectedError: the file has a syntax error, imports another package, or raises an exception.
        """
        self.path = path
        try:
            tree = ast.parse(source, filename=str(path))
            code = compile(tree, str(path), "exec")
        except SyntaxError as error:
            raise RejectedError(f"syntax error: {error.msg}", error.lineno or 1) from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise RejectedError(f"Python cannot read the file: {error or type(error).__name__}", 1) from error
        _check_imports(tree)
        self.lines = dict(_definitions(tree))
        self.module = ModuleType("mine")
        self.module.__file__ = str(path)
        sys.modules["mine"] = self.module  # dataclasses look up the module of their class
        with self.blamed("the file"):
            exec(code, vars(self.module))

    def has(self, name: str) -> bool:
        """Return whether the file defines a name."""
        return hasattr(self.module, name)

    def line(self, name: str) -> int | None:
        """Return the line of a definition, or None if the file does not define the name."""
        return self.lines.get(name)

    def nearest(self, name: str, others: Iterable[str]) -> str:
        """Return " (did you mean …?)" with the file's most similar name that is not among `others`, or ""."""
        return nearest(name, set(self.lines) - set(others))

    def call(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of a function of the file; an error mentions the definition `name`."""
        with self.blamed(name):
            return function(*arguments)

    def make(self, name: str, *arguments: Any) -> Any:
        """Return an object of a class of the file, or the result of a function of the file."""
        return self.call(name, getattr(self.module, name), *arguments)

    @contextmanager
    def blamed(self, name: str) -> Iterator[None]:
        """Turn every exception of the file, and `sys.exit`, into a `RejectedError` with the innermost line of the file.

        Raises:
            RejectedError: the file raised an exception.
        """
        try:
            yield
        except RejectedError:
            raise
        except BaseException as error:
            line = _line(error.__traceback__, str(self.path)) or self.line(name)
            raise RejectedError(f"{name}: {_described(error)}", line) from None


class Printed(TextIOBase):
    """Replaces stdout: it records the first line of a file that prints, and shows no output."""

    def __init__(self, path: str) -> None:
        """`path` is the path of the file whose output is watched."""
        self._path, self.line, self.text = path, 0, ""

    def write(self, text: str) -> int:
        """Discard the text, but record the line that prints it."""
        if not self.line:
            self.line, self.text = _printing(sys._getframe(1), self._path), quoted(text.strip()[:40])
        return len(text)


def _printing(frame: FrameType | None, path: str) -> int:
    while frame is not None and frame.f_code.co_filename != path:
        frame = frame.f_back
    return frame.f_lineno if frame is not None else 0


def _check_imports(tree: ast.AST) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        else:
            continue
        for name in names:
            if name.split(".")[0] not in _ALLOWED:
                raise RejectedError(
                    f"expected imports of torch and the standard library, got {quoted(name)}", node.lineno
                )


def _definitions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node.lineno


def _line(traceback: TracebackType | None, path: str) -> int | None:
    """Return the innermost line of the file in a traceback, or None if the file is not in the traceback."""
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == path:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def _described(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return "calls sys.exit; return instead"
    if isinstance(error, MemoryError) or "DefaultCPUAllocator" in str(error):
        return "needs more memory than the check allows"
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words[:_LONGEST]}{'…' * (len(words) > _LONGEST)}".removesuffix(": ")
