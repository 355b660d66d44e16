"""The training report: the progress, the results and the settings of a run on one HTML page."""

from glassformer.watch.report.html import REPORT, write_report

__all__ = ["REPORT", "write_report"]
