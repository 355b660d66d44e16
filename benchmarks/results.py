"""Describe the machine, and turn measured figures into medians with quartiles, JSON, Markdown tables and pictures."""

import json
import os
import platform
import re
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RESULTS = Path(__file__).parent / "results"
"""Default folder of figures and pictures."""
PACKAGES = ("torch", "ctranslate2", "numpy", "sentencepiece", "sacrebleu", "glassformer")
FLAGS = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8")
"""Features of a processor that decide how fast it multiplies matrices."""
OURS, THEIRS = "tab:blue", "tab:gray"
FOLDERS = re.compile(r"(?<![\w.:/])/(?:[\w.+-]+/)+")
"""A pattern for absolute folders. Results leave these out, because they mean nothing on a different machine."""


@dataclass(frozen=True)
class Spread:
    """A median and the quartiles around it."""

    median: float
    low: float
    high: float

    def text(self, digits: int = 0) -> str:
        """Return the median and the quartiles as a text such as "1 234 (1 200–1 260)"."""
        return "{} ({}–{})".format(*(number(value, digits) for value in (self.median, self.low, self.high)))


def number(value: float, digits: int = 0) -> str:
    """Return a number as a text with spaces between thousands, such as "1 234"."""
    return f"{value:,.{digits}f}".replace(",", " ")


def spread(values: Sequence[float]) -> Spread:
    """Return the median and the quartiles of the values."""
    if len(values) < 2:
        return Spread(values[0], values[0], values[0])
    low, _, high = quantiles(values, n=4, method="inclusive")
    return Spread(median(values), low, high)


def machine() -> dict[str, Any]:
    """Return the machine's properties on which figures depend: processor, memory, system, versions of packages."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = ""
    return {
        "processor": _processor("model name") or platform.processor(),
        "cores": os.cpu_count(),
        "flags": [flag for flag in FLAGS if flag in (_processor("flags") or "").split()],
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "system": platform.platform(terse=True),
        "busy_before": psutil.cpu_percent(0.5) / 100,
        "versions": versions,
    }


def described(found: dict[str, Any]) -> str:
    """Return one line that describes a machine."""
    flags = ", ".join(flag.upper() for flag in found["flags"])
    versions = ", ".join(f"{name} {value}" for name, value in found["versions"].items() if value)
    busy = found["busy_before"]
    note = f"; **the machine was {100 * busy:.0f} % busy when this began**" if busy > 0.1 else ""
    return (
        f"{found['processor']} ({flags}), {found['cores']} cores, {found['memory_gib']} GiB, {found['system']}; "
        f"{versions}{note}"
    )


def write(name: str, figures: dict[str, Any], of: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Write figures as JSON, with the command, the day and the machine (`of`); return the path."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.json"
    whole = {"command": command(), "day": time.strftime("%Y-%m-%d"), "machine": of, **figures}
    text = json.dumps(whole, indent=1, ensure_ascii=False, default=_plain)
    path.write_text(FOLDERS.sub("…/", text) + "\n", encoding="utf-8")
    return path


def read(name: str, folder: Path = RESULTS) -> dict[str, Any]:
    """Return the figures that `write` stored under a name, or an empty dict if nothing is stored."""
    path = folder / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def command() -> str:
    """Return the command line of this process."""
    module = getattr(sys.modules["__main__"].__spec__, "name", Path(sys.argv[0]).stem).removesuffix(".__main__")
    return f"python -m {module} {shlex.join(sys.argv[1:])}".rstrip()


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; all columns except the first are aligned like numbers."""
    cells = [[cell.replace("|", "\\|") for cell in line] for line in (head, *rows)]
    cells.insert(1, ["---", *["---:"] * (len(head) - 1)])
    return "\n".join("| " + " | ".join(line) + " |" for line in cells) + "\n"


def leaders(speeds: Mapping[str, Spread], unit: str) -> str:
    """Return a sentence about the fastest entry, and a sentence about the fastest peer or the fastest own entry.

    The second sentence is about a peer if the fastest entry is glassformer's own, and the other way round.
    """
    if not speeds:
        return ""
    first, *rest = sorted(speeds, key=lambda name: -speeds[name].median)
    text = f"The fastest entry is *{first}* ({number(speeds[first].median)} {unit})."
    other = next((name for name in rest if name.startswith("ours") != first.startswith("ours")), None)
    if other is None:
        return text
    side = "peer" if first.startswith("ours") else "entry of glassformer"
    return f"{text} The fastest {side} is *{other}* ({number(speeds[other].median)})."


def failures(failed: dict[str, str]) -> str:
    """Return a line for each entry that could not be measured, with the last line of its error."""
    return "".join(f"\nNot measured: {name}: {why.splitlines()[-1]}\n" for name, why in failed.items())


def figure(width: float = 8.0, height: float = 4.5, columns: int = 1) -> "tuple[Figure, list[Axes]]":
    """Return an empty picture with this number of charts side by side."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    made, axes = pyplot.subplots(1, columns, figsize=(width, height), layout="constrained", squeeze=False)
    for axis in axes[0]:
        axis.spines[["top", "right"]].set_visible(False)
    return made, list(axes[0])


def save(made: "Figure", name: str, folder: Path = RESULTS) -> Path:
    """Write a picture; return its path."""
    from matplotlib import pyplot

    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.png"
    made.savefig(path, dpi=110)
    pyplot.close(made)
    return path


def bars(axis: "Axes", values: dict[str, Spread], label: str) -> None:
    """Draw a bar with quartiles for each name; the longest bar is at the top, and glassformer's bars are in colour."""
    names = sorted(values, key=lambda name: values[name].median)
    medians = [values[name].median for name in names]
    errors = [[max(values[name].median - values[name].low, 0.0) for name in names]]
    errors += [[max(values[name].high - values[name].median, 0.0) for name in names]]
    colours = [OURS if name.startswith("ours") else THEIRS for name in names]
    axis.barh(names, medians, xerr=errors, color=colours, error_kw={"linewidth": 1})
    axis.set_xlabel(label)


def _processor(field: str) -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith(field)), "")


def _plain(value: Any) -> Any:
    return asdict(value) if hasattr(value, "__dataclass_fields__") else str(value)
