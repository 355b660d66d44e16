"""Verify an export: the other program must give the run's outputs nearly the same log probabilities as the run does,
and its own outputs may differ from the run's only at near ties.

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
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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

if TYPE_CHECKING:
    from glassformer.decoding.torch_engine import TorchEngine

__all__ = ["NEAR_TIE", "Verification", "verify_ctranslate2", "verify_outside"]

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
NEAR_TIE = 1.0
"""Maximum log probability by which the run may prefer its own token where an output of the export first differs.

Fewer bits change each log probability slightly. Where two tokens are nearly equal for the run, the export may therefore
prefer the other token, and greedy search then continues differently, so any number of outputs may differ. Measured with
int8: no output for the demo's validation sentences differs; 0.24 for random tokens, 0.41 for sentences longer than all
training sentences, 0.12 for the demo after 128 updates, 0.04 for a young model of Multi30k, of whose outputs 9 of 100
differ. If a row of a matrix is multiplied by 2 000, so that 8 bits leave nothing of the other rows, it is 6.1 for the
demo's validation sentences and 2.0 for random tokens."""
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
    preference: float
    """Largest log probability by which the run prefers its own token where an output of the exported model first
    differs; 0 if no output differs."""
    cut_differently: int = 0
    """Number of further probe texts whose outputs are not compared, because the other program cuts them into different
    tokens."""


class _Output(NamedTuple):
    """An output of greedy search; two outputs are equal if their ids and their texts are."""

    ids: Ids
    """The ids with `<eos>`."""
    text: str = ""
    """The text, if the program gives texts; `ids` are then the ids that the run's tokenizer gives to it."""


class _Answers(NamedTuple):
    """A program's answers to the probe texts: ids of the source, log probabilities of the target, and the output."""

    source_ids: Sequence[Ids]
    log_probs: Sequence[Sequence[float]]
    outputs: Sequence[_Output]


def verify_ctranslate2(
    bundle: Bundle, folder: Path, quantization: Quantization, probes: Sequence[str] | None = None
) -> Verification:
    """Return how closely the CTranslate2 model in a folder reproduces a run, on probe texts or on random tokens.

    Raises:
        CheckpointError: log probabilities or outputs differ by more than quantization explains.
        ConfigError: no probe text has a valid length.
    """
    jobs = _jobs(bundle, _random_ids(bundle) if probes is None else bundle.source_tokenizer.encode_all(probes))
    engine = _engine(bundle)
    ours = _outputs(engine, jobs)
    theirs = CTranslate2Engine(folder, bundle, positions=positions_of(bundle.model_config))
    scores = theirs.score([(job.sources, one.tokens) for job, one in zip(jobs, ours, strict=True)])
    written = theirs.decode(jobs, Search(settings=GREEDY, log_probs=False))
    answers = _Answers([job.sources[0] for job in jobs], scores, [_Output(best.tokens) for [best] in written])
    found = _compared(engine, jobs, ours, [_Output(one.tokens) for one in ours], answers)
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
        CheckpointError: log probabilities or outputs differ by more than quantization explains, or the program fails.
        ConfigError: no probe text has a valid length.
        MissingDependencyError: a package is not installed.
    """
    if not options.verified:
        return None
    texts = _random_texts(bundle) if options.probes is None else options.probes
    pairs = dict(zip(texts, bundle.source_tokenizer.encode_all(texts), strict=True))
    fitting = {text: ids for text, ids in pairs.items() if _fits(bundle, ids)}
    jobs = _jobs(bundle, [*fitting.values()])
    engine = _engine(bundle)
    ours = _outputs(engine, jobs)
    questions = {"sources": [*fitting], "targets": [one.tokens for one in ours]}
    answers = _asked(program, packages, path, options.python, questions)
    texts = bundle.target_tokenizer.decode_all([one.tokens for one in ours])
    cut = [len(one.tokens) == job.max_length for one, job in zip(ours, jobs, strict=True)]
    outputs = [_until(one.text, *own) for one, own in zip(answers.outputs, zip(texts, cut, strict=True), strict=True)]
    found = _compared(engine, jobs, ours, _read(bundle, texts), answers._replace(outputs=_read(bundle, outputs)))
    _check(found, options.quantization)
    return found


def _until(theirs: str, ours: str, cut: bool) -> str:
    """Return our output if the maximum length cut it and their output continues it; otherwise return their output."""
    return ours if cut and theirs.startswith(ours.rstrip()) else theirs


def _read(bundle: Bundle, texts: Sequence[str]) -> list[_Output]:
    """Return outputs as the run's tokenizer reads them.

    The ids may differ from the ids that were written, in the run's outputs as in the other program's.
    """
    tokenizer = bundle.target_tokenizer
    return [
        _Output((*ids, tokenizer.eos_id), text) for ids, text in zip(tokenizer.encode_all(texts), texts, strict=True)
    ]


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
                    return _Answers([tuple(one) for one in ids], log_probs, [_Output((), str(text)) for text in texts])
            case _:
                pass
    except (ValueError, TypeError):
        pass
    raise CheckpointError(f"the program that verifies the export ({program}) gave no answers; report this")


def _engine(bundle: Bundle) -> "TorchEngine":
    """Return the run's own engine."""
    from glassformer.decoding.torch_engine import TorchEngine

    return TorchEngine(bundle.model())


