"""`glassformer distil`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from glassformer.cli.arguments import BeamSize, Data
from glassformer.errors import ConfigError

if TYPE_CHECKING:
    from glassformer.jobs.distillation import DistilledCorpus

__all__ = ["distil_command"]


def distil_command(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run of the teacher; several runs teach as an ensemble.")
    ],
    output: Annotated[
        Path, typer.Option("--output", metavar="DIR", help="Write the corpus and the student's run to DIR.")
    ],
    level: Annotated[
        Literal["sequence", "token"],
        typer.Option(
            "--level",
            metavar="LEVEL",
            help="Learn the teacher's outputs (sequence); or its training pairs, and what it expects at each token of "
            "these pairs and of its outputs for --source (token).",
        ),
    ] = "sequence",
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
    beam_size: BeamSize = None,
    n_best: Annotated[
        int, typer.Option("--n-best", metavar="N", help="Keep the N best translations of each source.")
    ] = 1,
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
    student: Annotated[
        str | None,
        typer.Option("--student", metavar="CONFIG", help="Then train a student: a TOML file, or a recipe's name."),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="SECTION.NAME=VALUE",
            help="Change a setting; decoding.… applies to the teacher, all others to the student. Repeatable.",
        ),
    ] = None,
    new_tokenizer: Annotated[
        bool, typer.Option("--new-tokenizer", help="Train a tokenizer for the student.  [default: the teacher's]")
    ] = False,
) -> None:
    """Train a smaller, faster or better model on a model's translations.

    Without --student, only write the corpus. Run the same command to resume.
    """
    of_search = [one for one in overrides or () if one.lstrip().startswith("decoding.")]
    of_student = [one for one in overrides or () if one not in of_search]
    if student is None and (of_student or new_tokenizer):
        given = f"--set {of_student[0]}" if of_student else "--new-tokenizer"
        raise ConfigError(f"{given} is for the student: give its configuration by --student, or leave {given} out")
    from glassformer.cli.progress import TrainingProgress, stop_on_signal
    from glassformer.cli.train.train import print_summary, train_with_progress
    from glassformer.jobs.distillation import TeacherSearch, distil, prepare_student
    from glassformer.recipes.toml import decoding_changes

    search = TeacherSearch(n_best=n_best, best_of_reference=best_of_reference, keep_reference=keep_reference)
    settings = decoding_changes(of_search, beam_size=beam_size)
    with TrainingProgress() as show, stop_on_signal(show):
        files: dict[str, Any] = {"data": data, "source": source, "target": target, "translations": translations}
        corpus = distil(runs, output, level=level, search=search, settings=settings, **files, on_progress=show)
    typer.echo(_in_words(corpus))
    if student is not None:
        configuration = prepare_student(corpus, student, of_student, new_tokenizer=new_tokenizer)
        print_summary(train_with_progress(configuration))
    else:
        typer.echo("train on it:  the same command with --student CONFIG")


def _in_words(corpus: "DistilledCorpus") -> str:
    now = "" if corpus.made == corpus.lines else f", {corpus.made:,} of them translated now"
    without = "".join(
        f", {count:,} lines without a translation ({why.replace('_', ' ')})"
        for why, count in corpus.untranslated.items()
    )
    labelled = f"{corpus.labelled:,} labelled pairs, " if corpus.labelled else ""
    return f"{labelled}{corpus.lines:,} lines{now}: {corpus.pairs:,} translations{without}: {corpus.folder}"
