"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["BeamSize", "ConfigName", "Data", "Json", "LengthPenalty", "MaxSource", "Overrides", "RunFolder"]

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory, such as runs/demo.")]
ConfigName = Annotated[
    str, typer.Argument(metavar="CONFIG", help="A TOML file, or the name of a recipe (`glassformer recipes`).")
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.FIELD=VALUE", help="Change a setting, such as training.steps=60."),
]
Data = Annotated[Path | None, typer.Option("--data", metavar="DIR", help="Folder that holds the corpus.")]
BeamSize = Annotated[
    int | None, typer.Option("--beam-size", help="Hypotheses followed side by side; 1 = greedy.  [default: the run's]")
]
LengthPenalty = Annotated[
    float | None, typer.Option("--length-penalty", help="α of the length penalty.  [default: the run's]")
]
MaxSource = Annotated[int, typer.Option("--max-source", help="Longest source that is translated, in tokens.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
