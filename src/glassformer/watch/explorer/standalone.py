"""The explorer as one self-contained HTML page, which needs no network, server or other file.

All text from a model or a user is data. The data is in a separate element without any `<`, and the page shows it as
text. The page's Content-Security-Policy forbids all requests, and all scripts except the explorer's module.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from glassformer.errors import ConfigError
from glassformer.system.files import write_safely
from glassformer.translator import Translator
from glassformer.watch.explorer.module import explorer_module
from glassformer.watch.explorer.payload import payload, recorded_payload

__all__ = ["EXPLORER_PAGE", "Page", "check_path", "page_html", "translation", "write_page"]

EXPLORER_PAGE = "explorer.html"
"""The default file name of the page in the folder of its run."""
BOOTSTRAP = """
mount(document.getElementById("glassformer"), JSON.parse(document.getElementById("glassformer-data").textContent));
"""
TEMPLATE = """<!DOCTYPE html>
<html lang="en" data-explorer>
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>body {{ margin: 0; }}</style>
</head>
<body>
<div id="glassformer">
<p dir="auto">{sentence}</p>
<p dir="auto">{translation}</p>
<noscript><p>This page needs JavaScript: please switch it on.</p></noscript>
</div>
<script type="application/json" id="glassformer-data">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page that was written."""

    path: Path
    size: int
    """Size of the file, in bytes."""
    left_out: tuple[str, ...]
    """For each part that the page lacks, a sentence with the reason, and possibly what to do."""


def page_html(shown: Mapping[str, Any], translation: str = "") -> str:
    """Return the page for a payload; before its script runs, the page shows the sentence and its translation."""
    script = explorer_module() + BOOTSTRAP
    return TEMPLATE.format(
        policy=escape(_policy(script, asks_server=bool(shown["host"]))),
        title=escape(f"{shown['name']} – glassformer"),
        sentence=escape(shown["sentence"]),
        translation=escape(translation),
        data=_data(shown),
        script=script,
    )


def write_page(
    translator: Translator, path: Path, sentence: str = "", *, snapshots: int = 0, recorded: bool = False
) -> Page:
    """Write one self-contained page about a model, and return a description of it.

    The page contains up to `snapshots` snapshots of the training, with 8 bits per weight. With `recorded`, the page
    contains no weights and no snapshots, only PyTorch's numbers for `sentence`.

    Raises:
        ConfigError: `path` cannot be written as a file, or the model is too large for a page that is not recorded.
        DataError: the sentence cannot be translated, or is too long for a recorded page.
        CheckpointError: the page cannot be written, or a snapshot is damaged.
    """
    check_path(path)
    if recorded:
        shown = recorded_payload(translator, sentence)
    else:
        shown = payload(translator, sentence, checkpoints=snapshots, story="first")
    text = page_html(shown, translation(translator, shown)).encode("utf-8", "replace")
    write_safely(path.resolve(), lambda temporary: temporary.write_bytes(text))
    return Page(path=path, size=len(text), left_out=tuple(_left_out(shown, snapshots)))


def translation(translator: Translator, shown: Mapping[str, Any]) -> str:
    """Return the text of the translation in a payload."""
    return translator.bundle.target_tokenizer.decode(shown["trace"]["target_ids"])


def check_path(path: Path) -> None:
    """Raise ConfigError unless a page can be written to this path."""
    if path.is_dir():
        raise ConfigError(f"{path} is a folder: give a file name, such as {path / EXPLORER_PAGE}")
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path} is not a regular file; give a file name, such as {EXPLORER_PAGE}")
    if not path.parent.is_dir():
        raise ConfigError(f"the folder {path.parent} of {path.name} does not exist: make it first, or choose another")


def _policy(script: str, *, asks_server: bool) -> str:
    """Return the Content-Security-Policy, which allows only this script, and only requests to the page's own server."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = {
        "default-src": "'none'",
        "script-src": f"'sha256-{digest}'",
        "style-src": "'unsafe-inline'",
        "img-src": "data: blob:",
        "connect-src": "'self'" if asks_server else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _data(shown: Mapping[str, Any]) -> str:
    """Return JSON without any `<`, safe inside a <script>; to escape only `</` would miss `<!--<script`."""
    return json.dumps(shown, allow_nan=False, separators=(",", ":")).replace("<", r"\u003c")


def _left_out(shown: Mapping[str, Any], snapshots: int) -> list[str]:
    lines = []
    if snapshots and shown["left_out"]:
        steps = ", ".join(map(str, shown["left_out"]))
        lines.append(f"snapshots of the training that did not fit: step {steps}")
    elif snapshots and not shown["checkpoints"]:
        lines.append("the training: the run has no snapshots; train with training.snapshots = 6 to keep some")
    return lines
