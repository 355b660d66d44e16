"""Whether a converted model gives the answers of the run it comes from: both score what the run itself says."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from glassformer.bundle import Bundle
from glassformer.decoding.engine import Job, Quantization, Search
from glassformer.decoding.hypothesis import max_length
from glassformer.errors import CheckpointError, ConfigError
from glassformer.interop.ctranslate2_engine import CTranslate2Engine
from glassformer.interop.ctranslate2_model import positions_of
from glassformer.recipes.configuration import DecodingConfig
from glassformer.text.vocabulary import UNK_ID

__all__ = ["Verification", "verify"]

PROBE_SOURCES = 32
LONGEST_PROBE = 100
"""Random tokens: so many sources, so long at most."""
EXACT = 1e-3
"""Largest difference of a token's log probability that float32 may have: a hundred times what rounding makes of the
same sums in another order, and a hundredth of what any wrong matrix makes."""
NARROW = 0.1
"""Mean difference of a token's log probability that fewer bits may have: the perplexity of a target changes by less
than a tenth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """How closely a converted model keeps to the run's own answers."""

    outputs: int
    """How many outputs were compared: what the run itself writes, greedily."""
    tokens: int
    """How many tokens these have."""
    largest: float
    """Largest difference of a token's log probability (natural logarithm)."""
    mean: float
    """Mean difference."""
    equal: int
    """How many outputs the converted model writes just so."""


def verify(
    bundle: Bundle, folder: Path, quantization: Quantization, probes: Sequence[str] | None = None
) -> Verification:
    """Return how closely the export in a folder keeps to a run's answers to some texts, or else to random tokens.

    Raises:
        CheckpointError: they differ by more than the narrower numbers can be made answerable for.
        ConfigError: there are no texts.
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
        raise CheckpointError(
            f"the converted model ({quantization}) does not give the run's answers: the {what} difference of a token's "
            f"log probability is {got:.2g}, expected at most {limit:g}, and {found.equal} of {found.outputs} outputs "
            "are equal: export with --quantization float32, or use the engine torch"
        )


def _jobs(bundle: Bundle, sources: Sequence[Sequence[int]]) -> list[Job]:
    config = bundle.model_config
    fitting = [(*ids, config.eos_id) for ids in sources if ids and len(ids) < positions_of(config)]
    if not fitting:
        raise ConfigError("there is no text to verify the export with: give a file with some, or leave --probe out")
    return [Job((ids,), (), max_length(config, len(ids))) for ids in fitting]


def _ids(bundle: Bundle, texts: Sequence[str]) -> list[list[int]]:
    return bundle.source_tokenizer.encode_all(texts)


def _random_ids(bundle: Bundle) -> list[list[int]]:
    chance, config = random.Random(1), bundle.model_config
    longest = min(LONGEST_PROBE, positions_of(config) - 1)
    ids = range(min(UNK_ID, config.source_vocab_size - 1), config.source_vocab_size)
    return [chance.choices(ids, k=1 + number * (longest - 1) // (PROBE_SOURCES - 1)) for number in range(PROBE_SOURCES)]
