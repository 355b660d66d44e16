"""`glassformer distil`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.built_in import run_folder
from glassformer.cli.arguments import BeamSize, Data
from glassformer.errors import ConfigError, counted

if TYPE_CHECKING:
    from glassformer.jobs.distillation import DistilledCorpus
    from glassformer.jobs.diversification import DiversifiedCorpus
    from glassformer.jobs.student_corpus import StudentCorpus

__all__ = ["distil_command"]


def distil_command(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            parser=run_folder,
            help="Run of the teacher, or a file written by `tune`; several runs teach as an ensemble.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", metavar="DIR", help="Write the corpus and the student's run to DIR.")
    ],
    backward: Annotated[
        list[Path] | None,
        typer.Option(
            "--backward",
            metavar="RUN",
            parser=run_folder,
            help="Also let this run of the opposite direction translate the targets, and keep the original pairs. "
            "With --backward, several runs translate separately, not as an ensemble. Repeatable.",
        ),
    ] = None,
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
            help="Use the translations of --source that `bulk` wrote to DIR.",
        ),
    ] = "",
    labelled: Annotated[
        bool,
        typer.Option(
            "--labelled", help="Train on the teacher's training pairs as well as on its outputs for --source."
        ),
    ] = False,
    beam_size: BeamSize = None,
    n_best: Annotated[
        int, typer.Option("--n-best", metavar="N", help="Keep the N best translations of each source.")
    ] = 1,
    sample: Annotated[
        bool,
        typer.Option(
            "--sample",
            help="Sample the N translations at random; set the temperature by --set decoding.temperature=0.8.",
        ),
    ] = False,
    best_of_reference: Annotated[
        str,
        typer.Option(
            "--best-of-reference",
            metavar="METRIC",
            help="Keep the N outputs of the beam that are nearest to the reference by METRIC, such as bleu or per.",
        ),
    ] = "",
    keep_reference: Annotated[
        bool, typer.Option("--keep-reference", help="Keep the reference as an additional translation.")
    ] = False,
    student: Annotated[
        str | None,
        typer.Option(
            "--student",
            metavar="CONFIG",
            help="Then train a student with this configuration: a TOML file, or a recipe's name.",
        ),
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
    of_search, of_student = _search_and_student(overrides, student, new_tokenizer=new_tokenizer)
    files: dict[str, Any] = {"source": source, "target": target, "translations": translations, "labelled": labelled}
    if backward:
        _refuse({**files, "keep-reference": keep_reference})
    from glassformer.cli.progress import TrainingProgress, stop_on_signal
    from glassformer.jobs.distillation import distil
    from glassformer.jobs.diversification import DiversifiedCorpus, diversify
    from glassformer.jobs.student_corpus import TeacherSearch
    from glassformer.recipes.toml import decoding_changes

    search = TeacherSearch(
        n_best=n_best, best_of_reference=best_of_reference, keep_reference=keep_reference, sample=sample
    )
    settings = decoding_changes(of_search, beam_size=beam_size, sampling=sample)
    how: dict[str, Any] = {"search": search, "settings": settings, "data": data}
    corpus: DistilledCorpus | DiversifiedCorpus
    with TrainingProgress() as show, stop_on_signal(show):
        if backward:
            corpus = diversify(runs, backward, output, **how, on_progress=show)
        else:
            corpus = distil(runs, output, **files, **how, on_progress=show)
    typer.echo(_diversified(corpus) if isinstance(corpus, DiversifiedCorpus) else _distilled(corpus))
    _train_student(corpus, student, of_student, new_tokenizer=new_tokenizer)


def _search_and_student(
    overrides: list[str] | None, student: str | None, *, new_tokenizer: bool
) -> tuple[list[str], list[str]]:
    """Return the overrides for the teachers' searches, and the overrides for the student.

    Raises:
        ConfigError: a setting is for the student, but no student is requested.
    """
    of_search = [one for one in overrides or () if one.lstrip().startswith("decoding.")]
    of_student = [one for one in overrides or () if one not in of_search]
    if student is None and (of_student or new_tokenizer):
        given = f"--set {of_student[0]}" if of_student else "--new-tokenizer"
        raise ConfigError(f"{given} is for the student; give its configuration by --student, or leave out {given}")
    return of_search, of_student


def _refuse(options: dict[str, Any]) -> None:
    """Refuse options that have no effect with `--backward`."""
    for name, value in options.items():
        if value:
            raise ConfigError(
                f"--{name} has no effect with --backward, which adds translations to the runs' own corpus; leave one "
                "of them out"
            )


def _train_student(corpus: "StudentCorpus", student: str | None, overrides: list[str], *, new_tokenizer: bool) -> None:
    """Train a student on a corpus and print the result; without a student, print how to train one."""
    if student is None:
        typer.echo("train on the corpus:  the same command with --student CONFIG")
        return
    from glassformer.cli.train.train import print_summary, train_with_progress
    from glassformer.jobs.student import prepare_student

    configuration = prepare_student(corpus, student, overrides, new_tokenizer=new_tokenizer)
    print_summary(train_with_progress(configuration))


def _distilled(corpus: "DistilledCorpus") -> str:
    """Return a description of a translated corpus in words: its size, and its lines without a translation."""
    now = "" if corpus.made == corpus.lines else f", {corpus.made:,} of them translated now"
    without = "".join(
        f", {count:,} lines without a translation ({why.replace('_', ' ')})"
        for why, count in corpus.untranslated.items()
    )
    labelled = f"{corpus.labelled:,} labelled pairs, " if corpus.labelled else ""
    lines = counted(corpus.lines, "line")
    return f"{labelled}{lines}{now}: {counted(corpus.pairs, 'translation')}{without}: {corpus.folder}"


def _diversified(corpus: "DiversifiedCorpus") -> str:
    """Return a description in words of a corpus that was joined with its translations."""
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
