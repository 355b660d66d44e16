"""`glassformer distil`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.arguments import BeamSize, Data, LengthPenalty, Overrides
from glassformer.errors import ConfigError

if TYPE_CHECKING:
    from glassformer.run.distillation import DistilledCorpus

__all__ = ["distil"]


def distil(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="The teacher's run; of several, their ensemble teaches.")
    ],
    output: Annotated[Path, typer.Option("--output", metavar="DIR", help="Folder for the corpus and the student.")],
    data: Data = None,
    source: Annotated[
        str, typer.Option("--source", metavar="FILE", help="Translate this instead of the teacher's own corpus.")
    ] = "",
    target: Annotated[
        str, typer.Option("--target", metavar="FILE", help="Its references, if there are any and --source lacks them.")
    ] = "",
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    n_best: Annotated[int, typer.Option("--n-best", help="Keep so many translations of each source.")] = 1,
    best_of_reference: Annotated[
        str,
        typer.Option(
            "--best-of-reference",
            metavar="METRIC",
            help="Keep those of the beam that are nearest to the reference by bleu, chrf, per, … and not its best.",
        ),
    ] = "",
    keep_reference: Annotated[
        bool, typer.Option("--keep-reference", help="Keep the reference beside the translations.")
    ] = False,
    student: Annotated[
        str | None,
        typer.Option("--student", metavar="CONFIG", help="Then train a student: a TOML file, or a recipe's name."),
    ] = None,
    overrides: Overrides = None,
    new_tokenizer: Annotated[
        bool, typer.Option("--new-tokenizer", help="Train a tokenizer for the student.  [default: the teacher's]")
    ] = False,
) -> None:
    """Let a model translate a corpus, and train a smaller, faster one on what it says.

    Without --student only the corpus is made. Stop it when you like: the same command does only what is missing.
    """
    if student is None and (overrides or new_tokenizer):
        given = "--set" if overrides else "--new-tokenizer"
        raise ConfigError(f"{given} is for the student: give its configuration by --student, or leave {given} out")
    from glassformer.cli.progress import TrainingProgress, stop_on_signal
    from glassformer.cli.train import train_and_report
    from glassformer.run.distillation import Search, prepare_student
    from glassformer.run.distillation import distil as run_distillation

    search = Search(
        beam_size=beam_size,
        length_penalty=length_penalty,
        n_best=n_best,
        best_of_reference=best_of_reference,
        keep_reference=keep_reference,
    )
    with TrainingProgress() as show, stop_on_signal(show):
        corpus = run_distillation(
            runs, output, search=search, data=data, source=source, target=target, on_progress=show
        )
    typer.echo(_in_words(corpus))
    if student is not None:
        train_and_report(prepare_student(corpus, student, overrides or (), new_tokenizer=new_tokenizer))
    else:
        typer.echo("train on it:  the same command with --student CONFIG")


def _in_words(corpus: "DistilledCorpus") -> str:
    now = "" if corpus.made == corpus.lines else f", {corpus.made:,} of them now"
    without = "".join(
        f", {count:,} lines without one ({why.replace('_', ' ')})" for why, count in corpus.untranslated.items()
    )
    return f"{corpus.lines:,} lines{now}: {corpus.pairs:,} translations{without}: {corpus.folder}"
