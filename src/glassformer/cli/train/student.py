"""Train a student on a corpus that other models have made: what `distil` and `diversify` have in common."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.errors import ConfigError

if TYPE_CHECKING:
    from glassformer.jobs.distillation import StudentCorpus

__all__ = [
    "NewTokenizer",
    "Sampled",
    "Student",
    "StudentFolder",
    "StudentOverrides",
    "TranslationsKept",
    "search_and_student",
    "train_student",
]

TranslationsKept = Annotated[
    int, typer.Option("--n-best", metavar="N", help="Keep the N best translations of each source.")
]
Sampled = Annotated[
    bool,
    typer.Option(
        "--sample", help="Draw the N translations at random; set the temperature by --set decoding.temperature=0.8."
    ),
]
StudentFolder = Annotated[
    Path, typer.Option("--output", metavar="DIR", help="Write the corpus and the student's run to DIR.")
]
Student = Annotated[
    str | None,
    typer.Option("--student", metavar="CONFIG", help="Then train a student: a TOML file, or a recipe's name."),
]
StudentOverrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SECTION.NAME=VALUE",
        help="Change a setting; decoding.… applies to the teacher, all others to the student. Repeatable.",
    ),
]
NewTokenizer = Annotated[
    bool, typer.Option("--new-tokenizer", help="Train a tokenizer for the student.  [default: the teacher's]")
]


def search_and_student(
    overrides: list[str] | None, student: str | None, *, new_tokenizer: bool
) -> tuple[list[str], list[str]]:
    """Return the overrides for the teachers' searches, and those for the student.

    Raises:
        ConfigError: a setting is for the student, but no student is wanted.
    """
    of_search = [one for one in overrides or () if one.lstrip().startswith("decoding.")]
    of_student = [one for one in overrides or () if one not in of_search]
    if student is None and (of_student or new_tokenizer):
        given = f"--set {of_student[0]}" if of_student else "--new-tokenizer"
        raise ConfigError(f"{given} is for the student: give its configuration by --student, or leave {given} out")
    return of_search, of_student


def train_student(corpus: "StudentCorpus", student: str | None, overrides: list[str], *, new_tokenizer: bool) -> None:
    """Train a student on a corpus and print the result; without a student, print how to train one."""
    if student is None:
        typer.echo("train on it:  the same command with --student CONFIG")
        return
    from glassformer.cli.train.train import print_summary, train_with_progress
    from glassformer.jobs.distillation import prepare_student

    configuration = prepare_student(corpus, student, overrides, new_tokenizer=new_tokenizer)
    print_summary(train_with_progress(configuration))
