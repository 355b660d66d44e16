"""Write a run's files during training, except checkpoints: the log, the best weights, and snapshots."""

from glassformer.bundle import WEIGHTS, save_weights
from glassformer.jobs.calibration import forget_guards
from glassformer.jobs.loading import LoadedRun
from glassformer.jobs.log import METRICS_FILE, Log
from glassformer.training.checkpoint import Checkpoints, TrainingState, use_weights
from glassformer.training.reports import CheckpointReport, StepReport, TrainingReport, ValidationReport
from glassformer.training.snapshots import SNAPSHOTS, Snapshots

__all__ = ["Saver"]


class Saver:
    """The writer of a run's files, in the only process that writes them."""

    def __init__(self, loaded: LoadedRun, checkpoints: Checkpoints, state: TrainingState | None) -> None:
        """Remove what an earlier start of the run wrote after `state`, because training will write it again."""
        self._model, self._folder = loaded.model, loaded.bundle.folder
        self._validated = len(loaded.prepared.valid) > 0
        settings = loaded.bundle.configuration.training
        self._snapshots = Snapshots(self._folder / SNAPSHOTS, settings.snapshots)
        self._snapshots.forget_after(state.step if state else 0)
        if state and not self._validated:  # the run may have been killed right after a checkpoint
            use_weights(checkpoints.paths()[-1], self._folder / WEIGHTS)
        self.log = Log(self._folder / METRICS_FILE, settings.log_every, state or TrainingState())
        checkpoints.before_naming = self.log.sync

    def save(self, report: TrainingReport) -> None:
        """Write the files of a report: the weights if they are the best so far, a snapshot if due, and a log line."""
        self._keep_weights(report)
        if isinstance(report, StepReport) and self._snapshots.due(report.step):
            self._snapshots.save(self._model, report.step)
        self.log.write(report, report.step)

    def _keep_weights(self, report: TrainingReport) -> None:
        """Save the current weights as the run's weights if they are the best so far.

        Without validation, the weights of each checkpoint are saved.
        """
        weights = self._folder / WEIGHTS
        if isinstance(report, ValidationReport) and report.best:
            forget_guards(self._folder)
            save_weights(self._model, weights)
        if isinstance(report, CheckpointReport) and not (self._validated and weights.exists()):
            forget_guards(self._folder)
            use_weights(report.path, weights)
