"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from glassformer.decoding.engine import EngineName, Quantization

__all__ = [
    "BeamSize",
    "ConfigName",
    "Data",
    "EngineChoice",
    "Ensemble",
    "Group",
    "Json",
    "LengthPenalty",
    "MaxSource",
    "Metrics",
    "Overrides",
    "QuantizationChoice",
    "RunFolder",
    "TestReference",
    "TestSource",
]

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory, such as runs/demo.")]
TestSource = Annotated[
    str | None,
    typer.Argument(metavar="SRC", help="Source text, one sentence a line; or a .tsv or .jsonl file with both sides."),
]
TestReference = Annotated[
    str | None, typer.Argument(metavar="REF", help="Its translations, line by line, unless SRC holds them.")
]
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
EngineChoice = Annotated[
    EngineName,
    typer.Option("--engine", help="What computes: PyTorch, CTranslate2, or the fastest that gives the same answers."),
]
QuantizationChoice = Annotated[
    Quantization | None,
    typer.Option("--quantization", help="Hold the matrices in fewer bits.  [default: as trained, or as exported]"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Ensemble = Annotated[
    list[Path] | None,
    typer.Option("--ensemble", metavar="RUN", help="Translate together with this run; may be given several times."),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        help="bleu, chrf, exact (accuracy), word_error (share of words that are wrong: the WER of pronunciation), wer "
        "(edits of words within lines), per or cer; may be given several times.  [default: those that fit the data]",
    ),
]
Group = Annotated[
    bool | None,
    typer.Option(
        "--group/--no-group",
        help="Lines with the same source are one item, right if any of their references is.  [default: in one file "
        "with both sides]",
    ),
]