def _outputs(engine: "TorchEngine", jobs: Sequence[Job]) -> list[Hypothesis]:
    """Return the outputs of the run's own greedy search."""
    return [best for [best] in engine.decode(jobs, Search(settings=GREEDY))]


def _compared(
    engine: "TorchEngine",
    jobs: Sequence[Job],
    ours: Sequence[Hypothesis],
    outputs: Sequence[_Output],
    theirs: _Answers,
) -> Verification:
    """Return the comparison of the run's answers with the answers of another program.

    Args:
        engine: the run's own engine.
        jobs: the probe texts.
        ours: the run's outputs.
        outputs: the run's outputs in the form in which the other program's outputs are compared with them.
        theirs: the other program's answers.

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
    differing = [place for place in alike if outputs[place] != theirs.outputs[place]]
    return Verification(
        outputs=len(alike),
        tokens=len(differences),
        largest=max(differences),
        mean=sum(differences) / len(differences),
        equal=len(alike) - len(differing),
        preference=_preference(
            engine, [(jobs[place], outputs[place].ids, theirs.outputs[place].ids) for place in differing]
        ),
        cut_differently=len(jobs) - len(alike),
    )


def _preference(engine: "TorchEngine", differing: Sequence[tuple[Job, Ids, Ids]]) -> float:
    """Return the largest log probability by which the run prefers its own token where two outputs first differ.

    `differing` has jobs with the ids of the run's output and of the other program's output.
    """
    pairs = []
    for job, own, other in differing:
        end = 1 + sum(1 for _ in takewhile(lambda two: two[0] == two[1], zip(own, other, strict=False)))
        pairs += [(job.sources, own[:end]), (job.sources, other[:end])]
    last = [log_probs[-1] for log_probs in engine.score(pairs)]
    return max((own - other for own, other in zip(last[::2], last[1::2], strict=True)), default=0.0)


def _check(found: Verification, quantization: Quantization) -> None:
    what, got, limit = ("largest", found.largest, EXACT) if quantization == "float32" else ("mean", found.mean, NARROW)
    if not got <= limit:
        problem = f"expected a {what} difference of a token's log probability of at most {limit:g}, got {got:.3g}"
    elif not found.preference <= NEAR_TIE:
        problem = (
            "where an output first differs, expected a token whose log probability in the run is at most "
            f"{NEAR_TIE:g} below that of the run's own token, got {found.preference:.2g} below"
        )
    else:
        return
    remedy = "report this, and use" if quantization == "float32" else "use --quantization float32, or"
    remedy += " the engine torch"
    cause = "; without VNNI, sums of 8-bit products overflow on this machine" if _saturates(quantization) else ""
    raise CheckpointError(
        f"the converted model ({quantization}) does not give the run's answers: {problem} ({found.equal} of "
        f"{found.outputs} outputs are equal){cause}; {remedy}"
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
