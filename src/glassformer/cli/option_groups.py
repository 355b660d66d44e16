"""Groups of options that several commands share.

A command takes a group as one parameter whose type is a named tuple, such as `computing: Computing`. Typer makes an
option of each parameter of a function, so `as_command` replaces the group by its fields.
"""

import inspect
import json
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from glassformer.built_in import run_folder
from glassformer.cli.arguments import BeamSize, Data, DecodingOverrides, Device, Ensemble, Group, Overrides
from glassformer.cli.hidden_options import HIDDEN_OPTIONS
from glassformer.decoding.options import EngineName, Quantization
from glassformer.errors import ConfigError

if TYPE_CHECKING:
    from glassformer.evaluation.items import Items
    from glassformer.recipes.configuration import Configuration
    from glassformer.translating.combination import Combination
    from glassformer.translator import Translator

__all__ = ["ChangedSettings", "ChosenModels", "Computing", "SearchOptions", "TestSet", "as_command"]


def as_command(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command in the form that Typer needs: with the fields of its groups, and with the hidden options."""
    own = inspect.signature(command).parameters
    # Groups of options are the parameters whose types are named tuples.
    groups = {name: one.annotation for name, one in own.items() if hasattr(one.annotation, "_fields")}
    fields = {name: inspect.signature(group).parameters for name, group in groups.items()}
    parameters = [field for name, one in own.items() for field in fields.get(name, {name: one}).values()]
    named = inspect.Parameter.KEYWORD_ONLY
    hidden = [inspect.Parameter(name, named, default=False, annotation=kind) for name, kind in HIDDEN_OPTIONS.items()]

    @wraps(command)
    def run(**given: Any) -> None:
        made = {name: group(**{field: given.pop(field) for field in fields[name]}) for name, group in groups.items()}
        command(**{name: value for name, value in given.items() if name not in HIDDEN_OPTIONS}, **made)

    signature = inspect.Signature([*(one.replace(kind=named) for one in parameters), *hidden])
    run.__signature__ = signature  # type: ignore[attr-defined]  # where `inspect` looks for a signature
    run.__annotations__ = {name: one.annotation for name, one in signature.parameters.items()}
    return run


class Computing(NamedTuple):
    """The engine, the number format and the device with which a command translates."""

    engine: Annotated[
        EngineName,
        typer.Option(
            "--engine",
            help="Compute with PyTorch or CTranslate2; auto = the faster engine that gives the run's outputs.",
        ),
    ] = "auto"
    quantization: Annotated[
        Quantization | None,
        typer.Option(
            "--quantization",
            metavar="TYPE",
            help="Store the weights as float32, bfloat16, float16, int16 or int8.  [default: as trained or exported]",
        ),
    ] = None
    device: Device = "auto"

    def load(self, run: Path, *ensemble: Path, **options: Any) -> "Translator":
        """Return the translator of a run, with one worker per core; `options` are for `Translator.load`."""
        from glassformer.system.machine import cores
        from glassformer.translator import Translator

        return Translator.load(run, *ensemble, workers=cores(), **self._asdict(), **options)


class ChosenModels(NamedTuple):
    """The models that translate together with a run's own model."""

    ensemble: Ensemble = None
    rescore: Annotated[
        list[Path] | None,
        typer.Option(
            "--rescore",
            metavar="RUN",
            parser=run_folder,
            help="Let this run also propose and score outputs; it may write from right to left or translate in the "
            "opposite direction. Repeatable.",
        ),
    ] = None
    lexicon: Annotated[
        bool,
        typer.Option(
            "--lexicon", help="For runs on single words: also rank outputs that training words suggest by analogy."
        ),
    ] = False

    def load(self, run: Path, computing: Computing, **options: Any) -> "Translator":
        """Return the translator of a run with these models; make the lexicon if it is requested and does not exist."""
        if self.lexicon and run.is_dir():
            from glassformer.jobs.tuning import keep_lexicon

            keep_lexicon(run)
        models: dict[str, Any] = {"rescore": self.rescore or (), "lexicon": self.lexicon}
        return computing.load(run, *self.ensemble or (), **models, **options)

    def combination(self, run: Path) -> "Combination":
        """Return the combination of a run and these models."""
        from glassformer.translating.combination import Combination

        return Combination.of(run, ensemble=self.ensemble or (), rescore=self.rescore or (), lexicon=self.lexicon)

    def say_if_untuned(self, run: Path) -> None:
        """Print on stderr that all models have equal weights, unless `tune` has fitted the weights."""
        if (self.rescore or self.lexicon) and not self.combination(run).tuned:
            typer.echo(
                "all models have equal weights; `glassformer tune` with the same models fits the weights", err=True
            )


class SearchOptions(NamedTuple):
    """The settings of a command's search for outputs."""

    beam_size: BeamSize = None
    overrides: DecodingOverrides = None

    def settings(self, *, retry: bool = False) -> dict[str, Any]:
        """Return the changed decoding settings by name.

        Raises:
            ConfigError: a change has a wrong form or section, or changes a setting that has an effect only with
                sampling.
        """
        from glassformer.recipes.toml import decoding_changes

        return decoding_changes(self.overrides or (), beam_size=self.beam_size, retry=retry)


class TestSet(NamedTuple):
    """Sources with references, and how outputs are scored against them."""

    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SRC",
            help="Source text, one sentence per line; or a .tsv or .jsonl file with sources and references.",
        ),
    ] = None
    reference: Annotated[
        str | None, typer.Argument(metavar="REF", help="References, line by line; omit REF if SRC contains them.")
    ] = None
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="Score by bleu, chrf, exact, word_error, wer, per or cer. Repeatable.  [default: chosen from the "
            "data]",
        ),
    ] = None
    group: Group = None

    def items(self, configuration: "Configuration | None" = None, more: Sequence[Path] = ()) -> "Items":
        """Return the items of the given files, read according to the data settings of a run's configuration.

        `more` are files of further references.
        """
        from glassformer.evaluation.items import read_items
        from glassformer.jobs.evaluation import corpus_of

        assert self.source is not None  # each command that calls this method has checked the source
        return read_items(corpus_of(self.source, self.reference, configuration), more=more, group=self.group)

    def metrics(self, items: "Items") -> Sequence[str]:
        """Return the given metrics, or the default metrics for the items; describe the items on stderr."""
        from glassformer.evaluation.items import default_metrics

        typer.echo(str(items), err=True)
        return self.metric or default_metrics(items)


