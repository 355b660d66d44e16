"""The stages of a run after its training.

A stage whose result exists is skipped, so a run that was killed between two stages resumes with the later stage.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import islice

from glassformer.bundle import Bundle
from glassformer.errors import DataError
from glassformer.evaluation.guards import GUARDS
from glassformer.jobs.averaging import average_if_better
from glassformer.jobs.calibration import CALIBRATED_TEXTS, calibrate, fewest_texts
from glassformer.jobs.evaluation import validation_items
from glassformer.jobs.log import Log
from glassformer.jobs.prepared.reading import Prepared
from glassformer.jobs.run_reports import AlignmentReport, CalibrationReport, ProgressReport, RunReport
from glassformer.model.transformer import Transformer
from glassformer.system.machine import device_of
from glassformer.training.alignment_heads import COMPARED_PAIRS, choose_alignment
from glassformer.training.checkpoint import Checkpoints
from glassformer.training.reports import EndReport, Measured
from glassformer.translator import Translator

__all__ = ["END_STAGES", "Ended"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A run whose training is complete, not merely interrupted."""

    bundle: Bundle
    prepared: Prepared
    end: EndReport
    checkpoints: Checkpoints
    metric: Callable[[Transformer], Measured] | None
    log: Log
    change: Callable[[Transformer], AbstractContextManager[object]]
    """Returns the context manager within which a model of the run computes."""
    stop: Callable[[], bool]
    """Returns True if the run must stop before all stages are complete."""

    def kept_model(self) -> Transformer:
        """Return a model with the kept weights, on the device of the training."""
        return self.bundle.model().to(device_of(self.bundle.configuration.training.device, "training.device"))


def _average(ended: Ended) -> Iterator[RunReport]:
    """Keep the mean of the last checkpoints if it is better than the best weights, and if `training.average` is set."""
    settings, step = ended.bundle.configuration.training, ended.end.step
    if settings.average and not ended.log.has("average", step):
        yield ProgressReport(stage="validating the mean of the last checkpoints")
        averaged = average_if_better(ended.bundle, ended.checkpoints, ended.prepared.valid, ended.metric, ended.change)
        ended.log.write(averaged, step)
        yield averaged


def _align(ended: Ended) -> Iterator[RunReport]:
    """Choose the attention heads that align words, and save this choice, if there are validation pairs."""
    pairs, step = list(islice(ended.prepared.valid_pairs, COMPARED_PAIRS)), ended.end.step
    if not pairs or ended.log.has("alignment", step):
        return
    yield ProgressReport(stage="choosing the heads that align words")
    model = ended.kept_model()
    with ended.change(model):
        alignment = choose_alignment(ended.bundle, model, pairs)
    if alignment is None:
        return
    replace(ended.bundle, alignment=alignment).save_alignment()
    aligned = AlignmentReport(alignment=alignment)
    ended.log.write(aligned, step)
    yield aligned


def _calibrate(ended: Ended) -> Iterator[RunReport]:
    """Calibrate the guards on validation pairs, and save the guards, if there are enough pairs.

    A short training should not end with a long calibration, so there are as many texts as updates. A limit of time
    would give other guards after each training.
    """
    if (ended.bundle.folder / GUARDS).exists():
        return
    items = validation_items(ended.bundle.configuration, ended.prepared.valid_pairs, most=CALIBRATED_TEXTS)
    chosen = items.first(max(fewest_texts(), ended.end.step))
    if len(chosen.sources) < fewest_texts():
        return
    stage = f"calibrating the guards on {len(chosen.sources):,} validation pairs"
    yield ProgressReport(stage=stage, done=0, total=len(chosen.sources), unit="sentences")
    model = ended.kept_model()
    try:
        with ended.change(model):
            guards = calibrate(Translator(ended.bundle, model), chosen, stop=ended.stop)
    except DataError:  # there are too few translatable texts
        guards = None
    if ended.stop():  # resuming the run calibrates
        return
    if guards:
        guards.save(ended.bundle.folder)
    yield CalibrationReport(guards=guards, texts=len(items.sources))


END_STAGES: tuple[Callable[[Ended], Iterator[RunReport]], ...] = (
    _average,  # comes first because it chooses the weights that the other stages use
    _align,
    _calibrate,
)
"""The stages, in the order in which a run goes through them."""
