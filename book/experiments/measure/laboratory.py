"""Shared by the experiments: the models that they train, and how they write their results."""

import argparse
import json
import platform
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import glassformer as gf
from glassformer.jobs import read_log, train
from glassformer.model.feed_forward import FeedForward
from glassformer.model.residual import Residual
from glassformer.recipes.toml import load
from glassformer.watch.inspection import plant
from glassformer.watch.inspection.mistakes import replaced

ROOT = Path(__file__).parents[3]
RUNS = ROOT / "build" / "experiments"
DEMO = ROOT / "runs" / "demo"
RESULTS = Path(__file__).parents[1] / "results"
SEEDS = (1, 2, 3)


PARTS: Mapping[str, tuple[type[nn.Module], str, Callable[..., Callable[..., Tensor]]]] = {
    "feed-forward": (FeedForward, "forward", lambda _: torch.zeros_like),
    "residual": (Residual, "add", lambda one: lambda _, share: one.dropout(share)),
    "norm": (nn.LayerNorm, "forward", lambda _: lambda x: x),
}
"""Parts that can be left out: the class, the method that is replaced in each of its objects, and by what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A recipe's model with changed settings, with classic mistakes planted in it, or without a part."""

    recipe: str = "demo"
    settings: tuple[str, ...] = ()
    mistakes: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    """Names of `PARTS`."""

    @contextmanager
    def change(self, model: gf.Transformer) -> Iterator[None]:
        """Give a model this variant's mistakes, and leave out its parts, within a `with` block."""
        with plant(model, *self.mistakes), ExitStack() as stack:
            for kind, method, make in map(PARTS.__getitem__, self.without):
                for part in [one for one in model.modules() if isinstance(one, kind)]:
                    stack.enter_context(replaced(part, method, make(part)))
            yield


_SHORT = ("training.steps=600", "training.validate_every=100", "training.metric_lines=100", "training.snapshots=0")
# A quarter of the weights, and a third of the tokens in each step: many models in a few minutes.
_SMALL = (*_SHORT, "model.d_model=64", "model.heads=4", "model.d_ff=256", "training.batch_tokens=1000")
_ONE_HEAD = ("model.heads=1", "model.d_k=128", "model.d_v=128")
# Deep and narrow, because depth makes the placement of the norms matter; short sentences, so that training is quick.
_DEEP = ("model.encoder_layers=6", "model.decoder_layers=6", "model.d_model=64", "model.heads=4", "model.d_ff=256")
_DEEP += ("training.steps=600", "training.validate_every=50", "training.metric_lines=100", "training.batch_tokens=600")
_DEEP += ("training.learning_rate=2e-3",)
# The schedule needs at least one step of warm-up; the first step then has the full rate.
_NONE, _WARM, _PRE = "training.warmup=1", "training.warmup=100", "model.norm=pre"

VARIANTS = {
    "demo": Variant(),
    "short": Variant(settings=_SHORT),
    "no-scale": Variant(settings=_SHORT, mistakes=("no_scale",)),
    "one-head": Variant(settings=(*_SHORT, *_ONE_HEAD)),
    "one-head-no-scale": Variant(settings=(*_SHORT, *_ONE_HEAD), mistakes=("no_scale",)),
    "no-positions": Variant(settings=(*_SHORT, "model.positions=none")),
    "no-embedding-scale": Variant(settings=_SHORT, mistakes=("no_embedding_scale",)),
    "small": Variant(settings=_SMALL),
    "small-no-feed-forward": Variant(settings=_SMALL, without=("feed-forward",)),
    "small-no-residual": Variant(settings=_SMALL, without=("residual",)),
    "small-no-norm": Variant(settings=_SMALL, without=("norm",)),
    "post-warm-up": Variant(recipe="copy", settings=(*_DEEP, _WARM)),
    "post": Variant(recipe="copy", settings=(*_DEEP, _NONE)),
    "pre-warm-up": Variant(recipe="copy", settings=(*_DEEP, _WARM, _PRE)),
    "pre": Variant(recipe="copy", settings=(*_DEEP, _NONE, _PRE)),
}
"""Every model that an experiment trains. "demo" is the whole recipe; the others train for fewer steps."""


def trained(name: str, seed: int) -> gf.Translator:
    """Return a trained variant, training it now if needed. Its mistakes are not planted in the returned model."""
    folder, variant = RUNS / f"{name}-{seed}", VARIANTS[name]
    if (name, seed) == ("demo", 1) and not folder.exists() and (DEMO / "model.safetensors").exists():
        folder = DEMO  # `make demo` has trained it, with the same recipe and seed
    configuration = load(variant.recipe, [f"run.directory={folder}", f"run.seed={seed}", *variant.settings])
    log = read_log(folder / "metrics.jsonl")
    if not log or log[-1]["type"] != "end":
        say(f"training {name}, seed {seed}")
        train(configuration, change=variant.change)
    return gf.Translator.load(folder)


def curve(name: str, seed: int) -> list[dict[str, Any]]:
    """Return step, loss (nats per target token) and exact (%) of each validation of a trained variant."""
    log = read_log(RUNS / f"{name}-{seed}" / "metrics.jsonl")
    lines = [line for line in log if line["type"] == "validation"]
    return [{"step": line["step"], "loss": line["loss"], "exact": line["metric"][1]} for line in lines]


def arguments(description: str | None) -> argparse.Namespace:
    """Return the arguments of an experiment's command: limit (int or None), seeds (tuple), output (path or None)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--limit", type=int, metavar="N", help="Use N sentences or pairs of each split (default: all).")
    parser.add_argument(
        "--seeds", type=_seeds, default=SEEDS, metavar="S,S", help="Seeds of the runs (default: 1,2,3)."
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="Write the result to FILE (default: the committed result)."
    )
    return parser.parse_args()


def _seeds(text: str) -> tuple[int, ...]:
    return tuple(int(seed) for seed in text.split(","))


def write(name: str, results: Mapping[str, Any], namespace: argparse.Namespace) -> None:
    """Write an experiment's results, with everything needed to repeat it."""
    about = {
        "command": shlex.join(["python", f"book/experiments/measure/{name}.py", *sys.argv[1:]]),
        "seeds": list(namespace.seeds),
        "limit": namespace.limit,
        "versions": {
            "glassformer": version("glassformer"),
            "torch": torch.__version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
        },
    }
    path = namespace.output or RESULTS / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(rounded({**about, **results}), indent=1, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")
    say(f"written: {path}")


def rounded(value: Any) -> Any:
    """Return results with numbers of five digits, enough for a picture and for comparing changes."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def say(text: str) -> None:
    """Print a line of progress to stderr."""
    print(text, file=sys.stderr, flush=True)
