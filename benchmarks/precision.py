"""Compare what a model learns in bf16 and in float32: `python -m benchmarks.precision --data DIR` (Multi30k's files).

The same configuration is trained in both precisions, with several seeds each, for the same number of updates. All
models are validated in float32. The difference between the means of both precisions is compared with the differences
between seeds.

Writes results/precision.json.
"""

import argparse
import math
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from benchmarks.command import as_command
from benchmarks.results import described, machine, read, table, write
from benchmarks.work import WORK
from glassformer.jobs.log import METRICS_FILE, read_log

NAME = "precision"
RECIPE = "multi30k-de-en"
PRECISIONS = ("fp32", "bf16")


def train(run: Path, config: str, data: Path, steps: int, precision: str, seed: int) -> list[dict[str, float]]:
    """Train a model; return its validation losses with their steps."""
    shutil.rmtree(run, ignore_errors=True)
    settings = [f"run.directory={run}", f"run.seed={seed}", f"training.precision={precision}", "training.minutes=0"]
    settings += [f"training.steps={steps}", f"training.validate_every={max(steps // 8, 1)}", "training.metric=none"]
    settings += [
        "training.best_by=loss",
        f"training.checkpoint_every={steps}",
        f"data.prepared={run.parent / 'prepared'}",
    ]
    options = [word for setting in settings for word in ("--set", setting)]
    subprocess.run([sys.executable, "-m", "glassformer", "train", config, "--data", str(data), *options], check=True)
    validations = [line for line in read_log(run / METRICS_FILE) if line["type"] == "validation"]
    return [{"step": line["step"], "loss": line["loss"]} for line in validations]


def verdict(losses: dict[str, list[float]]) -> dict[str, float]:
    """Return the difference of the means (bf16 − fp32), its standard error, and the standard deviation over seeds."""
    fp32, bf16 = (losses[precision] for precision in PRECISIONS)
    pooled = math.sqrt((stdev(fp32) ** 2 + stdev(bf16) ** 2) / 2)
    error = math.sqrt(stdev(fp32) ** 2 / len(fp32) + stdev(bf16) ** 2 / len(bf16))
    return {"difference": mean(bf16) - mean(fp32), "error": error, "seeds": pooled}


def markdown(figures: dict[str, Any]) -> str:
    """Return the figures as Markdown: a table and the verdict."""
    losses = {
        precision: [curve[-1]["loss"] for curve in figures["curves"][precision].values()] for precision in PRECISIONS
    }
    rows = [
        [precision, *(f"{loss:.4f}" for loss in losses[precision]), f"{mean(losses[precision]):.4f}"]
        for precision in PRECISIONS
    ]
    head = ["validation loss", *(f"seed {seed}" for seed in figures["seeds"]), "mean"]
    found = verdict(losses)
    within = "within" if abs(found["difference"]) <= found["seeds"] else "not within"
    sign = "−" if found["difference"] < 0 else "+"
    return (
        f"## Precision\n\nThis section compares the validation loss of `{figures['config']}` after "
        f"{figures['steps']} updates in bf16 and in float32. The difference is {within} the noise of seeds: "
        f"bf16 − float32 = {sign}{abs(found['difference']):.4f} ± {found['error']:.4f} (standard error), and the "
        f"standard deviation between seeds is {found['seeds']:.4f}.\n\n`{figures['command']}`, {figures['day']}.\n\n"
        f"{table(head, rows)}\n"
        f"{described(figures['machine'])}.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of Multi30k's files")
    parser.add_argument("--work", type=Path, default=WORK, help="folder for the runs [default: %(default)s]")
    parser.add_argument("--config", default=RECIPE, help="recipe or TOML file [default: %(default)s]")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="seeds, at least two")
    given = parser.parse_args()
    if len(given.seeds) < 2:
        parser.error(f"--seeds: expected at least two, got {len(given.seeds)}")
    of = machine()
    curves: dict[str, dict[str, Any]] = {precision: {} for precision in PRECISIONS}
    for seed in given.seeds:
        for precision in PRECISIONS:
            run = given.work / NAME / f"{precision}-{seed}"
            curves[precision][str(seed)] = train(run, given.config, given.data, given.steps, precision, seed)
    config = Path(given.config).name
    write(NAME, {"config": config, "steps": given.steps, "seeds": given.seeds, "curves": curves}, of)
    print(markdown(read(NAME)))


if __name__ == "__main__":
    as_command(main)
