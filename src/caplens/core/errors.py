"""The one family of exceptions: each says what was wrong, where, and what to do about it."""

from __future__ import annotations


class CaplensError(Exception):
    """Anything caplens refuses to do; the command line shows its text and exits with 2."""


class InputError(CaplensError):
    """A caption file, row or argument is not usable.

    >>> str(InputError("caption is a number", where="preds.jsonl, row 7, id 'cat'", remedy="write it as a string"))
    "preds.jsonl, row 7, id 'cat': caption is a number; write it as a string"
    """

    def __init__(self, problem: str, *, where: str = "", remedy: str = "") -> None:
        self.problem, self.where, self.remedy = problem, where, remedy
        super().__init__((f"{where}: " if where else "") + problem + (f"; {remedy}" if remedy else ""))


class MissingData(CaplensError):
    """A metric lacks something it cannot do without: references, images, data, weights or an optional package."""


class CaplensWarning(UserWarning):
    """Something the user should know about a number that was computed all the same."""


class MetricNote(CaplensWarning):
    """What a metric has to say about its numbers; several metrics may say the same."""

    def __init__(self, metric: str, note: str) -> None:
        self.metric, self.note = metric, note
        super().__init__(f"{metric}: {note}")
