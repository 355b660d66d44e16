"""The engine that translates with CTranslate2 on CPUs, by default with one worker per core, and on Nvidia GPUs.

Length limits and scores follow the rules of the engine torch. docs/decisions/engines.md lists the differences between
the two beam searches.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from glassformer.bundle import Bundle
from glassformer.decoding.engine import (
    DECODED_POSITIONS,
    AttentionRows,
    Ids,
    Job,
    Need,
    Search,
    Sources,
    batched_by_size,
    check_n_best,
    check_room,
    longest,
    results_of_batches,
)
from glassformer.decoding.hypothesis import Hypothesis, penalty_of, score_of
from glassformer.errors import CheckpointError, ConfigError, quoted, shortened
from glassformer.interop.ctranslate2.model import import_ctranslate2
from glassformer.recipes.configuration import DecodingConfig
from glassformer.system.machine import cores
from glassformer.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

__all__ = ["CTranslate2Engine", "device_and_index"]

BATCH_WITH_INTEGERS = (20, 40)
"""Maximum numbers of texts and of hypotheses in a worker's batch on a CPU, if the matrices hold integers. Larger
batches do not fit into the CPU's caches."""
BATCH_WITH_FLOATS = (96, 160)
"""Maximum numbers of texts and of hypotheses in a worker's batch on a CPU, if the matrices hold floating-point numbers,
whose products take less time per row in larger batches."""
WORKER_SCORED_TOKENS = 100
"""Maximum number of target positions, padding included, that a worker scores at once; the logits of this many positions
fit into a CPU's caches."""
NEARLY_NONE = 1e-9
"""Length-penalty exponent to use instead of 0. With 0, CTranslate2 would end a search early; this exponent changes no
score."""
LARGEST_EXPONENT = 2.0
"""Maximum exponent of the length penalty; with a larger exponent, CTranslate2 would keep only long outputs."""


def device_and_index(device: str) -> tuple[str, int]:
    """Return CTranslate2's name and index of a device; "auto" is the first GPU, or the CPU without a usable GPU.

    Raises:
        ConfigError: CTranslate2 does not support the device, or the machine does not have this device.
    """
    gpus = import_ctranslate2().get_cuda_device_count()
    kind, _, index = device.partition(":")
    if kind == "auto" and not index:
        return ("cuda", 0) if gpus else ("cpu", 0)
    if device == "cpu":
        return "cpu", 0
    if kind != "cuda" or not (index or "0").isdecimal():
        raise ConfigError(
            f"device: expected auto, cpu or cuda with CTranslate2, got {quoted(device)}; choose one or the engine torch"
        )
    if int(index or 0) >= gpus:
        raise ConfigError(f"device: expected one of the {gpus} GPUs that CTranslate2 finds, got {quoted(device)}")
    return "cuda", int(index or 0)


