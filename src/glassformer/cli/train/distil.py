"""`glassformer distil`."""

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
    from glassformer.jobs.distillation import DistilledCorpus

__all__ = ["distil_command"]


def distil_command(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Run of the teacher, or a file that `tune` wrote; several runs teach as an ensemble.",
        ),
    ],
    output: StudentFolder,
    data: Data = None,
    source: Annotated[
        str,
        typer.Option("--source", metavar="FILE", help="Translate FILE instead of the teacher's own corpus."),
    ] = "",
    target: Annotated[
        str, typer.Option("--target", metavar="FILE", help="Read the references of --source from FILE.")
    ] = "",
    translations: Annotated[
        str,
        typer.Option(
            "--translations",
            metavar="DIR",
            help="Use the translations of --source that `bulk` has written to DIR.",
        ),
    ] = "",
    labelled: Annotated[
        bool,
        typer.Option(
            "--labelled", help="Train on the teacher's training pairs as well as on its outputs for --source."
        ),
    ] = False,
    beam_size: BeamSize = None,
    n_best: TranslationsKept = 1,
    sample: Sampled = False,
    best_of_reference: Annotated[
        str,
        typer.Option(
            "--best-of-reference",
            metavar="METRIC",
            help="Keep the translations of the beam that are nearest to the reference by METRIC, such as bleu or per.",
        ),
    ] = "",
    keep_reference: Annotated[
        bool, typer.Option("--keep-reference", help="Keep the reference as an additional translation.")
    ] = False,
    student: Student = None,
    overrides: StudentOverrides = None,
    new_tokenizer: NewTokenizer = False,
) -> None:
    """Train a smaller, faster or better model on a model's translations.

    Without --student, only write the corpus. Run the same command to resume.
    """
    of_search, of_student = search_and_student(overrides, student, new_tokenizer=new_tokenizer)
    from glassformer.cli.progress import TrainingProgress, stop_on_signal
    from glassformer.jobs.distillation import TeacherSearch, distil
    from glassformer.recipes.toml import decoding_changes

    search = TeacherSearch(
        n_best=n_best, best_of_reference=best_of_reference, keep_reference=keep_reference, sample=sample
    )
    settings = decoding_changes(of_search, beam_size=beam_size, sampling=sample)
    with TrainingProgress() as show, stop_on_signal(show):
        files: dict[str, Any] = {"data": data, "source": source, "target": target, "translations": translations}
        how: dict[str, Any] = {"search": search, "settings": settings, "labelled": labelled}
        corpus = distil(runs, output, **files, **how, on_progress=show)
    typer.echo(_in_words(corpus))
    train_student(corpus, student, of_student, new_tokenizer=new_tokenizer)


def _in_words(corpus: "DistilledCorpus") -> str:
    now = "" if corpus.made == corpus.lines else f", {corpus.made:,} of them translated now"
    without = "".join(
        f", {count:,} lines without a translation ({why.replace('_', ' ')})"
        for why, count in corpus.untranslated.items()
    )
    labelled = f"{corpus.labelled:,} labelled pairs, " if corpus.labelled else ""
    return f"{labelled}{corpus.lines:,} lines{now}: {corpus.pairs:,} translations{without}: {corpus.folder}"
