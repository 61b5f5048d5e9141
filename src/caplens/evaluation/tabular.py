"""Results that people look at as a table, in every format a paper or a notebook wants."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from caplens.core.tables import Table, TableFormat
from caplens.storage.atomic import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from caplens.evaluation.plots import Panel


class Tabular(ABC):
    """A result that people look at as a table."""

    @abstractmethod
    def table(self) -> Table:
        """Return all of it as one table."""

    def tables(self) -> dict[str, Table]:
        """Return what a terminal shows, table by table under their titles: 80 columns are not wide."""
        return {"": self.table()}

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the table as csv, and write it where a path is given; `to_latex` and `to_markdown` likewise."""
        return self._written("csv", path)

    def to_latex(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the table as LaTeX (booktabs)."""
        return self._written("latex", path)

    def to_markdown(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the table as Markdown."""
        return self._written("markdown", path)

    def _repr_html_(self) -> str:
        return self.table().to_html()

    def _written(self, name: TableFormat, path: str | os.PathLike[str] | None) -> str:
        text = self.table().to_format(name)
        if path is not None:
            write_atomically(path, text)
        return text


class Plottable(Tabular):
    """A table of numbers with intervals, which can be drawn, too."""

    @abstractmethod
    def panels(self) -> Sequence[Panel]:
        """Return what the plot shows."""

    def plot(self) -> Figure:
        """Return a figure of matplotlib: every number with its 95 % interval."""
        from caplens.evaluation.plots import draw

        return draw(self.panels())
