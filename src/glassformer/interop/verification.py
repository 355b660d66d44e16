"""Verify an export: the other program must give the run's outputs nearly the same log probabilities as the run does.

CTranslate2 is an engine of this package and computes in this process. Any other program computes in a process of its
own, which runs a probe program: the file `probe.py` in the format's folder, which imports the other program and nothing
of glassformer. The probe program reads JSON from its standard input: {"sources": [text, …], "targets": [[id, …], …]}.
It writes JSON with three lists, which have one entry for each source: "source_ids" are the ids that the other tokenizer
gives, with `<eos>`; "log_probs" are the log probabilities of the target's tokens; and "texts" are the outputs of the
other program's greedy search. This search must not stop before the run's maximum length, but may stop later. All ids
are the run's ids; targets have no `<bos>` and end with `<eos>`.
"""

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from glassformer.bundle import Bundle
from glassformer.decoding.engine import Ids, Job, Search
from glassformer.decoding.hypothesis import EXTRA_LENGTH, Hypothesis, max_length
from glassformer.decoding.options import Quantization
from glassformer.errors import CheckpointError, ConfigError, MissingDependencyError, shortened
from glassformer.interop.ctranslate2.engine import CTranslate2Engine
from glassformer.interop.ctranslate2.model import positions_of
from glassformer.interop.ctranslate2.saturation import saturates_int8
from glassformer.interop.exporting import ExportOptions
from glassformer.recipes.configuration import DecodingConfig
from glassformer.system.files import parse_json
from glassformer.text.vocabulary import UNK_ID

__all__ = ["Verification", "verify_ctranslate2", "verify_outside"]

PROBE_SOURCES = 32
"""Number of random sources with which an export is verified by default."""
LONGEST_PROBE = 100
"""Maximum number of tokens in a random source."""
EXACT = 1e-3
"""Maximum difference of a token's log probability in float32. It is a hundred times the effect of summing in a
different order, and a hundredth of the effect of a wrong matrix."""
NARROW = 0.1
"""Maximum mean difference of a token's log probability with fewer bits than float32; a target's perplexity then changes
by about a tenth at most."""
CUT_ALIKE = 0.5
"""Minimum share of probe texts that the other tokenizer must cut as the run's tokenizer does. The other tokenizer lacks
our normalisation, which changes few texts; a wrong vocabulary changes nearly all texts."""

