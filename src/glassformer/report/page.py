"""The report as one HTML file that needs nothing besides itself: no network, no script, no other file."""

import platform
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any

from glassformer import __version__
from glassformer.errors import ConfigError
from glassformer.evaluation.metrics import METRICS
from glassformer.report.charts import attention, errors_by_length, lengths, training_curves
from glassformer.report.content import Content, gather
from glassformer.text.storage import write_safely

__all__ = ["REPORT", "html", "write_report"]

REPORT = "report.html"
"""Its name in a run."""


@dataclass(frozen=True, slots=True)
class _Number:
    """A headline number."""

    name: str
    value: str


def write_report(folder: str | Path, output: str | Path | None = None) -> Path:
    """Write the report of a run, which may still go on, and return its file: `output`, or report.html in the run.

    Raises:
        CheckpointError: the folder is no run, or the file could not be written.
        ConfigError: `output` cannot be a file.
    """
    path = Path(output) if output else Path(folder) / REPORT
    if path.is_dir():
        raise ConfigError(f"{path} is a folder: give the name of a file in it, such as {path / REPORT}")
    if not path.absolute().parent.is_dir() and output:
        raise ConfigError(f"there is no folder {path.parent} for {path.name}: make it first, or choose another")
    text = html(gather(folder)).encode("utf-8", "replace")
    write_safely(path.resolve(), lambda temporary: temporary.write_bytes(text))
    return path


def html(content: Content) -> str:
    """Return the page."""
    from jinja2 import Environment, StrictUndefined

    # What comes from a corpus is text and never markup.
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    here = files("glassformer.report")
    template = environment.from_string((here / "page.html.jinja").read_text(encoding="utf-8"))
    style = (here / "style.css").read_text(encoding="utf-8")
    return template.render(style=environment.filters["safe"](style), **_shown(content))


def _shown(content: Content) -> dict[str, Any]:
    """Return what the template shows, by its names."""
    outputs, history = content.outputs, content.history
    curves = list(training_curves(history))
    looked = list(attention(content.example)) if content.example and content.example.attention else []
    letters = outputs is not None and outputs.measure == METRICS["cer"].name
    sections = {
        "How training went": ("training", curves),
        "What it can do": ("translations", outputs),
        "Where it looked": ("attention", looked),
        "The corpus": ("corpus", content.corpus or content.lengths),
        "The configuration": ("configuration", True),
    }
    return {
        "title": content.folder.resolve().name,
        "summary": _summary(content),
        "sections": [(name, id) for name, (id, there) in sections.items() if there],
        "numbers": _numbers(content),
        "missing": content.missing,
        "curves": curves,
        "validations": history.validations,
        "metric": history.metric,
        "outputs": outputs,
        "outputs_about": _about_outputs(content),
        "worst": outputs.worst() if outputs else [],
        "joint": "" if letters else " ",
        "attention": looked,
        "example": content.example,
        "corpus": content.corpus,
        "errors": errors_by_length(outputs, content.source_tokens) if outputs else None,
        "lengths": lengths(content.lengths, content.lengths_of) if content.lengths else None,
        "model_about": _about_model(content),
        "config": content.config_text,
        "footer": _footer(content),
    }


def _summary(content: Content) -> str:
    data = content.configuration.data
    if data.task:
        corpus = f"the built-in task {data.task}"
    else:
        named = [data.source] if isinstance(data.source, str) else list(data.source)
        corpus = named[0] + (f" and {len(named) - 1} more files" if len(named) > 1 else "")
        corpus += f" → {data.target}" if isinstance(data.target, str) and data.target else ""
    return f"Trained on {corpus} · {content.changed:%Y-%m-%d %H:%M} · {content.history.status}"


def _numbers(content: Content) -> list[_Number]:
    """Return the headline numbers, the most important first; what nobody knows is left out."""
    history, best, found = content.history, content.history.best, []
    if best and best["metric"]:
        found.append(_Number(f"{best['metric'][0]}, validation, step {best['step']:,}", f"{best['metric'][1]:.1f}"))
    elif content.outputs:
        score = content.outputs.scores[0]
        found.append(_Number(f"{score.name}, {len(content.outputs.texts)} validation sentences", f"{score.value:.1f}"))
    if best:
        found.append(_Number(f"validation loss, step {best['step']:,}", f"{best['loss']:.3f}"))
    if history.last_step:
        found.append(_Number("steps", f"{history.last_step:,}"))
    if history.epochs:
        found.append(_Number("epochs begun", f"{history.epochs:,}"))
    if history.seconds:
        found.append(_Number("training time", _clock(history.seconds)))
    if history.steps:
        speed = median(line["tokens_per_second"] for line in history.steps)
        found.append(_Number("target tokens per second", f"{speed:,.0f}"))
    found.append(_Number("parameters", f"{content.parameters:,}"))
    if content.pairs:
        found.append(_Number("training pairs", f"{content.pairs:,}"))
    return found


def _about_outputs(content: Content) -> str:
    if not content.outputs:
        return ""
    count, right = len(content.outputs.texts), sum(content.outputs.right)
    measure = f"sorted by {content.outputs.measure} of the single sentence"
    return f"{count:,} validation sentences, translated greedily; {right:,} exactly right. Examples are {measure}."


def _about_model(content: Content) -> str:
    model, tokenizer = content.model_config, content.configuration.tokenizer
    source, target = content.vocabularies
    words = f"{source:,} entries" if tokenizer.joint else f"{source:,} and {target:,} entries"
    kinds = " and ".join(dict.fromkeys(tokenizer.kinds))
    return (
        f"{model.encoder_layers} + {model.decoder_layers} layers of width {model.d_model}, {model.heads} heads, inner "
        f"width {model.d_ff}, {model.norm}-norm, dropout {model.dropout:g}; vocabulary of {words} ({kinds})."
    )


def _footer(content: Content) -> str:
    return (
        f"glassformer {__version__}, PyTorch {version('torch')}, Python {platform.python_version()}, on "
        f"{platform.system()} {platform.machine()}. The run: {content.folder}"
    )


def _clock(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
