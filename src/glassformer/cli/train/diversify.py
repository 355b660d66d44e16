"""`glassformer diversify`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli.arguments import BeamSize, Data
from glassformer.cli.train.student import (
    NewTokenizer,
    Sampled,
    Student,
    StudentFolder,
    StudentOverrides,
    TranslationsKept,
    search_and_student,
    train_student,
)

if TYPE_CHECKING:
    from glassformer.jobs.diversification import DiversifiedCorpus

__all__ = ["diversify_command"]


def diversify_command(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run that translates the sources; each of several by itself.")
    ],
    backward: Annotated[
        list[Path],
        typer.Option(
            "--backward",
            metavar="RUN",
            help="Run of the opposite direction, which translates the targets. Repeatable.",
        ),
    ],
    output: StudentFolder,
    data: Data = None,
    beam_size: BeamSize = None,
    n_best: TranslationsKept = 1,
    sample: Sampled = False,
    student: Student = None,
    overrides: StudentOverrides = None,
    new_tokenizer: NewTokenizer = False,
) -> None:
    """Add translations of the training corpus to it, in both directions.

    Without --student, only write the corpus. Run the same command to resume.
    """
    of_search, of_student = search_and_student(overrides, student, new_tokenizer=new_tokenizer)
    from glassformer.cli.progress import TrainingProgress, stop_on_signal
    from glassformer.jobs.diversification import diversify
    from glassformer.recipes.toml import decoding_changes

    settings = decoding_changes(of_search, beam_size=beam_size, sampling=sample)
    how: dict[str, Any] = {"n_best": n_best, "sample": sample, "settings": settings, "data": data}
    with TrainingProgress() as show, stop_on_signal(show):
        corpus = diversify(runs, backward, output, **how, on_progress=show)
    typer.echo(_in_words(corpus))
    train_student(corpus, student, of_student, new_tokenizer=new_tokenizer)


def _in_words(corpus: "DiversifiedCorpus") -> str:
    by_origin = " + ".join(f"{count:,} {origin}" for origin, count in corpus.pairs.items())
    left_out = {
        "repeated": corpus.repeated,
        "held out": corpus.held_out,
        "lines without a translation": corpus.untranslated,
    }
    without = "".join(f", {count:,} {why}" for why, count in left_out.items() if count)
    return (
        f"{sum(corpus.pairs.values()):,} pairs = {by_origin}{f'; left out: {without[2:]}' if without else ''}; "
        f"translated now: {corpus.made:,} lines; folder: {corpus.folder}"
    )
