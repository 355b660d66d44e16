"""A run as one page that a reader can keep: how it went, what it can do, what it was made of."""

from glassformer.report.page import REPORT, write_report

__all__ = ["REPORT", "write_report"]
