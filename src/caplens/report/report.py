"""Report: the scores of every metric on one set of captions, as Python, json, a data frame or a page."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from caplens.captions import CaptionSet
from caplens.errors import MissingData
from caplens.files import write_atomically
from caplens.metrics.base import Result

if TYPE_CHECKING:
    import pandas


class Report:
    """Results by metric name, in the order they were asked for."""

    def __init__(self, captions: CaptionSet) -> None:
        self.captions = captions
        self.results: dict[str, Result] = {}
        self.errors: dict[str, str] = {}
        """Metric name to reason, for metrics that could not run."""

    def add(self, result: Result) -> None:
        self.results[result.name] = result

    def __getitem__(self, name: str) -> Result:
        if name in self.results:
            return self.results[name]
        if name in self.errors:
            raise MissingData(self.errors[name])
        raise KeyError(f"{name} was not computed; this report has: {', '.join(self.results)}")

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results.values())

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        shown = ", ".join(f"{result.name} {result.score:.4f}" for result in self)
        return f"<Report of {len(self.captions)} captions: {shown}>"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values; NaN becomes None so that any json reader takes it."""
        return {
            "captions": len(self.captions),
            "ids": self.captions.ids,
            "metrics": {
                result.name: {
                    "score": _plain(result.score),
                    "signature": result.signature,
                    "scores": [_plain(score) for score in result.scores.tolist()],
                    "notes": list(result.notes),
                    "failures": {self.captions.ids[row]: reason for row, reason in result.failures.items()},
                    **({"details": result.details} if result.details is not None else {}),
                }
                for result in self
            },
            "errors": dict(self.errors),
        }

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write `to_dict` as a json file."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, default=_jsonable, allow_nan=False)
        write_atomically(path, text + "\n")

    def to_pandas(self) -> pandas.DataFrame:
        """One row per caption: id, candidate, and a column per metric."""
        try:
            import pandas
        except ImportError:
            raise MissingData("to_pandas needs pandas: pip install 'caplens[table]'") from None
        columns = {result.name: result.scores for result in self}
        return pandas.DataFrame({"id": self.captions.ids, "candidate": self.captions.candidates, **columns})

    def to_html(self, path: str | os.PathLike[str], title: str = "") -> None:
        """Write one self-contained page."""
        from caplens.report.html import render

        write_atomically(path, render(self, title or Path(path).stem))


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else value


def _jsonable(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be written as json")
