"""Verify a converted model: it must give the run's own outputs nearly the same log probabilities as the run does."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from glassformer.bundle import Bundle
from glassformer.decoding.engine import Job, Search
from glassformer.decoding.hypothesis import EXTRA_LENGTH, max_length
from glassformer.decoding.options import Quantization
from glassformer.errors import CheckpointError, ConfigError
from glassformer.interop.ctranslate2_engine import CTranslate2Engine
from glassformer.interop.ctranslate2_model import positions_of
from glassformer.recipes.configuration import DecodingConfig
from glassformer.system.machine import saturates_int8
from glassformer.text.vocabulary import UNK_ID

__all__ = ["Verification", "verify"]

PROBE_SOURCES = 32
"""Number of random sources."""
LONGEST_PROBE = 100
"""Maximum number of tokens in a random source."""
EXACT = 1e-3
"""Largest difference of a token's log probability allowed in float32: a hundred times the effect of summing in a
different order, and a hundredth of the effect of a wrong matrix."""
NARROW = 0.1
"""Mean difference of a token's log probability allowed with fewer bits: a target's perplexity then changes by at most
about a tenth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """How closely a converted model reproduces its run's answers."""

    outputs: int
    """Number of outputs compared, which the run writes by greedy search."""
    tokens: int
    """Number of tokens in these outputs."""
    largest: float
    """Largest difference of a token's log probability (natural logarithm)."""
    mean: float
    """Mean difference of a token's log probability."""
    equal: int
    """Number of outputs that the converted model writes identically."""


def verify(
    bundle: Bundle, folder: Path, quantization: Quantization, probes: Sequence[str] | None = None
) -> Verification:
    """Return how closely the export in a folder reproduces a run's answers to the probes, or to random tokens.

    Raises:
        CheckpointError: the answers differ by more than quantization explains.
        ConfigError: no probe has a valid length.
    """
    from glassformer.decoding.torch_engine import TorchEngine

    greedily = DecodingConfig(beam_size=1)
    jobs = _jobs(bundle, _random_ids(bundle) if probes is None else _ids(bundle, probes))
    theirs = CTranslate2Engine(folder, bundle, positions=positions_of(bundle.model_config))
    ours = [best for [best] in TorchEngine(bundle.model()).decode(jobs, Search(settings=greedily))]
    scores = theirs.score([(job.sources, one.tokens) for job, one in zip(jobs, ours, strict=True)])
    differences = [
        abs(our - their)
        for one, log_probs in zip(ours, scores, strict=True)
        for our, their in zip(one.token_log_probs, log_probs, strict=True)
    ]
    written = theirs.decode(jobs, Search(settings=greedily, log_probs=False))
    found = Verification(
        outputs=len(jobs),
        tokens=len(differences),
        largest=max(differences),
        mean=sum(differences) / len(differences),
        equal=sum(one.tokens == other.tokens for one, [other] in zip(ours, written, strict=True)),
    )
    _check(found, quantization)
    return found


def _check(found: Verification, quantization: Quantization) -> None:
    what, got, limit = ("largest", found.largest, EXACT) if quantization == "float32" else ("mean", found.mean, NARROW)
    if not got <= limit:
        cause = "; this processor has no VNNI and computes 8-bit products inexactly" if _saturates(quantization) else ""
        raise CheckpointError(
            f"the converted model ({quantization}) does not give the run's answers: expected a {what} difference of a "
            f"token's log probability of at most {limit:g}, got {got:.2g} ({found.equal} of {found.outputs} outputs "
            f"are equal){cause}; export with --quantization float32, or use the engine torch"
        )


def _saturates(quantization: Quantization) -> bool:
    return quantization.startswith("int") and saturates_int8()  # CTranslate2 computes int16 in 8 bits on AMD's


def _jobs(bundle: Bundle, sources: Sequence[Sequence[int]]) -> list[Job]:
    config = bundle.model_config
    fitting = [(*ids, config.eos_id) for ids in sources if ids and len(ids) < positions_of(config)]
    if not fitting:
        raise ConfigError(
            f"--probe: expected a text of 1 to {positions_of(config) - 1} tokens, got none; choose another file, or "
            "leave out --probe"
        )
    return [Job((ids,), (), max_length(config, len(ids), EXTRA_LENGTH)) for ids in fitting]


def _ids(bundle: Bundle, texts: Sequence[str]) -> list[list[int]]:
    return bundle.source_tokenizer.encode_all(texts)


def _random_ids(bundle: Bundle) -> list[list[int]]:
    chance, config = random.Random(1), bundle.model_config
    longest = min(LONGEST_PROBE, positions_of(config) - 1)
    ids = range(min(UNK_ID, config.source_vocab_size - 1), config.source_vocab_size)
    return [chance.choices(ids, k=1 + number * (longest - 1) // (PROBE_SOURCES - 1)) for number in range(PROBE_SOURCES)]
