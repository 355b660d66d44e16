"""Runs for reports: a trained run, and logs of invented training runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import glassformer as gf
import word_by_word

CONFIG = f"""
[data]
source = "train.tsv"
valid_lines = 13
{word_by_word.MODEL}[training]
steps = 60
batch_tokens = 300
learning_rate = 5e-3
warmup = 10
validate_every = 20
checkpoint_every = 30
log_every = 2
metric = "bleu"
"""

WORDS = {word: french for word, french in word_by_word.WORDS.items() if word != "and"} | {"<script>": "</script>"}


@pytest.fixture(scope="session")
def run(made_once: Callable[..., Path]) -> Path:
    """Return a run trained on 200 pairs, two of which have a blank side; tests must not change it."""
    return made_once("report", train) / "run"


def train(folder: Path) -> None:
    """Train the run."""
    folder.mkdir()
    lines = [("", "le chat"), ("the cat", " "), *word_by_word.pairs(200, 7, 2, 7, WORDS)]
    (folder / "train.tsv").write_text(word_by_word.tsv(lines), encoding="utf-8")
    (folder / "small.toml").write_text(CONFIG, encoding="utf-8")
    gf.train(folder / "small.toml", data=folder, overrides=[f"run.directory={folder / 'run'}"])


@pytest.fixture
def log() -> Callable[..., list[dict[str, Any]]]:
    """Return a function that makes the log of a training run."""

    def make(steps: int, *, every: int = 5, end: str | None = "steps", **more: Any) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = []
        for step in range(every, steps + 1, every):
            update = {"step": step, "epoch": 1 + step // 20, "loss": 9 / step, "learning_rate": 1e-3}
            update |= {"gradient_norm": 1.0, "target_tokens": 100, "tokens_per_second": 50.0, "seconds": 2.0 * step}
            lines.append({"type": "step", **update, "seconds_left": 0.0, **more})
            if step % 20 == 0:
                validated = {"loss": 5 / step, "perplexity": 2.0, "metric": ["BLEU", step / 2, True], "best": True}
                lines.append({"type": "validation", "step": step, **validated})
        if end:
            lines.append({"type": "end", "step": steps, "reason": end, "seconds": 2.0 * steps})
        return lines

    return make