class ChangedSettings(NamedTuple):
    """The changes that a command makes to a configuration."""

    overrides: Overrides = None
    data: Data = None
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="FILE", help="Read the sources, or both sides of a table, from FILE."),
    ] = None
    target: Annotated[
        str | None, typer.Option("--target", metavar="FILE", help="Read the translations of --source from FILE.")
    ] = None

    def load(self, config: str | Path, device: str | None = None) -> "Configuration":
        """Return a configuration with these changes; `device` is the device for training.

        Raises:
            ConfigError: the configuration does not exist, or a setting is unknown or impossible.
        """
        from glassformer.recipes.toml import load

        return load(config, self.settings(device), self.data)

    def words(self) -> list[str]:
        """Return the words of the command line that make these changes."""
        single = {"--data": self.data, "--source": self.source, "--target": self.target}
        given = [word for name, value in single.items() if value for word in (name, str(value))]
        return [*given, *(word for one in self.overrides or () for word in ("--set", one))]

    def settings(self, device: str | None = None) -> list[str]:
        """Return the changed settings in the form that `--set` takes.

        Raises:
            ConfigError: there is a target without a source.
        """
        if self.target and not self.source:
            raise ConfigError("--target is for the translations of --source; give --source as well")
        files = {"data.source": self.source, "data.target": self.target or ""} if self.source else {}
        # a JSON string is a TOML string, too
        corpus = [f"{name}={json.dumps(file, ensure_ascii=False)}" for name, file in files.items()]
        return [*corpus, *(self.overrides or ()), *([] if device is None else [f"training.device={device}"])]
