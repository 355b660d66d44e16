"""Load all that a training run needs before its first step: the prepared corpus, the run's bundle, and the model."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from glassformer.bundle import Bundle
from glassformer.corpus.resampling import Resampler
from glassformer.errors import ConfigError
from glassformer.jobs.initial_model import initial_model
from glassformer.jobs.preparation import prepare
from glassformer.jobs.prepared.held_out import LEAST_PAIRS
from glassformer.jobs.prepared.reading import TOO_LONG, Prepared
from glassformer.jobs.replay import with_replay
from glassformer.jobs.run_folder import bundle_of, check_shared, keep_bundle
from glassformer.jobs.run_reports import PreparedReport, RunReport
from glassformer.jobs.shortlists import keep_shortlist
from glassformer.jobs.starting_run import keep_start
from glassformer.model.transformer import Transformer
from glassformer.recipes.configuration import Configuration, TrainingConfig
from glassformer.system.files import clear_temporaries
from glassformer.system.machine import device_of, keep_memory
from glassformer.training.gradients import products_to_keep
from glassformer.training.ranks import Ranks
from glassformer.training.snapshots import SNAPSHOTS

__all__ = ["LoadedRun", "load_run"]


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A run before its first step, or before it resumes."""

    prepared: Prepared
    bundle: Bundle
    model: Transformer
    """The model on this rank's device, with its initial weights."""

    def report(self, step: int) -> PreparedReport:
        """Return the report that is made before training continues after `step`; 0 = a new run."""
        return PreparedReport(
            folder=self.bundle.folder,
            train_pairs=len(self.prepared.train),
            valid_pairs=len(self.prepared.valid),
            dropped=self.prepared.dropped,
            source_vocabulary=len(self.bundle.source_tokenizer),
            target_vocabulary=len(self.bundle.target_tokenizer),
            parameters=sum(parameter.numel() for parameter in self.model.parameters()),
            warmup=self.bundle.configuration.training.warmup,
            chosen=self.prepared.chosen,
            resumed_step=step,
        )

    def resampler(self) -> Resampler | None:
        """Return the resampler, which encodes each batch's texts again, or None if `tokenizer.sampling` is off."""
        prepared, configuration = self.prepared, self.prepared.configuration
        amount = configuration.tokenizer.sampling
        assert amount != "auto", "`fit` chooses it"
        if not amount:
            return None
        return Resampler(prepared.source_tokenizer, prepared.target_tokenizer, amount, configuration.data.max_length)


def load_run(configuration: Configuration, ranks: Ranks, on_report: Callable[[RunReport], object]) -> LoadedRun:
    """Return the run of a configuration. Rank 0 loads the run first, and writes the missing files into its folder."""
    folder = Path(configuration.run.directory)
    if ranks.leads:
        for place in (folder, folder / SNAPSHOTS):
            clear_temporaries(place)
    else:
        check_shared(configuration)
    prepared = prepare(configuration, on_report, whole=not ranks.leads)
    keep_memory(products_to_keep(prepared.train))
    device = ranks.place(device_of(configuration.training.device, "training.device"))
    bundle = bundle_of(prepared, folder, device)
    _check_validation(bundle.configuration.training, prepared)
    prepared = with_replay(prepared, on_report, whole=not ranks.leads)
    if ranks.leads and configuration.training.start_from:
        keep_start(bundle)
    # initialised on the CPU, so that the weights are the same for every device
    model = initial_model(bundle).to(device)
    if ranks.leads:
        keep_bundle(bundle)
        keep_shortlist(bundle, prepared.train, on_report)
    return LoadedRun(prepared, bundle, model)


def _check_validation(settings: TrainingConfig, prepared: Prepared) -> None:
    """Raise an error for settings that need validation pairs when the corpus has none."""
    for name in ("average", "patience"):
        if getattr(settings, name) and not len(prepared.valid):
            raise ConfigError(
                f"training.{name} = {getattr(settings, name)} needs validation pairs, but {_why_none(prepared)}; give "
                "data.valid_source and data.valid_target, or leave the setting out"
            )


def _why_none(prepared: Prepared) -> str:
    """Return why no validation pairs are held out."""
    pairs = len(prepared.train) + prepared.dropped.get(TOO_LONG, 0)
    if pairs < LEAST_PAIRS:
        return f"the corpus is too small to hold out pairs: {pairs} of at least {LEAST_PAIRS}"
    return "none are held out, because all pairs with the same source stay together, and they are too many"
