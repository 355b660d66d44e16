"""Read the outputs that pages show below their commands, and check that the commands still print these outputs."""

import re
from pathlib import Path
from typing import NamedTuple


class Block(NamedTuple):
    """A block of commands of a page, and the output that the page shows below it."""

    language: str
    text: str
    output: str | None

    @property
    def commands(self) -> list[str]:
        """Return the lines that are glassformer commands."""
        return [line for line in self.text.splitlines() if line.startswith(("glassformer", "echo", "torchrun"))]


def blocks_with_outputs(path: Path) -> list[Block]:
    """Return the shell blocks of a Markdown file; a text block directly below a shell block is its output."""
    pattern = r"```(sh|bash)\n((?:(?!```).)*)```(?:\n\n```text\n((?:(?!```).)*)```)?"
    return [Block(*found) for found in re.findall(pattern, path.read_text(encoding="utf-8"), flags=re.DOTALL)]


def missing_line(shown: str, printed: str) -> str | None:
    """Return the first shown line that a command does not print in this order; numbers may differ.

    A line "…" stands for any lines, and "…" within a line for any text. In tab-separated columns, the last column may
    differ, because it is a translation. The lines from "what to change" on may also differ, because the machine decides
    which settings are faster.
    """
    shown = shown.partition("what to change\n")[0]
    rest = iter([_form(line) for line in printed.splitlines()])
    for line in shown.splitlines():
        if line.strip() in ("", "…"):
            continue
        parts = [re.escape(_form(part)) for part in line.split("…")]
        pattern = re.compile(r"\s*.*".join(parts))
        if not any(pattern.fullmatch(there) for there in rest):
            return line
    return None


def _form(line: str) -> str:
    """Return a line without the parts that depend on the model: numbers, verdicts, bars, alignment, a translation."""
    if "\t" in line:
        line = line.rpartition("\t")[0]
    line = re.sub(r"\b(may be chance|no difference|[AB] is better)\s*$", "verdict", line)
    line = re.sub(r"[▏▎▍▌▋▊▉█]+", " ", line)
    line = re.sub(r"[-+−]?\d[\d.,:]*(e[-+]?\d+)?", "0", line)
    # the unit depends on the number, so it is replaced as well
    line = re.sub(r"\b0 (ms|s|seconds|minutes|hours)\b", "0 of time", line)
    return " ".join(re.sub(r"\b0 (kB|MB|GB)\b", "0 of memory", line).split())
