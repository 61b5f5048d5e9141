"""Which metric agrees with your people? The ratings of a session, measured as `caplens bench --ratings` does it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from caplens.bench.custom_ratings import OwnRatings
from caplens.bench.data import DataFolders
from caplens.bench.run import run
from caplens.core.errors import CaplensError, InputError
from caplens.core.plain_json import json_text
from caplens.core.progress import Progress, silent
from caplens.metrics import find_metric, load_metrics
from caplens.server.models import BenchRequest
from caplens.server.ratings import Session, Sessions
from caplens.server.settings import Settings

QUICK = ("length", "bleu-4", "rouge-l", "meteor", "cider-d", "spice", "sent-sim", "caplens-score")
LOOKING = ("clip-s", "pac-s", "infometic")


def bench(request: BenchRequest, settings: Settings, progress: Progress = silent) -> dict[str, Any]:
    """Return what `caplens bench --json` prints for the ratings of a session."""
    session = Sessions(settings.state).get(request.session)
    if not session.judgments():
        raise InputError("nobody has rated anything yet", where=session.name)
    names = request.metrics or _fitting(session, settings)
    for name in names:
        if find_metric(name).only_when_named:
            raise InputError(f"{name} is not computed by this server", remedy="run it with `caplens bench`")
    missing: dict[str, CaplensError] = {}
    metrics = load_metrics(list(names), _encoder(names, settings), missing)
    with tempfile.TemporaryDirectory(prefix="caplens-") as folder:
        ratings, captions = _write(session, Path(folder), settings)
        return run([OwnRatings(ratings, captions)], metrics, DataFolders([]), progress=progress).to_dict()


def _write(session: Session, folder: Path, settings: Settings) -> tuple[Path, list[Path]]:
    """Write the judgments and the captions they are about, with pictures where they are below the server's folders."""
    ratings = folder / "ratings.csv"
    lines = [f"{judgment.item},{judgment.value}\n" for judgment in session.judgments()]
    ratings.write_text(f"id,{session.kind}\n" + "".join(lines), "utf-8")
    captions = []
    for number in range(len(session.runs)):
        captions.append(folder / f"captions-{number + 1}.jsonl")
        rows = (_row(session, place, number, settings) for place in range(len(session.items)))
        captions[-1].write_text("".join(json_text(row) + "\n" for row in rows), "utf-8")
    return ratings, captions


def _row(session: Session, place: int, run_number: int, settings: Settings) -> dict[str, Any]:
    item = session.items[place]
    row: dict[str, Any] = {"id": str(place), "caption": item.captions[run_number]}
    if _with_references(session):
        row["references"] = item.references
    found = None if item.media is None else settings.find_media(item.media)
    return row if found is None else {**row, "image": str(found)}


def _with_references(session: Session) -> bool:
    return all(item.references for item in session.items)


def _fitting(session: Session, settings: Settings) -> list[str]:
    """The quick metrics that can run on what the session has."""
    seen = any(item.media is not None and settings.find_media(item.media) for item in session.items)
    named = [name for name in QUICK if _with_references(session) or name == "length"]
    return [*named, *(LOOKING if seen else ())]


def _encoder(names: list[str] | tuple[str, ...], settings: Settings) -> dict[str, Any]:
    takes = any("encoder" in find_metric(name).options() for name in names)
    return {"encoder": settings.encoder} if takes and settings.encoder is not None else {}
