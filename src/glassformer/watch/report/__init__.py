"""The training report: a run's course, results and settings on one HTML page."""

from glassformer.watch.report.html import REPORT, write_report

__all__ = ["REPORT", "write_report"]
