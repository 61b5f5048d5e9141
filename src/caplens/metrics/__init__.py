"""All metrics: the files of this folder and those that other packages add through the entry point `caplens.metrics`."""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
from importlib.metadata import entry_points
from typing import Any

from caplens.core.errors import InputError, MissingData
from caplens.metrics.base import Metric, registered

# One name that stands for several metrics.
GROUPS = {"bleu": ("bleu-1", "bleu-2", "bleu-3", "bleu-4")}


@functools.cache
def known_metrics() -> dict[str, type[Metric]]:
    """Name or alias to metric class. Imports every metric file once; they import nothing heavy."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    for entry in entry_points(group="caplens.metrics"):
        entry.load()
    return dict(sorted(registered().items()))


def find_metric(name: str) -> type[Metric]:
    """The class behind a name or alias; a misspelt name gets suggestions."""
    known = known_metrics()
    key = name.strip().lower().replace("_", "-")
    if key in known:
        return known[key]
    close = difflib.get_close_matches(key, [*known, *GROUPS], n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else "`caplens metrics` lists them"
    raise InputError(f"no metric is called {name!r}", remedy=hint)


def canonical_name(name: str) -> str:
    """Return the metric's own name for a name or alias; a name nobody has comes back as it is.

    >>> canonical_name("cider"), canonical_name("mine")
    ('cider-d', 'mine')
    """
    metric = known_metrics().get(name.strip().lower())
    return name if metric is None else metric.name


def load_metric(name: str, **options: Any) -> Metric:
    """Make one metric; options are its keyword arguments.

    >>> load_metric("cider-r", k_r=0.5).name
    'cider-r'
    """
    metric = find_metric(name)
    unknown = sorted(set(options) - metric.options())
    if unknown:
        takes = ", ".join(sorted(metric.options())) or "no options"
        raise InputError(f"{metric.name} has no option {unknown[0]!r}", remedy=f"it takes: {takes}")
    return metric(**options)


def load_metrics(
    names: list[str], options: dict[str, Any], missing: dict[str, MissingData] | None = None
) -> list[Metric]:
    """Make several metrics, each with those of the options that it takes; an option nobody takes is an error.

    A metric that lacks data or weights is left out and put into `missing` with the reason, or raises without it.
    """
    wanted: dict[str, type[Metric]] = {}
    for name in names:
        for single in GROUPS.get(name.strip().lower(), (name,)):
            found = find_metric(single)
            wanted[found.name] = found
    taken = set().union(*(metric.options() for metric in wanted.values())) if wanted else set()
    unknown = sorted(set(options) - taken)
    if unknown:
        close = difflib.get_close_matches(unknown[0], taken, n=3)
        raise InputError(
            f"none of {', '.join(wanted)} has an option {unknown[0]!r}",
            remedy=f"did you mean {' or '.join(close)}?" if close else f"they take: {', '.join(sorted(taken))}",
        )
    made: list[Metric] = []
    for name, metric in wanted.items():
        try:
            made.append(metric(**{key: value for key, value in options.items() if key in metric.options()}))
        except MissingData as reason:
            if missing is None:
                raise
            missing[name] = reason
    return made


def list_metrics() -> list[dict[str, Any]]:
    """Name, needs, paper and one line for every metric."""
    return [
        {
            "name": metric.name,
            "aliases": list(metric.aliases),
            "needs": sorted(metric.needs),
            "paper": metric.paper,
            "summary": metric.summary,
        }
        for name, metric in known_metrics().items()
        if name == metric.name
    ]
