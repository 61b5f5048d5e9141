"""The outcome of an evaluation, and the ways to show it."""

from caplens.report.report import Report

__all__ = ["Report"]
