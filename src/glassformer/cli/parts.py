"""Make the parts of a job, check them, and print what was done: the options --part, --ray and --finish."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from glassformer.cli.progress import TrainingProgress, stop_on_signal
from glassformer.cli.use.translate import print_untranslated
from glassformer.errors import ConfigError, quoted
from glassformer.jobs.bulk import bulk, finish_bulk

if TYPE_CHECKING:
    from glassformer.jobs.bulk import BulkJob

__all__ = ["run_job"]


def run_job(make_job: "Callable[[], BulkJob]", part: str | None, ray: str | None, *, finish: bool) -> None:
    """Make the missing parts of a job, of a share of it or on Ray; or finish it.

    Raises:
        ConfigError: the options contradict each other.
    """
    if finish and (part is not None or ray is not None):
        raise ConfigError(f"--finish checks all parts: leave out {'--ray' if part is None else '--part'}")
    if part is not None and ray is not None:
        raise ConfigError("--ray makes all parts: leave out --part, or leave out --ray")
    share, shares = _share(part or "1/1")
    with TrainingProgress() as show, stop_on_signal(show):
        job = make_job()
        if finish:
            manifest = finish_bulk(job, on_progress=show)
        elif ray is not None:
            from glassformer.jobs.ray_pool import bulk_with_ray

            summary = bulk_with_ray(job, ray, on_progress=show)
        else:
            summary = bulk(job, share, shares, on_progress=show)
    done = "translated" if job.target_column is None else "scored"
    if finish:
        parts = sum(len(file["parts"]) for file in manifest["files"])
        typer.echo(
            f"each line {done} once (files: {len(job.files):,}, parts: {parts:,}, lines: {manifest['lines']:,}); "
            f"manifest: {job.output}/manifest.json"
        )
        return
    print_untranslated(summary.statuses, "translation" if job.target_column is None else "score")
    typer.echo(f"parts: {summary.parts:,}, {done} now: {summary.made:,}; folder: {job.output}")


def _share(part: str) -> tuple[int, int]:
    """Return the number of a share, from 1, and the number of shares."""
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", part)
    if not found:
        raise ConfigError(f"--part: expected I/N with 1 ≤ I ≤ N, such as 1/4, got {quoted(part)}")
    return int(found[1]), int(found[2])
