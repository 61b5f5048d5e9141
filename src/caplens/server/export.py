"""The viewer of runs as plain files, for any web host: `caplens export RUNS SITE`."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from caplens.core.errors import CaplensError, InputError
from caplens.core.plain_json import json_text
from caplens.core.progress import Progress, silent
from caplens.evaluation.results import Report
from caplens.evaluation.stored_report import compare_stored
from caplens.server import pages
from caplens.server.media import small_copy
from caplens.server.run_files import stored_report
from caplens.server.run_index import MOST_PER_PAGE, Query, RunIndex
from caplens.server.runs import Catalog, Run
from caplens.server.settings import Settings
from caplens.storage.atomic import atomic_folder

PORTION = 1000
"""Captions in one file."""
WIDTH = 480
"""Pixels of an exported picture."""
MARK = "data/runs.json"
"""Tells an export from any other folder."""


@dataclass
class Export:
    """What was written."""

    folder: Path
    runs: int = 0
    captions: int = 0
    pictures: int = 0
    compared: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """Run to reason, for those that could not be read."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values."""
        return {**vars(self), "folder": str(self.folder)}


def export(
    settings: Settings, target: Path, *, title: str = "Runs", pictures: int = 2000, progress: Progress = silent
) -> Export:
    """Write the viewer with all runs below a folder; an export that was there is replaced as a whole."""
    if target.exists() and (not target.is_dir() or (any(target.iterdir()) and not (target / MARK).is_file())):
        raise InputError(
            "holds something else than an export", where=str(target), remedy="name a folder that is new or empty"
        )
    catalog = Catalog(settings)
    known = catalog.runs()
    if not known:
        raise InputError(
            "holds no run", where=str(settings.runs), remedy="`caplens score … --json RUNS/name.json` writes one"
        )
    written = Export(target)
    with atomic_folder(target) as folder:
        listed = []
        for number, run in enumerate(known):
            progress("writing runs", number, len(known))
            try:
                listed.append(_write_run(run, catalog, folder, settings, pictures - written.pictures, written))
            except CaplensError as error:
                written.skipped[run.name] = str(error)
        if not listed:
            raise InputError(
                "no run could be read", where=str(settings.runs), remedy=next(iter(written.skipped.values()))
            )
        written.compared = _write_comparison(known, folder, progress)
        _write(folder / MARK, [{**entry, "compared": entry["name"] in written.compared} for entry in listed])
        for name in pages.EXPORTED:
            page = pages.render(name, exported=True, site=title if name == "runs" else "")
            _write_text(folder / pages.file_name(name), page)
        for file in pages.asset_names(pages.EXPORTED):
            path = folder / "static" / file
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(pages.asset(file))
        progress("writing runs", len(known), len(known))
    return written


def _write_run(
    run: Run, catalog: Catalog, folder: Path, settings: Settings, room: int, written: Export
) -> dict[str, Any]:
    """Write one run in portions, and return what the list of runs says of it."""
    index = catalog.index(run)
    summary = index.summary()
    portions = -(-summary["captions"] // PORTION)
    place = folder / "data" / run.id
    for portion in range(portions):
        rows = _rows(index, portion)
        details = {row["row"]: row["details"] for row in rows if row["details"]}
        for row in rows:
            row["picture"] = row["picture"] and room > 0 and _write_picture(index, row["row"], place, settings)
            room -= row["picture"]
            written.pictures += row["picture"]
            row["portion"], row["explained"] = portion, bool(row.pop("details"))
        _write(place / f"rows-{portion}.json", rows)
        _write(place / f"details-{portion}.json", details)
    known = {"id": run.id, "name": run.name, **summary}
    _write(place / "summary.json", {**known, "portions": portions})
    written.runs += 1
    written.captions += summary["captions"]
    _, size, when = run.version()
    return {**known, "state": "ready", "bytes": size, "written": when}


def _rows(index: RunIndex, portion: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for offset in range(portion * PORTION, (portion + 1) * PORTION, MOST_PER_PAGE):
        rows += index.page(Query(offset=offset, limit=MOST_PER_PAGE))["rows"]
    return rows


def _write_picture(index: RunIndex, row: int, place: Path, settings: Settings) -> bool:
    """Write a small copy of a picture; say whether there is one that can be read."""
    found = settings.find_media(index.media(row) or "")
    try:
        data = None if found is None else small_copy(found, WIDTH)
    except CaplensError:
        return False
    if data is None:
        return False
    path = place / "pictures" / f"{row}.jpg"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return True


def _write_comparison(runs: list[Run], folder: Path, progress: Progress) -> list[str]:
    """Compare the most runs that are about the same pictures, and return their names."""
    by_pictures: dict[frozenset[str], dict[str, Report]] = defaultdict(dict)
    for run in runs:
        if run.kind != "check":
            try:
                report = stored_report(run.path, run.kind)
            except CaplensError:  # it is named among those that were skipped
                continue
            by_pictures[frozenset(report.captions.ids)][run.name] = report
    largest = max(by_pictures.values(), key=len, default={})
    if len(largest) < 2:
        return []
    try:
        comparison = compare_stored(largest, progress=progress)
    except CaplensError:  # no metric in common
        return []
    _write(folder / "data" / "comparison.json", comparison.to_dict())
    return list(largest)


def _write(path: Path, value: Any) -> None:
    _write_text(path, json_text(value) + "\n")


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8", newline="\n")
