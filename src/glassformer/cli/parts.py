"""Make or check the parts of a job, and print the result: --part, --ray, --finish and --part-bytes."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from glassformer.errors import ConfigError, quoted
from glassformer.jobs.options import PART_BYTES

if TYPE_CHECKING:
    from glassformer.jobs.bulk import BulkJob

__all__ = ["Parts"]


class Parts(NamedTuple):
    """The options that choose which parts of a job are made, where, and how large."""

    part: Annotated[
        str | None,
        typer.Option("--part", metavar="I/N", help="Make only the I-th of N shares of the parts.  [default: 1/1]"),
    ] = None
    ray: Annotated[
        str | None,
        typer.Option(
            "--ray", metavar="[ADDRESS]", help="Make the parts on a Ray cluster, at ADDRESS or on this machine."
        ),
    ] = None
    finish: Annotated[
        bool,
        typer.Option("--finish", help="Only check that the parts contain each line once, and write manifest.json."),
    ] = False
    part_bytes: Annotated[
        int,
        typer.Option(
            "--part-bytes",
            metavar="N",
            help="Make parts of N bytes; a compressed file is one part, and row groups of .parquet files are not cut.",
        ),
    ] = PART_BYTES

    def run(self, make_job: "Callable[[], BulkJob]") -> None:
        """Make the missing parts of a job, or of one share of it, on this machine or on Ray; or finish the job.

        Raises:
            ConfigError: the options contradict each other.
        """
        if self.finish and (self.part is not None or self.ray is not None):
            raise ConfigError(f"--finish checks all parts; leave out {'--ray' if self.part is None else '--part'}")
        if self.part is not None and self.ray is not None:
            raise ConfigError("--ray makes all parts; leave out --part or --ray")
        share, shares = _share(self.part or "1/1")
        from glassformer.cli.progress import TrainingProgress, stop_on_signal
        from glassformer.cli.use.translate import print_untranslated
        from glassformer.jobs.bulk import bulk, finish_bulk

        with TrainingProgress() as show, stop_on_signal(show):
            job = make_job()
            if self.finish:
                manifest = finish_bulk(job, on_progress=show)
            elif self.ray is not None:
                from glassformer.jobs.ray_bulk import bulk_with_ray

                summary = bulk_with_ray(job, self.ray, on_progress=show)
            else:
                summary = bulk(job, share, shares, on_progress=show)
        done = "translated" if job.target_column is None else "scored"
        if self.finish:
            parts = sum(len(file["parts"]) for file in manifest["files"])
            typer.echo(
                f"each line {done} once (files: {len(job.files):,}, parts: {parts:,}, lines: {manifest['lines']:,}); "
                f"manifest: {job.output}/manifest.json"
            )
            return
        what = "translation" if job.target_column is None else "score"
        limit = f"{job.decoding.max_source:,} tokens (decoding.max_source)" if summary.statuses["too_long"] else ""
        print_untranslated(summary.statuses, f"{job.output}/parts/*.status.jsonl say", limit, what)
        typer.echo(f"parts: {summary.parts:,}, {done} now: {summary.made:,}; folder: {job.output}")


def _share(part: str) -> tuple[int, int]:
    """Return the number of a share, counted from 1, and the number of shares."""
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", part)
    if not found:
        raise ConfigError(f"--part: expected I/N with 1 ≤ I ≤ N, such as 1/4, got {quoted(part)}")
    return int(found[1]), int(found[2])
