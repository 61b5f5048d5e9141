"""The work behind the API: requests in, what `--json` prints out. Runs beside the models, or in a process of a job."""

from __future__ import annotations

import base64
import contextlib
import io
import os
import secrets
from collections.abc import Callable, Sequence
from typing import Any

from PIL import Image

from caplens.core.captions import CaptionSet
from caplens.core.captions import Media as AnyMedia
from caplens.core.errors import InputError
from caplens.core.progress import Progress, silent
from caplens.core.workspace import Workspace
from caplens.evaluation.check import CheckReport
from caplens.evaluation.check import check as check_texts
from caplens.evaluation.compare import compare as compare_systems
from caplens.evaluation.evaluate import score_captions
from caplens.evaluation.explain import Explanation
from caplens.evaluation.explain import explain as explain_caption
from caplens.metrics import default_metrics, expand_groups, find_metric
from caplens.server.bench import bench
from caplens.server.media import Upload, frame_of, picture_of, pictures_of, video_of
from caplens.server.models import (
    BenchRequest,
    CheckRequest,
    CompareRequest,
    CompareRunsRequest,
    ExplainRequest,
    Media,
    MetricName,
    ScoreRequest,
    Strict,
    TryRequest,
)
from caplens.server.runs import compare_runs
from caplens.server.settings import Settings
from caplens.server.standing import standing

PICTURE_METRICS = ("infometic", "pac-s", "clip-s")
VIDEO_METRICS = ("em-score", "pac-s")
REFERENCE_METRICS = ("meteor", "rouge-l", "bleu-4", "spice", "sent-sim")
BOTH_METRICS = ("caplens-score",)


def score(request: ScoreRequest, settings: Settings, progress: Progress = silent) -> dict[str, Any]:
    """Return what `caplens score --json` prints."""
    captions = CaptionSet.of(
        request.candidates,
        request.references,
        pictures_of(request.images, settings),
        None if request.videos is None else [video_of(video, settings) for video in request.videos],
        request.ids,
        source="the request",
    )
    return _scored(captions, request.metrics, settings, progress)


def explain(request: ExplainRequest, settings: Settings, progress: Progress = silent) -> dict[str, Any]:
    """Return what `caplens explain --json` prints."""
    image = picture_of(request.image, settings)
    return _explained(request.caption, image, request.references, settings).to_dict()


def check(request: CheckRequest, settings: Settings, progress: Progress = silent) -> dict[str, Any]:
    """Return what `caplens check --json` prints."""
    captions = CaptionSet.of(request.texts, images=pictures_of(request.images, settings), source="the request")
    return check_texts(captions, progress=progress, **_fetching(settings, captions.images)).to_dict()


def compare(request: CompareRequest, settings: Settings, progress: Progress = silent) -> dict[str, Any]:
    """Return what `caplens compare --json` prints."""
    images = pictures_of(request.images, settings)
    first = CaptionSet.of(next(iter(request.systems.values())), request.references, images, source="the request")
    names = _allowed(request.metrics, first)
    return compare_systems(
        request.systems,
        request.references,
        images,
        metrics=names,
        resamples=request.resamples,
        seed=request.seed,
        progress=progress,
        **_options(names, settings, images),
    ).to_dict()


def try_captions(request: TryRequest, settings: Settings, progress: Progress = silent) -> dict[str, Any]:
    """Return verdicts, explanations and scores of captions of one picture, and which of them is better."""
    if request.image is not None and request.video is not None:
        raise InputError("a picture and a video were given", remedy="give one of the two")
    if request.image is None and request.video is None and not any(map(str.strip, request.references)):
        raise InputError("there is nothing to compare the caption with", remedy="give its picture, or a reference")
    texts, notes = request.captions, []
    image, video = picture_of(request.image, settings), video_of(request.video, settings)
    shown = image
    if video is not None:
        shown = frame_of(video)
        notes.append("verdict and words are by the frame in the middle of the video; scores are by the whole of it")
    references = [text for text in request.references if text.strip()]
    captions = CaptionSet.of(
        texts,
        [references] * len(texts) if references else None,
        None if image is None else [image] * len(texts),
        None if video is None else [video] * len(texts),
        source="the request",
    )
    checked = check_texts(
        CaptionSet.of(texts, images=None if shown is None else [shown] * len(texts)), **_fetching(settings, [shown])
    )
    scores = _scored(captions, _tried_metrics(captions), settings, progress)
    return {
        "check": {**checked.to_dict(), "notes": checked.notes if shown is not None else []},
        "explanations": [_explained_again(checked, row, shown, references, settings) for row in range(len(texts))],
        "scores": scores,
        "standing": standing(scores),
        "better": _better(scores),
        "frame": _address(shown) if video is not None and isinstance(shown, Upload) else None,
        "notes": notes,
    }