class CTranslate2Engine:
    """The engine for the model in an exported folder.

    `budget` is the maximum number of source positions, including padding and counted once per beam, in one batch.

    Raises:
        CheckpointError: the folder is damaged.
        MissingDependencyError: CTranslate2 is not installed.
    """

    name = "ctranslate2"
    reads_ahead = True
    cannot: ClassVar[dict[Need, str]] = {
        "sampling": "CTranslate2 cannot sample with a seed per text",
        "explanation": "CTranslate2 does not show what it computes",
        "ensemble": "CTranslate2 does not support ensembles",
    }
    """The needs that this engine does not support, each with the reason."""

    @staticmethod
    def differences(settings: DecodingConfig, needs: Collection[Need]) -> Iterator[str]:
        """Yield reasons why outputs can differ from those of the engine torch, besides how a beam search ends."""
        if settings.beam_size > 1 and "prefix" in needs:
            yield "CTranslate2 finds a hypothesis that ends right after a prefix only if this hypothesis is the best"
        if settings.beam_size > 1 and settings.length_penalty > LARGEST_EXPONENT:
            alpha, most = settings.length_penalty, LARGEST_EXPONENT
            yield f"length_penalty = {alpha:g}: CTranslate2 searches with at most {most:g}"

    def __init__(
        self,
        folder: Path,
        bundle: Bundle,
        *,
        positions: int,
        shortlist: int = 0,
        workers: int = 0,
        budget: int = DECODED_POSITIONS,
        device: str = "auto",
    ) -> None:
        self.longest, self.budget, self.shortlist = positions, budget, shortlist
        self._source_tokens, self._target_tokens = (
            tokenizer.tokens(range(len(tokenizer))) for tokenizer in (bundle.source_tokenizer, bundle.target_tokenizer)
        )
        self._ids = {token: id for id, token in enumerate(self._target_tokens)}
        # Each batch gets one thread, because the matrices are so small that more threads would cost more than they
        # save.
        module, (kind, index) = import_ctranslate2(), device_and_index(device)
        threads = {"inter_threads": workers or (cores() if kind == "cpu" else 1), "intra_threads": 1}
        where = {"device": kind, "device_index": index}
        try:
            self._translator = module.Translator(str(folder), max_queued_batches=-1, **where, **threads)
        except (RuntimeError, ValueError) as error:
            raise CheckpointError(
                f"CTranslate2 cannot read {folder} ({shortened(str(error))}); export the run again"
            ) from error

    @property
    def workers(self) -> int:
        """Number of batches decoded in parallel."""
        return int(self._translator.num_translators)

    @property
    def device(self) -> str:
        """The device on which the engine computes: "cpu" or "cuda"."""
        return str(self._translator.device)

    @property
    def quantization(self) -> str:
        """Number format of the weight matrices: the exported format, or the nearest that this processor supports."""
        return str(self._translator.compute_type)

    def decode(self, jobs: Sequence[Job], search: Search) -> Iterator[list[Hypothesis]]:
        """Yield the hypotheses of each job, best first, in the order of the jobs.

        The workers start when this method is called, before the first result is used.

        Raises:
            ConfigError: the search samples.
            DecodingError: `n_best` is out of range, or a prefix does not fit.
        """
        _check(jobs, search, self.shortlist)
        most = max(1, min(self._most(search.rows), math.ceil(len(jobs) / self.workers)))
        waiting: dict[int, Any] = {}
        for are_limited in (False, True):
            group = [place for place, job in enumerate(jobs) if job.is_limited == are_limited]
            for places in batched_by_size(group, lambda place: jobs[place].size * search.rows, self.budget, most):
                started = self._start([jobs[place] for place in places], search)
                waiting.update(zip(places, started, strict=True))
        return self._finish(jobs, waiting, search)

    def score(self, pairs: Sequence[tuple[Sources, Ids]]) -> list[tuple[float, ...]]:
        """Return the log probability (natural logarithm, ≤ 0) of each token of the given targets, including `<eos>`."""
        return [tuple(one.result().log_probs) for one in self._start_scoring(pairs)]

    def attention(self, pairs: Sequence[tuple[Sources, Ids]]) -> list[AttentionRows]:
        """Return the cross-attention of the given targets, averaged over the heads that the exported folder names.

        Each token of a target, including `<eos>`, has a row with a weight for each token of the source except `<eos>`.
        The weights come from the step that predicts the token.
        """
        waiting = results_of_batches(
            self._start_attention, pairs, lambda pair: longest(*pair), self.budget, self._most(1)
        )
        return [
            tuple(map(tuple, one.result().attention[0][: len(target)]))
            for one, (_, target) in zip(waiting, pairs, strict=True)
        ]

    def _most(self, rows: int) -> int:
        """Return the maximum number of texts in a worker's batch if each text has `rows` hypotheses."""
        if self.device != "cpu":
            return self.budget
        texts, hypotheses = BATCH_WITH_INTEGERS if self.quantization.startswith("int") else BATCH_WITH_FLOATS
        return max(1, min(texts, hypotheses // rows))

    def _source(self, sources: Sources) -> list[str]:
        """Return the source's tokens without `<eos>`, which CTranslate2 adds."""
        return [self._source_tokens[id] for id in sources[0][:-1]]

    def _target(self, ids: Sequence[int]) -> list[str]:
        return [self._target_tokens[id] for id in ids]

    def _never(self, *, among_candidates: bool = False) -> list[list[str]]:
        """Return the tokens that no output may contain: `<pad>` and `<bos>`, or only `<bos>` for a job with candidates.

        `<pad>` is never a candidate. If `<pad>` were suppressed, CTranslate2 would suppress a different candidate,
        because CTranslate2 remembers the numbers that tokens had among the candidates of earlier batches. Only special
        tokens keep their numbers.
        """
        return [self._target([id]) for id in ([BOS_ID] if among_candidates else [PAD_ID, BOS_ID])]

    def _start(self, batch: Sequence[Job], search: Search, **options: Any) -> list[Any]:
        """Start decoding a batch; return, for each job, a future of its hypotheses."""
        are_limited = batch[0].is_limited  # all jobs of a batch agree on this
        results: list[Any] = self._translator.translate_batch(
            [self._source(job.sources) for job in batch],
            [self._target(job.prefix) for job in batch] if any(job.prefix for job in batch) else None,
            asynchronous=True,
            use_vmap=are_limited,
            # CTranslate2 searches a batch with the union of its jobs' candidates, which would change the result of a
            # beam.
            max_batch_size=1 if are_limited and search.beam_size > 1 else 0,
            beam_size=search.beam_size,
            num_hypotheses=search.beam_size,
            length_penalty=_exponent(search),
            max_input_length=0,
            # CTranslate2 writes all tokens except the last one. `_ended` appends the last one, which is always <eos>.
            max_decoding_length=max(1, *(job.max_length - 1 for job in batch)),
            min_decoding_length=0,
            return_end_token=True,
            return_scores=search.beam_size > 1 or search.sums,
            **options,
        )
        return results

    def _start_attention(self, pairs: Sequence[tuple[Sources, Ids]]) -> list[Any]:
        """Start decoding, with each target without its last token as a prefix; return a future of each attention."""
        results: list[Any] = self._translator.translate_batch(
            [self._source(sources) for sources, _ in pairs],
            [self._target(target[:-1]) for _, target in pairs],
            asynchronous=True,
            beam_size=1,
            max_input_length=0,
            max_decoding_length=max(len(target) for _, target in pairs),
            return_end_token=True,
            return_attention=True,
        )
        return results

    def _start_scoring(self, pairs: Sequence[tuple[Sources, Ids]]) -> list[Any]:
        """Start scoring targets; return, for each target, a future of its log probabilities."""

        def start(some: Sequence[tuple[Sources, Ids]]) -> list[Any]:
            sources = [self._source(sources) for sources, _ in some]
            targets = [self._target(target[:-1]) for _, target in some]
            scores: list[Any] = self._translator.score_batch(sources, targets, max_input_length=0, asynchronous=True)
            return scores

        return results_of_batches(start, pairs, lambda pair: longest(*pair), WORKER_SCORED_TOKENS)

    def _finish(self, jobs: Sequence[Job], waiting: dict[int, Any], search: Search) -> Iterator[list[Hypothesis]]:
        outputs, again = self._outputs(jobs, waiting, search)
        found = [_best(several, search) for several in outputs]
        if not search.log_probs:
            for place, several in enumerate(found):
                unknown = place in again or jobs[place].is_limited
                sums = {ids: math.nan if unknown else outputs[place][ids] for ids in several}
                yield [
                    Hypothesis.unscored(ids, log_prob, score_of(log_prob, penalty_of(len(ids), search.settings)))
                    for ids, log_prob in sums.items()
                ]
            return
        pairs = [(job.sources, ids) for job, several in zip(jobs, found, strict=True) for ids in several]
        scores = iter(self.score(pairs))
        for several in found:
            scored = [Hypothesis.ending_with(EOS_ID, ids, next(scores), search.settings) for ids in several]
            yield sorted(scored, key=lambda hypothesis: hypothesis.score, reverse=True)

    def _outputs(
        self, jobs: Sequence[Job], waiting: dict[int, Any], search: Search
    ) -> tuple[list[dict[Ids, float]], set[int]]:
        """Return the distinct outputs of each job, and the indices of the jobs that were decoded a second time, alone.

        Each output of a beam search has a log probability. The log probabilities of jobs decoded again are a little too
        large. With a shortlist, log probabilities are normalised over its candidates only.
        """
        found, again = dict[int, dict[Ids, float]](), set[int]()
        scoring: dict[tuple[int, Ids], Any] = {}
        # Results are read in the order in which the jobs were started, while the workers compute the rest.
        while waiting:
            place = next(iter(waiting))
            job, result = jobs[place], waiting.pop(place).result()
            written = self._written(result)
            if place not in again and _is_to_be_alone(job, written, search):
                again.add(place)
                never = self._never(among_candidates=job.is_limited)
                # the new job goes to the end of the queue
                [waiting[place]] = self._start([job], search, suppress_sequences=never)
                continue
            found[place] = _log_probs(job, written, result.scores, search)
            if search.beam_size > 1:
                unknown = [ids for ids, log_prob in found[place].items() if math.isnan(log_prob)]
                results = self._start_scoring([(job.sources, ids) for ids in unknown])
                scoring.update(zip(((place, ids) for ids in unknown), results, strict=True))
        for (place, ids), one in scoring.items():
            found[place][ids] = math.fsum(one.result().log_probs)
        return [found[place] for place in range(len(jobs))], again

    def _written(self, result: Any) -> list[Ids]:
        return [tuple(map(self._ids.__getitem__, tokens)) for tokens in result.hypotheses]


def _is_to_be_alone(job: Job, written: Sequence[Ids], search: Search) -> bool:
    """Return whether a job must be decoded again, alone.

    A job is decoded again if its outputs depend on its batch, or contain `<pad>` or `<bos>`.
    """
    # The batch's length limit is the longest limit of its jobs. A job decoded alone ends at its own limit, after
    # max_length - 1 tokens, where its unfinished hypotheses compete with those that finish in its last step.
    beyond = search.beam_size > 1 and max(map(len, written)) >= job.max_length - 1 > 0
    return beyond or _has_strays(job, written, search) or any(PAD_ID in ids or BOS_ID in ids for ids in written)


def _has_strays(job: Job, written: Sequence[Ids], search: Search) -> bool:
    """Return whether outputs of greedy search have tokens that are candidates only of other jobs in the batch.

    If all tokens are the job's own candidates, decoding the job alone gives the same output: each token was the most
    probable among the candidates of all jobs, and so it is also the most probable among the job's own candidates.
    """
    return job.is_limited and search.beam_size == 1 and not set(job.candidates).issuperset(*written)


def _log_probs(job: Job, written: Sequence[Ids], scores: Sequence[float], search: Search) -> dict[Ids, float]:
    """Return the distinct outputs of a job, each with its log probability; NaN if the search does not give one."""
    exponent = _exponent(search)
    sums = [
        math.nan if job.prefix or ids[-1:] != (EOS_ID,) else score * len(ids) ** exponent
        for ids, score in zip(written, scores or [math.nan] * len(written), strict=True)
    ]
    return dict(zip((_ended(ids, job.max_length) for ids in written), sums, strict=True))


def _best(outputs: dict[Ids, float], search: Search) -> list[Ids]:
    """Return the best outputs by our score, best first."""

    def score(ids: Ids) -> float:
        return score_of(outputs[ids], penalty_of(len(ids), search.settings))

    return sorted(outputs, key=score, reverse=True)[: search.n_best]


def _check(jobs: Sequence[Job], search: Search, shortlist: int) -> None:
    if search.settings.shortlist not in (0, shortlist):
        expected = f"0 or {shortlist}, with which the model was loaded" if shortlist else "0, as the model has none"
        raise ConfigError(
            f"decoding.shortlist: expected {expected}, got {search.settings.shortlist}; load or export the run with "
            "this setting, or choose the engine torch"
        )
    # with fewer candidates, CTranslate2 would read beyond the end of their list
    if 0 < search.settings.shortlist <= 2 * search.beam_size:
        raise ConfigError(
            f"decoding.shortlist: expected more than 2 · beam_size = {2 * search.beam_size} with CTranslate2, got "
            f"{search.settings.shortlist}; raise it, or choose the engine torch"
        )
    if search.sample:
        raise ConfigError(f"{CTranslate2Engine.cannot['sampling']}; leave out sampling, or choose the engine torch")
    check_n_best(search.n_best, search.beam_size)
    for sentence, job in enumerate(jobs):
        check_room(sentence, job.max_length, len(job.prefix))


def _exponent(search: Search) -> float:
    """Return the exponent of CTranslate2's length penalty, by which it ranks the hypotheses that have ended."""
    return min(max(search.settings.length_penalty, NEARLY_NONE), LARGEST_EXPONENT)


def _ended(ids: Ids, max_length: int) -> Ids:
    """Return an output that ends with `<eos>`, cut if it is longer than `max_length` tokens."""
    ended = len(ids) <= max_length and ids[-1:] == (EOS_ID,)
    return ids if ended else (*ids[: max_length - 1], EOS_ID)
