"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from glassformer.decoding.options import EngineName, Quantization

__all__ = [
    "BeamSize",
    "ConfigName",
    "Data",
    "DecodingOverrides",
    "Device",
    "EngineChoice",
    "Ensemble",
    "Finish",
    "GlossaryFile",
    "Group",
    "Json",
    "Metrics",
    "OptionalConfigName",
    "Overrides",
    "PartBytes",
    "QuantizationChoice",
    "Ray",
    "Rescore",
    "RunFolder",
    "RunOrSystem",
    "SearchAgain",
    "Share",
    "TestReference",
    "TestSource",
    "TrainingDevice",
    "UseLexicon",
    "with_device",
]

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Run directory, such as runs/demo.")]
RunOrSystem = Annotated[
    Path, typer.Argument(metavar="RUN", help="Run directory, such as runs/demo; or a file written by `tune`.")
]
TestSource = Annotated[
    str | None,
    typer.Argument(
        metavar="SRC", help="Source text, one sentence per line; or a .tsv or .jsonl file with sources and references."
    ),
]
TestReference = Annotated[
    str | None, typer.Argument(metavar="REF", help="References, line by line; omit REF if SRC contains them.")
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
    bool, typer.Option("--retry", help="Search again, by other means, where an output is suspicious.")
]
EngineChoice = Annotated[
    EngineName,
    typer.Option(
        "--engine", help="Compute with PyTorch or CTranslate2; auto = the faster engine that gives the run's outputs."
    ),
]
QuantizationChoice = Annotated[
    Quantization | None,
    typer.Option(
        "--quantization",
        metavar="TYPE",
        help="Store the matrices as float32, bfloat16, float16, int16 or int8.  [default: as trained or exported]",
    ),
]
Device = Annotated[
    str,
    typer.Option("--device", metavar="NAME", help="Compute on cpu, cuda, cuda:N or mps; auto = a GPU if there is one."),
]
TrainingDevice = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="NAME",
        help="Train on cpu, cuda, cuda:N or mps; auto = a GPU if there is one.  [default: the configuration's]",
    ),
]
Share = Annotated[
    str | None, typer.Option("--part", metavar="I/N", help="Make the I-th of N shares of the parts.  [default: 1/1]")
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray", metavar="[ADDRESS]", help="Make the parts on a Ray cluster.  [ADDRESS: local, this machine alone]"
    ),
]
Finish = Annotated[
    bool, typer.Option("--finish", help="Only check that the parts hold each line once; then write manifest.json.")
]
PartBytes = Annotated[
    int,
    typer.Option(
        "--part-bytes",
        metavar="N",
        help="Make parts of N bytes; a compressed file is one part, and a row group of a .parquet file is not cut.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Ensemble = Annotated[
    list[Path] | None,
    typer.Option(
        "--ensemble", metavar="RUN", help="Also use this run's model, and average the probabilities. Repeatable."
    ),
]
Rescore = Annotated[
    list[Path] | None,
    typer.Option(
        "--rescore",
        metavar="RUN",
        help="Rank the outputs of all runs by the scores of all; RUN may write from right to left, or translate back. "
        "Repeatable.",
    ),
]
UseLexicon = Annotated[
    bool,
    typer.Option("--lexicon", help="Also rank outputs that the run's training words suggest by analogy, for words."),
]
GlossaryFile = Annotated[
    Path | None,
    typer.Option(
        "--glossary",
        metavar="FILE",
        help="Translate terms as FILE says: a source term, a tab and a target term per line; a|b lists forms.",
    ),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="Score by bleu, chrf, exact, word_error, wer, per or cer. Repeatable.  [default: chosen from the data]",
    ),
]
Group = Annotated[
    bool | None,
    typer.Option(
        "--group/--no-group",
        help="Score lines with the same source as one item, right if its output equals any of their references.  "
        "[default: --group if one file has sources and references]",
    ),
]


def with_device(overrides: list[str] | None, device: str | None) -> list[str]:
    """Return the changed settings of a training, with the device that was given."""
    return [*(overrides or ()), *(() if device is None else (f"training.device={device}",))]
