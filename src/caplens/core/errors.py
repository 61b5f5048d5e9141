"""The one family of exceptions: each says what was wrong, where, and what to do about it."""

from __future__ import annotations

import os
import sys
import traceback

from caplens.core.terminal_text import printable


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


class UnexpectedError(CaplensError):
    """An exception that nobody foresaw, in caplens or in a plug-in; its cause is that exception."""


class CaplensWarning(UserWarning):
    """Something the user should know about a number that was computed all the same."""


class MetricNote(CaplensWarning):
    """What a metric has to say about its numbers; several metrics may say the same."""

    def __init__(self, metric: str, note: str) -> None:
        self.metric, self.note = metric, note
        super().__init__(f"{metric}: {note}")


def as_caplens_error(error: Exception) -> CaplensError:
    """Return what to tell people about any exception: caplens's own as it is, others with what can be done.

    This is for the boundaries behind which a failure costs one metric, picture or row and nothing else. With
    `CAPLENS_DEBUG` set, the traceback of what nobody foresaw goes to standard error. An interrupt is no `Exception`
    and ends the run.

    >>> str(as_caplens_error(OSError(28, "No space left on device", "scores.json")))
    'scores.json: No space left on device'
    """
    if isinstance(error, CaplensError):
        return error
    told: CaplensError
    if isinstance(error, MemoryError):
        told = InputError("there is not enough memory", remedy="give fewer captions or smaller pictures at once")
    elif isinstance(error, OSError):
        told = InputError(error.strerror or str(error) or type(error).__name__, where=os.fspath(error.filename or ""))
    else:
        told = UnexpectedError(
            f"an error in caplens or in a plug-in ({type(error).__name__}: {str(error)[:300]}); please report it with "
            "what CAPLENS_DEBUG=1 shows"
        )
    told.__cause__ = error
    if os.environ.get("CAPLENS_DEBUG"):
        for line in "".join(traceback.format_exception(error)).splitlines():
            print(printable(line), file=sys.stderr)
    return told
