"""The command as a separate process: signals, pipes, imports."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from glassformer import cli

COMMAND = [sys.executable, "-m", "glassformer"]
CONFIG = """
[data]
source = "train.tsv"
[tokenizer]
kind = "words"
[model]
preset = "tiny"
d_model = 16
heads = 2
d_ff = 24
[training]
steps = 100000
batch_tokens = 300
validate_every = 5
checkpoint_every = 5
log_every = 1
"""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Return a folder with a corpus and the configuration of a training run that would take hours."""
    letters = random.Random(3)
    lines = (" ".join(letters.choices("abcdefgh", k=5)) for _ in range(300))
    (tmp_path / "train.tsv").write_text("".join(f"{line}\t{line}\n" for line in lines))
    (tmp_path / "long.toml").write_text(CONFIG)
    return tmp_path


@contextmanager
def training(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the training, yield it after its first checkpoint, and end it in any case."""
    before = set(folder.glob("runs/long/checkpoints/step-*"))
    arguments = [*COMMAND, "train", "long.toml"]
    with subprocess.Popen(arguments, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            while process.poll() is None and not set(folder.glob("runs/long/checkpoints/step-*")) - before:
                time.sleep(0.05)
            yield process
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_ctrl_c_in_training_loses_nothing_and_the_same_command_resumes(corpus, number):
    """A second Ctrl-C ends the resumed training at once, without a traceback."""
    with training(corpus) as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopping after this step" in err
    assert "Traceback" not in err
    step = int(out.split("Stopped at step ")[1].split(";")[0])
    assert (corpus / f"runs/long/checkpoints/step-{step:08d}/state.json").is_file()

    with training(corpus) as again:
        for _ in range(50):  # until one signal arrives while the first one is still being handled
            again.send_signal(signal.SIGINT)
        _, err = again.communicate(timeout=60)
    assert "Traceback" not in err
    assert f"resuming from step {step}" in err
    assert list((corpus / "runs/long/checkpoints").glob("step-*"))
    entries = [json.loads(line) for line in (corpus / "runs/long/metrics.jsonl").read_text().splitlines()]
    steps = [entry["step"] for entry in entries if entry["type"] == "step"]
    assert steps == list(range(1, len(steps) + 1))


def modules_after(code: str) -> set[str]:
    """Return the modules that a new interpreter has loaded after running this code."""
    script = f"{code}\nimport sys; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


HEAVY = {"torch", "numpy", "sentencepiece", "sacrebleu", "pydantic", "rich", "safetensors"}


def test_importing_glassformer_loads_nothing_heavy():
    assert not modules_after("import glassformer") & {*HEAVY, "typer"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    ["", "train", *(pytest.param(name, marks=pytest.mark.long) for name in ("translate", "demo", "trace", "estimate"))],
)
def test_help_loads_nothing_heavy(command):
    arguments = [word for word in (command, "--help") if word]
    code = f"from glassformer.cli import main\ntry: main({arguments})\nexcept SystemExit as end: assert not end.code"
    assert not modules_after(code) & (HEAVY - {"pydantic"})  # Typer itself imports pydantic, to recognise its types


@pytest.mark.slow
def test_a_command_loads_no_other_command():
    code = "from glassformer.cli import main\ntry: main(['translate', '--help'])\nexcept SystemExit: pass"
    files = {path.stem for path in Path(cli.__file__).parent.rglob("*.py")} & set(cli.COMMANDS)
    loaded = {name.rpartition(".")[2] for name in modules_after(code) if name.count(".") == 3}
    assert loaded & files == {"translate"}


def test_the_modules_for_an_engine_without_torch_do_not_import_torch():
    loaded = modules_after(
        "import glassformer.translator, glassformer.bundle, glassformer.model.config, glassformer.recipes.toml\n"
        "from glassformer.system.machine import keep_memory; keep_memory()"
    )
    assert "torch" not in loaded


@pytest.mark.slow
def test_a_closed_pipe_is_not_an_error(tmp_path):
    script = f"{sys.executable} -m glassformer estimate --presets | head -1"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env=os.environ)
    assert "Traceback" not in done.stderr
    assert done.stdout.count("\n") == 1
