"""Measure how long a checkpoint delays training: `python -m benchmarks.checkpoints`.

A model of the preset "small" (7.6 million parameters) takes the same steps without checkpoints, with checkpoints for
which training waits, and with checkpoints written in the background. The three variants take turns, so noise of the
machine affects all variants equally.
"""

import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import torch

import glassformer as gf
from benchmarks.command import as_command
from glassformer.corpus.batching import Examples, Position, stream
from glassformer.recipes.configuration import TrainingConfig
from glassformer.system.machine import keep_memory
from glassformer.training.checkpoint import Checkpoints, TrainingState
from glassformer.training.gradients import batch_loss
from glassformer.training.optimiser import make_optimiser

ROUNDS = 5
EVERY = 5
"""Number of steps from one checkpoint to the next."""
VOCABULARY = 8000
KINDS = ("none", "waited for", "in the background")


def examples() -> Examples:
    random = np.random.default_rng(1)
    lengths = random.integers(6, 24, size=4000)
    source, target = ([random.integers(4, VOCABULARY, length) for length in lengths] for _ in range(2))
    return Examples(source=source, target=target)


def main() -> None:
    keep_memory()
    torch.manual_seed(1)
    model = gf.Transformer(gf.ModelConfig.preset("small", vocab_size=VOCABULARY)).train()
    config = TrainingConfig(batch_tokens=1500)
    optimiser, batches = make_optimiser(model, config), stream(examples(), 1500, seed=1, start=Position())
    parameters = sum(parameter.numel() for parameter in model.parameters())
    steps: dict[str, list[float]] = {kind: [] for kind in KINDS}
    rounds: dict[str, list[float]] = {kind: [] for kind in KINDS}
    stalls: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        checkpoints = Checkpoints(Path(folder) / "checkpoints", keep=2)
        for number in range(ROUNDS + 1):
            for kind in KINDS:
                begun = time.perf_counter()
                if kind != "none":
                    getattr(checkpoints, "save" if kind == "waited for" else "begin")(
                        model, optimiser, TrainingState(step=number)
                    )
                stall, times = time.perf_counter() - begun, []
                for _ in range(EVERY):
                    started = time.perf_counter()
                    batch, _ = next(batches)
                    (batch_loss(model, batch, 0.1).smoothed / batch.target_tokens).backward()
                    optimiser.step()
                    optimiser.zero_grad()
                    times.append(time.perf_counter() - started)
                whole = time.perf_counter() - begun
                checkpoints.wait()
                if number:  # skips the first round, which only warms up
                    steps[kind] += times
                    stalls[kind].append(stall)
                    rounds[kind].append(whole)
        written = [path.stat().st_size for path in checkpoints.paths()[-1].iterdir()]
    print(f"{parameters:,} parameters, {sum(written) / 1e6:.0f} MB a checkpoint, {torch.get_num_threads()} threads")
    print(f"{'checkpoints':<18}{'until training resumes':>24}{'step, median':>15}{f'{EVERY} steps and one':>20}")
    for kind in KINDS:
        print(
            f"{kind:<18}{median(stalls[kind]) * 1000:>21.0f} ms{median(steps[kind]) * 1000:>12.0f} ms"
            f"{median(rounds[kind]) * 1000:>17.0f} ms"
        )


if __name__ == "__main__":
    as_command(main)
