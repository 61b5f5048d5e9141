"""Scores of metrics on trials, kept on disk: a second run is instant and an interrupted one goes on where it was.

Scores are kept under the metric's identity and the content of everything it looks at, pictures included (a metric
without references has one key for all reference draws). What has no lasting identity is computed and not kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from caplens.bench.statistics import Trial
from caplens.core.captions import CaptionSet
from caplens.core.signature import caplens_version
from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.metrics.base import Metric
from caplens.storage.cache import FileCache
from caplens.storage.content import content_identity
from caplens.storage.identity import Identity

_STORE = FileCache("bench")


def trial_scores(metric: Metric, work: Workspace, details: bool = False) -> Trial:
    """Return what the metric says about the captions of the workspace, from the store or computed and stored."""

    def compute() -> Trial:
        metric.check(work.captions)
        result = metric.result(work)
        return Trial(
            scores=result.scores,
            statistics=result.statistics,
            signature=result.signature,
            notes=result.notes,
            failures=dict(result.failures),
            details=list(result.details) if details and result.details is not None else None,
        )

    name = _file_name(metric, work.captions, details)
    return compute() if name is None else _STORE.get_or_make(name, compute, _read, _write)


def stored_array(identity: Identity, compute: Callable[[], Floats]) -> Floats:
    """Return an array that takes long to compute, stored under everything it is computed from."""
    if not identity.lasting:
        return compute()
    key = Identity.of([identity, caplens_version()]).digest
    return FileCache("bench-figures").get_or_compute(f"{key[:32]}.npy", compute)


def is_stored(metric: Metric, captions: CaptionSet, details: bool = False) -> bool:
    """Whether nothing has to be computed."""
    name = _file_name(metric, captions, details)
    return name is not None and _STORE.find(name) is not None


def _file_name(metric: Metric, captions: CaptionSet, details: bool) -> str | None:
    """Where the scores are kept; None if they cannot be, because something they depend on has no name."""
    parts = [metric.identity(), content_identity(captions, metric.inputs(captions)), details, caplens_version()]
    identity = Identity.of(parts)
    return f"{metric.name}-{identity.digest[:32]}.npz" if identity.lasting else None


def _write(trial: Trial, path: Path) -> None:
    facts = {
        "signature": trial.signature,
        "notes": list(trial.notes),
        "failures": {str(row): reason for row, reason in (trial.failures or {}).items()},
        "details": trial.details,
    }
    with path.open("wb") as file:
        text = json.dumps(facts, default=_plain)
        np.savez_compressed(file, scores=trial.scores, statistics=trial.statistics, facts=np.array(text))


def _read(path: Path) -> Trial:
    with np.load(path, allow_pickle=False) as stored:
        facts = json.loads(str(stored["facts"]))
        return Trial(
            scores=stored["scores"],
            statistics=stored["statistics"],
            signature=facts["signature"],
            notes=tuple(facts["notes"]),
            failures={int(row): reason for row, reason in facts["failures"].items()},
            details=facts["details"],
        )


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    return str(value)
