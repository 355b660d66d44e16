"""The report as one self-contained HTML file, which needs no network, script or other file."""

import os
import platform
import shlex
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any

from glassformer import __version__
from glassformer.built_in import refuse_built_in
from glassformer.errors import ConfigError
from glassformer.evaluation.metrics import METRICS
from glassformer.system.files import write_safely
from glassformer.text.languages import language_name
from glassformer.text.vocabulary import SPECIALS
from glassformer.watch.explorer.standalone import EXPLORER_PAGE
from glassformer.watch.report.charts import (
    attention_charts,
    errors_by_length,
    health_curves,
    length_chart,
    shown_heads,
    training_curves,
)
from glassformer.watch.report.content import Content, gather

__all__ = ["REPORT", "report_html", "write_report"]

REPORT = "report.html"
"""The report's file name in a run."""


@dataclass(frozen=True, slots=True)
class _Number:
    """A headline number."""

    name: str
    value: str


def write_report(folder: str | Path, output: str | Path | None = None) -> Path:
    """Write the report of a run, which may be in progress, and return its file: `output`, or report.html in the run.

    Raises:
        CheckpointError: the folder is not a run, or the file cannot be written.
        ConfigError: `output` is a folder, or its folder does not exist.
    """
    refuse_built_in(folder, "report")
    path = Path(output) if output else Path(folder) / REPORT
    if path.is_dir():
        raise ConfigError(f"{path} is a folder: give a file name, such as {path / REPORT}")
    if not path.absolute().parent.is_dir() and output:
        raise ConfigError(f"the folder {path.parent} of {path.name} does not exist: make it first, or choose another")
    content = gather(folder)
    explorer = content.folder / EXPLORER_PAGE
    beside = os.path.relpath(explorer, path.parent) if explorer.is_file() else ""
    text = report_html(content, Path(beside).as_posix() if beside else "").encode("utf-8", "replace")
    write_safely(path.resolve(), lambda temporary: temporary.write_bytes(text))
    return path


def report_html(content: Content, explorer: str = "") -> str:
    """Return the HTML of the report; `explorer` is the relative address of the run's explorer page, or ""."""
    from jinja2 import Environment, StrictUndefined

    # With autoescape, because text from a corpus must never be interpreted as markup.
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    here = files("glassformer.watch.report")
    template = environment.from_string((here / "page.html.jinja").read_text(encoding="utf-8"))
    style = (here / "style.css").read_text(encoding="utf-8")
    return template.render(style=environment.filters["safe"](style), explorer=explorer, **_shown(content))


def _shown(content: Content) -> dict[str, Any]:
    """Return the template's variables by name."""
    outputs, history = content.outputs, content.history
    smoothing = content.configuration.training.label_smoothing
    curves = list(training_curves(history, smoothing, content.vocabularies[1]))
    health = list(health_curves(history))
    looked = list(attention_charts(content.example)) if content.example and content.example.attention else []
    letters = outputs is not None and outputs.measure == METRICS["cer"].name
    sections = {
        "Training": ("training", curves or health),
        "Translations": ("translations", outputs),
        "Limits": ("limits", True),
        "Attention": ("attention", looked),
        "The corpus": ("corpus", content.corpus or content.lengths),
        "The configuration": ("configuration", True),
    }
    return {
        "name": content.folder.resolve().name,
        "command": f"glassformer explore {shlex.quote(str(content.folder))}",
        "evaluation": f"glassformer evaluate {shlex.quote(str(content.folder))} --variants",
        "title": _title(content),
        "conclusion": _conclusion(content),
        "limits": _limits(content),
        "tried": content.tried,
        "summary": _summary(content),
        "sections": [(name, id) for name, (id, there) in sections.items() if there],
        "numbers": _numbers(content),
        "missing": content.missing,
        "curves": curves,
        "health": health,
        "early": content.early,
        "validations": history.validations,
        "metric": history.metric,
        "outputs": outputs,
        "outputs_about": _about_outputs(content),
        "worst": outputs.worst() if outputs else [],
        "joint": "" if letters else " ",
        "attention": looked,
        "heads": shown_heads(content.example.alignment) if content.example and content.example.alignment else "",
        "example": content.example,
        "corpus": content.corpus,
        "errors": errors_by_length(outputs, content.source_tokens) if outputs else None,
        "lengths": length_chart(content.lengths, content.lengths_of) if content.lengths else None,
        "model_about": _about_model(content),
        "config": content.config_text,
        "footer": _footer(content),
    }


