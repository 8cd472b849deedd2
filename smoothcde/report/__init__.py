"""The report page: every table and figure of the results there are, in one HTML file."""

from smoothcde.report.page import report_page

__all__ = ["report_page"]
