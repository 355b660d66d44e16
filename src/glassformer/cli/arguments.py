"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from glassformer.built_in import run_folder

__all__ = [
    "BeamSize",
    "ConfigName",
    "Data",
    "DecodingOverrides",
    "Device",
    "Ensemble",
    "GlossaryFile",
    "Group",
    "Json",
    "OptionalConfigName",
    "Overrides",
    "RunFolder",
    "RunOrCombination",
    "SearchAgain",
    "TrainingDevice",
]

RunFolder = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", parser=run_folder, help="Run directory, such as runs/demo; or demo, the model in the package."
    ),
]
RunOrCombination = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        parser=run_folder,
        help="Run directory, such as runs/demo; demo, the model in the package; or a file written by `tune`.",
    ),
]
ConfigName = Annotated[
    str, typer.Argument(metavar="CONFIG", help="TOML file, or name of a recipe (`glassformer recipes` lists them).")
]
OptionalConfigName = Annotated[
    str | None, typer.Argument(metavar="CONFIG", help="TOML file, or name of a recipe.", show_default=False)
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="SECTION.NAME=VALUE", help="Change a setting, such as training.steps=60. Repeatable."
    ),
]
DecodingOverrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="decoding.NAME=VALUE",
        help="Change a decoding setting of the run, such as decoding.length_penalty=1. Repeatable.",
    ),
]
Data = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Read the corpus from this folder.  [default: the configuration's]"),
]
BeamSize = Annotated[
    int | None,
    typer.Option(
        "--beam-size", metavar="N", help="Keep N hypotheses at each step; 1 = greedy search.  [default: the run's]"
    ),
]
SearchAgain = Annotated[
    bool,
    typer.Option(
        "--retry", help="Translate lines with suspicious outputs again: greedily, by sampling, then in parts."
    ),
]
Device = Annotated[
    str,
    typer.Option("--device", metavar="NAME", help="Compute on cpu, cuda, cuda:N or mps; auto = a GPU if there is one."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
TrainingDevice = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="NAME",
        help="Train on cpu, cuda, cuda:N or mps; auto = a GPU if there is one.  [default: the configuration's]",
    ),
]
Ensemble = Annotated[
    list[Path] | None,
    typer.Option(
        "--ensemble",
        metavar="RUN",
        parser=run_folder,
        help="Also use this run's model, and average the probabilities. Repeatable.",
    ),
]
GlossaryFile = Annotated[
    Path | None,
    typer.Option(
        "--glossary",
        metavar="FILE",
        help="Translate terms as FILE says: a source term, a tab and a target term per line; a|b allows both forms.",
    ),
]
Group = Annotated[
    bool | None,
    typer.Option(
        "--group/--no-group",
        help="Score lines with the same source as one item, whose output is right if it equals any of their references."
        "  [default: --group if one file has sources and references]",
    ),
]
