"""Scores of metrics on trials, kept on disk: a second run is instant and an interrupted one goes on where it was.

The key is everything that changes a score: the metric's signature parts, the caplens version, and the content that the
metric looks at (a metric without references has one key for all reference draws).
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caplens.bench.statistics import Trial
from caplens.core.captions import CaptionSet, Media, media_name
from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.metrics.base import Metric
from caplens.storage.atomic import atomic_path
from caplens.storage.paths import cache_folder


def trial_scores(metric: Metric, work: Workspace, details: bool = False) -> Trial:
    """What the metric says about the captions of the workspace, from the store or computed and stored."""
    path = _place(metric, work.captions, details)
    stored = _read(path)
    if stored is not None:
        return stored
    metric.check(work.captions)
    result = metric.result(work)
    trial = Trial(
        scores=result.scores,
        statistics=result.statistics,
        signature=result.signature,
        notes=result.notes,
        failures=dict(result.failures),
        details=list(result.details) if details and result.details is not None else None,
    )
    _write(path, trial)
    return trial


def remembered(key: Sequence[object], arrays: Sequence[NDArray[Any]], compute: Callable[[], Floats]) -> Floats:
    """An array that takes long to compute, stored under everything it is computed from."""
    digest = hashlib.sha256(json.dumps([*map(str, key), version("caplens")]).encode())
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    path = cache_folder() / "bench" / "figures" / f"{digest.hexdigest()[:32]}.npy"
    try:
        stored: Floats = np.load(path, allow_pickle=False)
        return stored
    except (OSError, ValueError, EOFError):
        made = compute()
    with atomic_path(path) as temporary, temporary.open("wb") as handle:
        np.save(handle, made)
    return made


def is_stored(metric: Metric, captions: CaptionSet, details: bool = False) -> bool:
    """Whether nothing has to be computed."""
    return _place(metric, captions, details).exists()


def _place(metric: Metric, captions: CaptionSet, details: bool) -> Path:
    key = [metric.name, list(metric.signature_parts()), version("caplens"), details]
    digest = hashlib.sha256(json.dumps(key, default=str).encode())
    digest.update(_content(captions, metric))
    return cache_folder() / "bench" / f"{metric.name}-{digest.hexdigest()[:32]}.npz"


def _content(captions: CaptionSet, metric: Metric) -> bytes:
    digest = hashlib.sha256()

    def add(text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)

    for text in captions.candidates:
        add(text)
    if "references" in metric.needs:
        for texts in captions.references or []:
            digest.update(len(texts).to_bytes(8, "little"))
            for text in texts:
                add(text)
    if (metric.needs | metric.optional_inputs) & {"image", "video"}:
        shown = [*(captions.images or []), *(captions.videos or [])]
        keys = {id(media): _media_key(media) for media in {id(media): media for media in shown}.values()}
        for media in shown:
            add(keys[id(media)])
    return digest.digest()


def _media_key(media: Media | None) -> str:
    """Name and size: enough to tell pictures of a rating set apart without reading them all."""
    if media is None:
        return ""
    name = media_name(media)
    try:
        return f"{Path(name).name} {Path(name).stat().st_size}"
    except OSError:
        return name


def _write(path: Path, trial: Trial) -> None:
    facts = {
        "signature": trial.signature,
        "notes": list(trial.notes),
        "failures": {str(row): reason for row, reason in (trial.failures or {}).items()},
        "details": trial.details,
    }
    with atomic_path(path) as temporary, temporary.open("wb") as handle:
        text = json.dumps(facts, default=_plain)
        np.savez_compressed(handle, scores=trial.scores, statistics=trial.statistics, facts=np.array(text))


def _read(path: Path) -> Trial | None:
    try:
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
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None  # not there, or damaged: computed again


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    return str(value)