def _title(content: Content) -> str:
    """Return a title that says what was trained: the languages, the size of the model, and the size of its corpus."""
    data = content.configuration.data
    languages = [language_name(one) for one in data.languages if one]
    what = f"{' to '.join(languages)}: a Transformer" if len(languages) == 2 else "A Transformer"
    of = f" with {content.parameters:,} parameters"
    return f"{what}{of}, trained on {content.pairs:,} sentence pairs" if content.pairs else f"{what}{of}"


def _conclusion(content: Content) -> str:
    """Return the result of the training in one sentence; "" before the first validation."""
    outputs, best, last = content.outputs, content.history.best, content.history.last_step
    found = []
    if outputs:
        score, count, right = outputs.scores[0], len(outputs.texts), sum(outputs.right)
        found.append(
            f"it translates {right:,} of {count:,} validation sentences exactly as a reference ({score.name} "
            f"{score.value:.1f})"
        )
    if best and best["step"] < last:
        found.append(f"its validation loss was best at step {best['step']:,} ({best['loss']:.3f}), not at the end")
    elif best:
        found.append(f"its validation loss was still best at the last step ({best['loss']:.3f})")
    begin = f"After {last:,} steps, " if last else ""
    text = f"{begin}{', and '.join(found)}."
    return text[0].upper() + text[1:] if found else ""


def _limits(content: Content) -> list[str]:
    """Return the limits of the model, one sentence each."""
    data, kinds, found = content.configuration.data, content.configuration.tokenizer.kinds, []
    if data.source_language and data.target_language:
        names = language_name(data.source_language), language_name(data.target_language)
        found.append(f"It translates only from {names[0]} to {names[1]}.")
    if data.task:
        found.append(f"It has read only texts that the built-in task {data.task} generates, and fails on other texts.")
    if kinds[0] == "words":
        known = content.vocabularies[0] - len(SPECIALS)
        found.append(f"It knows {known:,} source words and signs; it reads every other word as <unk>.")
    if content.lengths and content.lengths_of == "training pairs":
        longest = int(content.lengths[0].max())
        found.append(f"It has read no source of more than {longest:,} tokens; it may fail on longer ones.")
    if content.outputs:
        found.append("Its scores are those of validation texts; texts of another kind are usually translated worse.")
    return found


def _summary(content: Content) -> str:
    if content.origin:
        return f"Imported from {content.origin} · {content.changed:%Y-%m-%d %H:%M}"
    data = content.configuration.data
    if data.task:
        corpus = f"the built-in task {data.task}"
    else:
        named = [data.source] if isinstance(data.source, str) else list(data.source)
        corpus = named[0] + (f" and {len(named) - 1} more files" if len(named) > 1 else "")
        corpus += f" → {data.target}" if isinstance(data.target, str) and data.target else ""
    return f"Trained on {corpus} · {content.changed:%Y-%m-%d %H:%M} · {content.history.status}"


def _numbers(content: Content) -> list[_Number]:
    """Return the known headline numbers, most important first."""
    history, best, found = content.history, content.history.best, []
    if best and best.get("metric"):
        found.append(_Number(f"{history.metric}, validation, step {best['step']:,}", f"{best['metric'][1]:.1f}"))
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
        found.append(_Number("training time", _duration(history.seconds)))
    _, speeds = history.series("tokens_per_second")
    if speeds:
        found.append(_Number("target tokens per second", f"{median(speeds):,.0f}"))
    found.append(_Number("parameters", f"{content.parameters:,}"))
    if content.pairs:
        found.append(_Number("training pairs", f"{content.pairs:,}"))
    return found


def _about_outputs(content: Content) -> str:
    if not content.outputs:
        return ""
    count, right = len(content.outputs.texts), sum(content.outputs.right)
    measure = f" Examples are sorted by their {content.outputs.measure}." if content.outputs.differ else ""
    return f"{count:,} validation sentences, translated greedily; {right:,} exactly right.{measure}"


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


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