GREEDY = DecodingConfig(beam_size=1)
PROGRAMS = Path(__file__).parent
_PROGRAM_NEEDS = re.compile(r"^ModuleNotFoundError: No module named '([\w.]+)'", flags=re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """How closely an exported model reproduces the log probabilities and the outputs of its run."""

    outputs: int
    """Number of the run's outputs (by greedy search) that were compared."""
    tokens: int
    """Number of tokens in these outputs."""
    largest: float
    """Largest difference of a token's log probability (natural logarithm)."""
    mean: float
    """Mean difference of a token's log probability."""
    equal: int
    """Number of outputs that the exported model writes identically."""
    cut_differently: int = 0
    """Number of further probe texts whose outputs are not compared, because the other program cuts them into different
    tokens."""


class _Answers(NamedTuple):
    """A program's answers to the probe texts: ids of the source, log probabilities of the target, and the output."""

    source_ids: Sequence[Ids]
    log_probs: Sequence[Sequence[float]]
    outputs: Sequence[object]


def verify_ctranslate2(
    bundle: Bundle, folder: Path, quantization: Quantization, probes: Sequence[str] | None = None
) -> Verification:
    """Return how closely the CTranslate2 model in a folder reproduces a run, on probe texts or on random tokens.

    Raises:
        CheckpointError: the log probabilities differ by more than quantization explains.
        ConfigError: no probe text has a valid length.
    """
    jobs = _jobs(bundle, _random_ids(bundle) if probes is None else bundle.source_tokenizer.encode_all(probes))
    ours = _outputs(bundle, jobs)
    theirs = CTranslate2Engine(folder, bundle, positions=positions_of(bundle.model_config))
    scores = theirs.score([(job.sources, one.tokens) for job, one in zip(jobs, ours, strict=True)])
    written = theirs.decode(jobs, Search(settings=GREEDY, log_probs=False))
    answers = _Answers([job.sources[0] for job in jobs], scores, [best.tokens for [best] in written])
    found = _compared(jobs, ours, [one.tokens for one in ours], answers)
    _check(found, quantization)
    return found


def verify_outside(
    program: str,
    packages: str,
    bundle: Bundle,
    path: Path,
    options: ExportOptions,
) -> Verification | None:
    """Return how closely another program reproduces a run from its export, on probe texts or on random texts.

    Return None if the options say not to verify the export.

    Args:
        program: the folder of `interop` with the probe program.
        packages: the arguments of `pip install` that install the other program.
        bundle: the run.
        path: the export: a file or a folder.
        options: the export's options, which include the probe texts and the Python interpreter.

    Raises:
        CheckpointError: the log probabilities differ by more than quantization explains, or the program fails.
        ConfigError: no probe text has a valid length.
        MissingDependencyError: a package is not installed.
    """
    if not options.verified:
        return None
    texts = _random_texts(bundle) if options.probes is None else options.probes
    pairs = dict(zip(texts, bundle.source_tokenizer.encode_all(texts), strict=True))
    fitting = {text: ids for text, ids in pairs.items() if _fits(bundle, ids)}
    jobs = _jobs(bundle, [*fitting.values()])
    ours = _outputs(bundle, jobs)
    questions = {"sources": [*fitting], "targets": [one.tokens for one in ours]}
    answers = _asked(program, packages, path, options.python, questions)
    texts = bundle.target_tokenizer.decode_all([one.tokens for one in ours])
    cut = [len(one.tokens) == job.max_length for one, job in zip(ours, jobs, strict=True)]
    outputs = [_until(*three) for three in zip(answers.outputs, texts, cut, strict=True)]
    found = _compared(jobs, ours, texts, answers._replace(outputs=outputs))
    _check(found, options.quantization)
    return found


def _until(theirs: object, ours: str, cut: bool) -> object:
    """Return our output if the maximum length cut it and their output continues it; otherwise return their output."""
    return ours if cut and str(theirs).startswith(ours.rstrip()) else theirs


def _asked(program: str, packages: str, path: Path, python: str, questions: Mapping[str, Any]) -> _Answers:
    command = [python or sys.executable, "-I", str(PROGRAMS / program / "probe.py"), str(path)]
    offline = {"HF_HUB_OFFLINE": "1"}
    try:
        finished = subprocess.run(
            command, input=json.dumps(questions).encode(), capture_output=True, env={**os.environ, **offline}
        )
    except OSError as error:
        raise ConfigError(
            f"--python: {command[0]} cannot be run ({error.strerror}); give a Python interpreter"
        ) from error
    report = finished.stderr.decode(errors="replace").strip()
    if missing := _PROGRAM_NEEDS.search(report):
        raise MissingDependencyError(
            f"not verified: {missing[1]} is not installed; run `pip install {packages}`, give --python with a Python "
            "that has it, or write the export without verifying it by --unverified"
        )
    if finished.returncode:
        reason = shortened(report.rpartition("\n")[2]) or f"exit status {finished.returncode}"
        raise CheckpointError(
            f"not verified: the program that verifies the export ({program}) failed: {reason}; report this, or give "
            "--unverified"
        )
    return _parsed_answers(program, finished.stdout, len(questions["sources"]))


def _parsed_answers(program: str, output: bytes, count: int) -> _Answers:
    """Return the answers in the last line of a program's output; earlier lines are messages of its packages."""
    try:
        match parse_json(output.strip().rpartition(b"\n")[2]):
            case {"source_ids": list(ids), "log_probs": list(log_probs), "texts": list(texts)}:
                if len(ids) == len(log_probs) == len(texts) == count:
                    return _Answers([tuple(one) for one in ids], log_probs, texts)
            case _:
                pass
    except (ValueError, TypeError):
        pass
    raise CheckpointError(f"the program that verifies the export ({program}) gave no answers; report this")


def _outputs(bundle: Bundle, jobs: Sequence[Job]) -> list[Hypothesis]:
    """Return the outputs of the run's own greedy search."""
    from glassformer.decoding.torch_engine import TorchEngine

    return [best for [best] in TorchEngine(bundle.model()).decode(jobs, Search(settings=GREEDY))]


def _compared(
    jobs: Sequence[Job], ours: Sequence[Hypothesis], outputs: Sequence[object], theirs: _Answers
) -> Verification:
    """Return the comparison of the run's answers with the answers of another program.

    Raises:
        CheckpointError: the other program cuts too many texts differently.
    """
    alike = [place for place, job in enumerate(jobs) if theirs.source_ids[place] == job.sources[0]]
    if len(alike) < CUT_ALIKE * len(jobs):
        raise CheckpointError(
            f"the exported tokenizer differs from the run's: it cuts {len(jobs) - len(alike)} of {len(jobs)} texts "
            "into different tokens; report this"
        )
    differences = [
        abs(our - their)
        for place in alike
        for our, their in zip(ours[place].token_log_probs, theirs.log_probs[place], strict=True)
    ]
    return Verification(
        outputs=len(alike),
        tokens=len(differences),
        largest=max(differences),
        mean=sum(differences) / len(differences),
        equal=sum(outputs[place] == theirs.outputs[place] for place in alike),
        cut_differently=len(jobs) - len(alike),
    )


def _check(found: Verification, quantization: Quantization) -> None:
    what, got, limit = ("largest", found.largest, EXACT) if quantization == "float32" else ("mean", found.mean, NARROW)
    if not got <= limit:
        remedy = "use the engine torch" if quantization == "float32" else "export with --quantization float32"
        cause = "; without VNNI, sums of 8-bit products overflow on this machine" if _saturates(quantization) else ""
        raise CheckpointError(
            f"the converted model ({quantization}) does not give the run's answers: expected a {what} difference of a "
            f"token's log probability of at most {limit:g}, got {got:.2g} ({found.equal} of {found.outputs} outputs "
            f"are equal){cause}; {remedy}"
        )


def _saturates(quantization: Quantization) -> bool:
    # On AMD processors, CTranslate2 computes int16 with 8 bits.
    return quantization.startswith("int") and saturates_int8()


def _fits(bundle: Bundle, ids: Sequence[int]) -> bool:
    """Return whether a text's ids and `<eos>` fit into the exported position table."""
    return 0 < len(ids) < positions_of(bundle.model_config)


def _jobs(bundle: Bundle, sources: Sequence[Sequence[int]]) -> list[Job]:
    config = bundle.model_config
    fitting = [(*ids, bundle.source_tokenizer.eos_id) for ids in sources if _fits(bundle, ids)]
    if not fitting:
        raise ConfigError(
            f"--probe: expected a text of 1 to {positions_of(config) - 1} tokens, got none; choose another file, or "
            "leave out --probe"
        )
    return [Job((ids,), (), max_length(config, len(ids), EXTRA_LENGTH)) for ids in fitting]


def _random_ids(bundle: Bundle, first: int = UNK_ID) -> list[list[int]]:
    chance, config = random.Random(1), bundle.model_config
    longest = min(LONGEST_PROBE, positions_of(config) - 1)
    ids = range(min(first, config.source_vocab_size - 1), config.source_vocab_size)
    return [chance.choices(ids, k=1 + number * (longest - 1) // (PROBE_SOURCES - 1)) for number in range(PROBE_SOURCES)]


def _random_texts(bundle: Bundle) -> list[str]:
    """Return texts of random tokens, without `<unk>`, which no text contains."""
    return bundle.source_tokenizer.decode_all(_random_ids(bundle, first=UNK_ID + 1))