def _explained_again(
    checked: CheckReport, row: int, image: AnyMedia | None, references: Sequence[str], settings: Settings
) -> dict[str, Any]:
    """What `explain` says; the picture is not looked at a second time where the check has done so."""
    text = checked.captions.candidates[row]
    if row not in checked.details:
        return _explained(text, image, references, settings).to_dict()
    by_picture = {**checked.details[row], "notes": [], "signature": checked.signature}
    by_references = _explained(text, None, references, settings).to_dict() if references else {"notes": []}
    return {
        "caption": text,
        "image": checked.rows[row].image,
        "references": list(references),
        "explanations": {"picture": by_picture, **by_references.get("explanations", {})},
        "notes": by_references["notes"],
    }


def warm_up(settings: Settings) -> None:
    """Load the models before somebody waits for them; what cannot be loaded is said when it is asked for.

    Picture and words are new each time: of those in the cache no model would be asked.
    """
    stored = io.BytesIO()
    Image.frombytes("RGB", (64, 64), os.urandom(64 * 64 * 3)).save(stored, "PNG")
    picture = Media(data=base64.b64encode(stored.getvalue()).decode())
    new = f"a wall called {secrets.token_hex(8)}"
    request = TryRequest(captions=[f"{new} is gray", f"{new} and a cat"], image=picture, references=[new])
    with contextlib.suppress(Exception):
        try_captions(request, settings)


def _scored(
    captions: CaptionSet, names: Sequence[MetricName] | None, settings: Settings, progress: Progress
) -> dict[str, Any]:
    allowed = _allowed(names, captions)
    work = Workspace(captions, progress, quiet=True)
    return score_captions(work, allowed, _options(allowed, settings, captions.images)).to_dict()


def _allowed(names: Sequence[MetricName] | None, captions: CaptionSet) -> list[str]:
    """Metrics by the names we know, groups spelled out; those that cost more than time are for the command line."""
    if names is None:
        return default_metrics(captions)
    allowed = []
    for name in expand_groups(names, captions):
        metric = find_metric(name)
        if metric.only_when_named:
            raise InputError(f"{metric.name} is not computed by this server", remedy="run it with `caplens score`")
        allowed.append(metric.name)
    if not allowed:
        raise InputError(
            "none of these metrics can run on what was given", remedy="`GET /v1/metrics` says what each needs"
        )
    return allowed


def _options(names: Sequence[str], settings: Settings, images: Any) -> dict[str, Any]:
    taken = set().union(*(find_metric(name).options() for name in names))
    options = {"encoder": settings.encoder, **_fetching(settings, images)}
    return {name: value for name, value in options.items() if name in taken and value is not None}


def _fetching(settings: Settings, images: Any) -> dict[str, Any]:
    return {"allow_urls": True} if settings.allow_urls and images is not None else {}


def _explained(text: str, image: AnyMedia | None, references: Sequence[str], settings: Settings) -> Explanation:
    return explain_caption(text, image, references, **_fetching(settings, image))


def _tried_metrics(captions: CaptionSet) -> list[str]:
    names: list[str] = []
    if captions.images is not None:
        names += PICTURE_METRICS
    if captions.videos is not None:
        names += VIDEO_METRICS
    if captions.references is not None:
        names += [*(BOTH_METRICS if captions.images is not None else ()), *REFERENCE_METRICS]
    return names


def _better(scores: dict[str, Any]) -> dict[str, Any] | None:
    """Which of several captions each metric likes best; where two are alike, neither."""
    if scores["captions"] < 2:
        return None
    votes: dict[str, int | None] = {}
    for name, entry in scores["metrics"].items():
        values = [value for value in entry["scores"] if value is not None]
        if len(values) == scores["captions"]:
            best = max(values) if entry["higher_is_better"] else min(values)
            votes[name] = entry["scores"].index(best) if values.count(best) == 1 else None
    return {"votes": votes}


def _address(frame: Upload) -> str:
    return "data:image/jpeg;base64," + base64.b64encode(frame.data).decode("ascii")


Task = Callable[[Any, Settings, Progress], dict[str, Any]]
JOBS: dict[str, tuple[type[Strict], Task]] = {
    "score": (ScoreRequest, score),
    "check": (CheckRequest, check),
    "compare": (CompareRequest, compare),
    "compare-runs": (CompareRunsRequest, compare_runs),
    "bench": (BenchRequest, bench),
}
"""Kind of a job to its request and its work."""
