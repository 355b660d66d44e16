"""Judge outputs by a run's guards."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from glassformer.bundle import Bundle
from glassformer.decoding.engine import Ids, Search
from glassformer.evaluation.guards import UNCALIBRATED, Guards, above, suspicion
from glassformer.evaluation.signals import ModelOutput, signals
from glassformer.translating.request import Request, Translate
from glassformer.translating.translation import Status, Translation

__all__ = ["Judge", "Judging"]


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges the outputs of one search by guards; without guards, only by signals that need no calibration."""

    guards: Guards | None
    source_unk: int
    """The id of `<unk>` in the source vocabulary."""
    target_unk: str
    """The token for `<unk>` in outputs."""

    def output(self, one: Translation, text: str, source: Ids) -> ModelOutput:
        """Return an output in the form that guards read, given the source text and the ids of its tokens.

        Lengths are compared with what the model read, which may lack the spans of the source.
        """
        source = one.read or source
        return ModelOutput(
            source=text,
            target=one.text,
            source_ids=source,
            tokens=one.tokens,
            token_log_probs=one.token_log_probs,
            log_prob=one.log_prob,
            unknown=source.count(self.source_unk) + one.tokens.count(self.target_unk),
        )

    def reasons(self, one: Translation, text: str, source: Ids) -> tuple[str, ...]:
        """Return the names of the guards that an output sets off; a copy that no model wrote sets off none."""
        if one.kept == "placed" and not one.read:
            return ()
        output = self.output(one, text, source)
        if self.guards is None:
            return above(signals(output, None, UNCALIBRATED), UNCALIBRATED)
        return self.guards.reasons(output)

    def suspicion(self, one: Translation, text: str, source: Ids) -> float:
        """Return how suspicious an output is; a larger number means more suspicious."""
        output = self.output(one, text, source)
        if self.guards is None:
            return suspicion(signals(output, None, UNCALIBRATED), UNCALIBRATED, {})
        return self.guards.suspicion(output)

    def judged(self, one: Translation, text: str, source: Ids) -> Translation:
        """Return a translation with its status, reasons and confidence set by the guards."""
        why = self.reasons(one, text, source)
        confidence = self.guards.confidence(one.token_log_probs) if self.guards else None
        if not why and confidence is None:
            return one
        status: Status = "suspicious" if why and one.status == "ok" else one.status
        return replace(one, status=status, reasons=why, confidence=confidence)


class Judging:
    """The layer that marks suspicious translations.

    `is_alone` says whether the run translates without other models. A run's guards are calibrated on its own outputs,
    so they are not used for the outputs of an ensemble, or for outputs that other models rank.
    """

    def __init__(self, bundle: Bundle, *, is_alone: bool) -> None:
        self._folder, self._is_alone = bundle.folder, is_alone
        [unknown] = bundle.target_tokenizer.tokens([bundle.target_tokenizer.unk_id])
        self.uncalibrated = Judge(None, bundle.source_tokenizer.unk_id, unknown)
        """The judge without guards."""

    def __call__(self, asked: Request, below: Translate) -> Iterator[Translation]:
        """Start translating; return an iterator over the judged translations."""
        judge = self.judge(asked.search)
        needs_sums = judge.guards is not None
        found = enumerate(below(asked._replace(search=replace(asked.search, sums=needs_sums))))
        return (
            judge.judged(one, asked.texts[place], asked.sources[place][0]) if place in asked.sources else one
            for place, one in found
        )

    def judge(self, search: Search) -> Judge:
        """Return the judge of a search's outputs, with the run's guards if they are calibrated for such a search.

        Raises:
            CheckpointError: the file of the guards is damaged.
        """
        guards = self._guards
        fits = guards is not None and not search.sample and guards.fit(search.settings)
        return replace(self.uncalibrated, guards=guards) if fits else self.uncalibrated

    @cached_property
    def _guards(self) -> Guards | None:
        return Guards.load(self._folder) if self._is_alone else None
