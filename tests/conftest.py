"""What more than one folder of tests needs. Only the fixtures that use torch import it: half of the tests do not."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))  # so that tests can say `from reference.attention import …`

# The same examples in every run; `--hypothesis-profile=explore` looks for new ones. Our function-scoped fixtures hold a
# default dtype and a random state, which examples may share.
SHARED = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]}
settings.register_profile("same", derandomize=True, **SHARED)
settings.register_profile("explore", max_examples=500, **SHARED)
settings.load_profile("same")

PRIMES: dict[str, Any] = {
    "source_vocab_size": 19,
    "target_vocab_size": 23,
    "d_model": 11,
    "heads": 3,
    "d_k": 5,
    "d_v": 7,
    "d_ff": 13,
    "encoder_layers": 2,
    "decoder_layers": 2,
}
"""Sizes that are all different, so that swapped axes cannot fit by accident."""


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the folder of the demo, trained as users train it, and what the command printed. Takes minutes."""
    folder = tmp_path_factory.mktemp("demo") / "demo"
    command = [sys.executable, "-m", "glassformer", "demo", "--directory", str(folder)]
    return folder, subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def seed() -> Iterator[None]:
    """Start torch's generator from a fixed state, and put the old state back."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(20170612)
        yield


@pytest.fixture
def float64() -> Iterator[None]:
    """Make float64 the default dtype, and put the old one back."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Switch the shape checks of the tests off, as they are for users: our own messages speak."""
    import jaxtyping

    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def make_model(seed: None, float64: None) -> Callable[..., Any]:
    """Return a function that makes a small model in evaluation mode, of prime sizes unless told otherwise.

    Every parameter is random, biases and norms too: one that is forgotten or misplaced changes the result.
    """
    import torch

    import glassformer as gf

    def make(**settings: Any) -> gf.Transformer:
        model = gf.Transformer(gf.ModelConfig(**{**PRIMES, **settings})).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
        return model

    return make
