"""All metrics: the files of this folder and those that other packages add through the entry point `caplens.metrics`."""

from __future__ import annotations

import difflib
import functools
import importlib
import importlib.util
import pkgutil
import re
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from caplens.core.captions import CaptionSet
from caplens.core.errors import CaplensError, CaplensWarning, InputError, MissingData, as_caplens_error
from caplens.metrics.base import Metric, registered
from caplens.text.named_tokenizers import tokenizer_for

__all__ = [
    "GROUPS",
    "canonical_name",
    "default_metrics",
    "expand_groups",
    "find_metric",
    "known_metrics",
    "list_metrics",
    "load_metric",
    "load_metrics",
]

BLEU = ("bleu-1", "bleu-2", "bleu-3", "bleu-4")
CLASSICAL = (*BLEU, "rouge-l", "meteor", "cider-d", "cider-r")
PICTURE = ("clip-s", "pac-s", "infometic")
GROUPS = {
    "bleu": BLEU,
    "classical": (*CLASSICAL, "spice"),
    "picture": PICTURE,
    "learned": ("bert-score", "sent-sim", "nneval", "caplens-score", *PICTURE),
}
"""Names that stand for several metrics; `all` stands for every metric but those that must be named."""


_METRIC_FILE = re.compile(r"(?P<path>.+\.py)(?::(?P<metric>\w+))?")


@functools.cache
def known_metrics() -> dict[str, type[Metric]]:
    """Name or alias to metric class. Imports every metric file once; they import nothing heavy."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    for entry in entry_points(group="caplens.metrics"):
        try:
            entry.load()
        except Exception as error:  # someone else's package must not cost our own metrics
            note = f"the plug-in {entry.value} cannot be imported: {as_caplens_error(error)}"
            warnings.warn(note, CaplensWarning, stacklevel=2)
    return dict(sorted(registered().items()))


def default_metrics(captions: CaptionSet) -> list[str]:
    """Return the quick metrics that look at everything these captions come with."""
    names: list[str] = []
    if captions.references is not None:
        names += CLASSICAL
    if captions.images is not None:
        names += PICTURE
    elif captions.videos is not None:
        names += ["pac-s", "em-score"]
    if not names:
        raise MissingData(
            "there is nothing to hold the captions against: add references (references=, --references FILE) or "
            "pictures (images=, --images DIR)"
        )
    return names


def expand_groups(names: Sequence[str], captions: CaptionSet | None = None) -> list[str]:
    """Return the names with groups spelled out; of a group, only metrics that can run on these captions.

    >>> expand_groups(["bleu", "cider-d"])
    ['bleu-1', 'bleu-2', 'bleu-3', 'bleu-4', 'cider-d']
    """
    expanded: list[str] = []
    for name in names:
        key = name.strip().lower()
        members = _all_metrics() if key == "all" else GROUPS.get(key)
        if members is None:
            expanded.append(name)
        else:
            expanded += [entry for entry in members if captions is None or find_metric(entry).takes(captions)]
    return list(dict.fromkeys(expanded))


def _all_metrics() -> list[str]:
    return [name for name, metric in known_metrics().items() if name == metric.name and not metric.only_when_named]


def find_metric(name: str) -> type[Metric]:
    """Return the class behind a name, an alias or ``file.py:Class``; a misspelt name gets suggestions."""
    if ".py" in name:
        return _from_file(name.strip())
    known = known_metrics()
    key = name.strip().lower().replace("_", "-")
    if key in known:
        return known[key]
    close = difflib.get_close_matches(key, [*known, *GROUPS, "all"], n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else "`caplens metrics` lists them"
    raise InputError(f"no metric is called {name!r}", remedy=hint)


def _from_file(name: str) -> type[Metric]:
    """Return a metric from a file of the user's own: ``./my_metric.py:MyMetric``, or the only one that is in it."""
    file = _METRIC_FILE.fullmatch(name)
    if file is None:
        raise InputError(f"no metric is called {name!r}", remedy="a file's metric is written ./my_metric.py:MyMetric")
    path, class_name = file["path"], file["metric"]
    source = Path(path)
    if not source.is_file():
        raise InputError("there is no such file", where=path, remedy="write -m ./my_metric.py:MyMetric")
    spec = importlib.util.spec_from_file_location(f"caplens_user_{source.stem}", source)
    if spec is None or spec.loader is None:
        raise InputError("this is not a Python file", where=path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # pickling its metrics needs it there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(f"cannot be imported ({type(error).__name__}: {error})", where=path) from error
    metrics = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Metric) and value.__module__ == spec.name
    }
    if class_name in metrics:
        return metrics[class_name]
    concrete = {key: value for key, value in metrics.items() if hasattr(value, "name")}
    if not class_name and len(concrete) == 1:
        return next(iter(concrete.values()))
    remedy = f"it has: {', '.join(metrics)}" if metrics else "a metric is a subclass of caplens.metrics.base.Metric"
    raise InputError(
        f"no metric {class_name!r} in it" if class_name else "it has not exactly one metric", where=path, remedy=remedy
    )


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
    names: list[str], options: dict[str, Any], missing: dict[str, CaplensError] | None = None
) -> list[Metric]:
    """Make several metrics, each with those of the options that it takes; an option nobody takes is an error.

    A metric that cannot be made, for want of data or by a bug, is left out and put into `missing` with the reason, or
    raises without it. A value that an option does not take is the user's to mend, and raises. The language of the
    captions (``language``, a code such as ``pt``) chooses the tokenizer where none is named.
    """
    by_language = _by_language(options.get("language"))
    options = {name: value for name, value in options.items() if name != "language"}
    classes: dict[str, type[Metric]] = {}
    for name in expand_groups(names):
        metric = find_metric(name)
        classes[metric.name] = metric
    taken = set().union(*(metric.options() for metric in classes.values())) if classes else set()
    unknown = sorted(set(options) - taken)
    if unknown:
        close = difflib.get_close_matches(unknown[0], taken, n=3)
        raise InputError(
            f"none of {', '.join(classes)} has an option {unknown[0]!r}",
            remedy=f"did you mean {' or '.join(close)}?" if close else f"they take: {', '.join(sorted(taken))}",
        )
    metrics: list[Metric] = []
    for name, metric in classes.items():
        try:
            own = {**by_language, **options}
            metrics.append(metric(**{key: value for key, value in own.items() if key in metric.options()}))
        except InputError:
            raise
        except Exception as error:
            if missing is None:
                raise
            missing[name] = as_caplens_error(error)
    return metrics


def _by_language(language: object) -> dict[str, Any]:
    """Return options for captions in a language, where nothing else is asked for."""
    if language is None:
        return {}
    if not isinstance(language, str) or not re.fullmatch(r"[a-z]{2,3}", language):
        raise InputError(f"the language is {language!r}", remedy="it takes a code of two or three letters, such as pt")
    return {"tokenizer": tokenizer_for(language), "language": language}


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
