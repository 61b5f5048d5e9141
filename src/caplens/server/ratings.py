"""Ratings by people: sessions of captions or pairs, judgments in an append-only file, agreement, ratings.csv.

state/ratings/<session>/session.json     what is rated, fixed when the session is made
state/ratings/<session>/judgments.jsonl  a line per judgment or undo, on disk before it is acknowledged
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from caplens.bench.krippendorff import krippendorff_alpha
from caplens.core.errors import InputError
from caplens.core.plain_json import json_text
from caplens.core.tables import Table
from caplens.server.run_index import RunIndex
from caplens.server.runs import Catalog
from caplens.storage.atomic import write_atomically

Kind = Literal["rating", "preference"]
SCALE = range(1, 6)
LEFT, RIGHT, ALIKE = 1, 2, 0


@dataclass(frozen=True)
class Item:
    """A caption to rate, or two captions of one picture to choose from."""

    id: str
    captions: tuple[str, ...]
    media: str | None
    references: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judgment:
    """What one rater said of one item; for pairs 1 or 2 is the run, however they were shown."""

    rater: str
    item: int
    value: int
    at: float


class Session:
    """What is rated in one session, and what was said so far."""

    def __init__(self, folder: Path) -> None:
        content = json.loads((folder / "session.json").read_text("utf-8"))
        self.folder, self.name = folder, folder.name
        self.runs: list[str] = content["runs"]
        self.seed: int = content["seed"]
        self.items = [
            Item(item["id"], tuple(item["captions"]), item["media"], tuple(item["references"]))
            for item in content["items"]
        ]
        self.kind: Kind = "rating" if len(self.runs) == 1 else "preference"
        self._lock = threading.Lock()
        self._said: dict[str, list[Judgment]] = {}
        self._repair()
        for line in self._file.read_bytes().splitlines() if self._file.exists() else ():
            self._apply(json.loads(line))

    @property
    def _file(self) -> Path:
        return self.folder / "judgments.jsonl"

    def _repair(self) -> None:
        """Cut off half a line that a kill has left: it was never acknowledged."""
        if self._file.exists():
            data = self._file.read_bytes()
            whole = data.rfind(b"\n") + 1
            if whole < len(data):
                os.truncate(self._file, whole)

    def _apply(self, entry: dict[str, Any]) -> None:
        said = self._said.setdefault(entry["rater"], [])
        if "undo" in entry:
            said[:] = [judgment for judgment in said if judgment.item != entry["undo"]]
        else:
            said[:] = [judgment for judgment in said if judgment.item != entry["item"]]
            said.append(Judgment(entry["rater"], entry["item"], entry["value"], entry["at"]))

    def _append(self, entry: dict[str, Any]) -> None:
        """Write a line; when this returns, it is on disk."""
        line = (json_text(entry) + "\n").encode()
        number = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            written = os.write(number, line)
            if written < len(line):  # a full disk: take back the part that fit
                os.ftruncate(number, os.fstat(number).st_size - written)
                raise InputError("the disk is full, and the judgment was not kept", where=self.name)
            os.fsync(number)
        finally:
            os.close(number)
        self._apply(entry)

    def rate(self, rater: str, item: int, value: int) -> dict[str, Any]:
        """Keep a judgment as it was given on the page, and return what comes next."""
        allowed = SCALE if self.kind == "rating" else (ALIKE, LEFT, RIGHT)
        if not 0 <= item < len(self.items):
            raise InputError(f"there is no item {item}", where=self.name)
        if value not in allowed:
            raise InputError(f"{value} is no answer here", where=self.name, remedy=f"give one of {list(allowed)}")
        if value in (LEFT, RIGHT) and self.kind == "preference" and self._swapped(rater, item):
            value = LEFT + RIGHT - value
        with self._lock:
            self._append({"rater": rater, "item": item, "value": value, "at": round(time.time(), 3)})
        return self.next(rater)

    def undo(self, rater: str) -> dict[str, Any]:
        """Take back a rater's latest judgment, and show its item again."""
        with self._lock:
            said = self._said.get(rater, [])
            if said:
                self._append({"rater": rater, "undo": said[-1].item, "at": round(time.time(), 3)})
        return self.next(rater)

    def next(self, rater: str) -> dict[str, Any]:
        """Return the next item for a rater, blind, and how far they are."""
        done = {judgment.item for judgment in self._said.get(rater, ())}
        item = next((place for place in self._order(rater) if place not in done), None)
        progress = {"done": len(done), "total": len(self.items), "kind": self.kind}
        return {**progress, "item": None if item is None else self._blind(rater, item)}

    def _blind(self, rater: str, place: int) -> dict[str, Any]:
        item = self.items[place]
        captions = item.captions[::-1] if self._swapped(rater, place) else item.captions
        return {"item": place, "captions": list(captions), "picture": item.media is not None}

    def _order(self, rater: str) -> list[int]:
        """The items in this rater's own random order, the same at every visit."""
        order = list(range(len(self.items)))
        random.Random(f"{self.seed}\0{rater}").shuffle(order)
        return order

    def _swapped(self, rater: str, item: int) -> bool:
        """Say whether this rater sees the second run's caption on the left."""
        return bool(hashlib.sha256(f"{self.seed}\0{rater}\0{item}".encode()).digest()[0] & 1)

    def judgments(self) -> list[Judgment]:
        """Return what counts: the latest word of every rater on every item."""
        with self._lock:
            return [judgment for said in self._said.values() for judgment in said]

    def summary(self) -> dict[str, Any]:
        """Return how far everybody is, and how far they agree."""
        judgments = self.judgments()
        by_item: dict[int, list[float]] = {}
        raters: dict[str, int] = {}
        for judgment in judgments:
            by_item.setdefault(judgment.item, []).append(judgment.value)
            raters[judgment.rater] = raters.get(judgment.rater, 0) + 1
        level: Literal["ordinal", "nominal"] = "ordinal" if self.kind == "rating" else "nominal"
        return {
            "name": self.name,
            "kind": self.kind,
            "runs": self.runs,
            "items": len(self.items),
            "judgments": len(judgments),
            "raters": dict(sorted(raters.items())),
            "alpha": krippendorff_alpha(by_item.values(), level),
            "level": level,
            "shared": sum(len(values) > 1 for values in by_item.values()),
            "folder": str(self.folder),
        }

    def to_csv(self) -> str:
        """Return the judgments as the file that `caplens bench --ratings` takes."""
        ordered = sorted(self.judgments(), key=lambda judgment: (judgment.item, judgment.rater))
        rows = [[self.items[said.item].id, str(said.value), said.rater] for said in ordered]
        return Table(("id", self.kind, "rater"), rows).to_csv()


class Sessions:
    """All sessions of a server."""

    def __init__(self, state: Path) -> None:
        self.folder = state / "ratings"
        self._open: dict[str, Session] = {}
        self._lock = threading.Lock()

    def list(self) -> list[dict[str, Any]]:
        """Return the sessions, by name."""
        found = sorted(self.folder.glob("*/session.json")) if self.folder.is_dir() else []
        return [self.get(path.parent.name).summary() for path in found]

    def get(self, name: str) -> Session:
        """Return a session; a `KeyError` if there is none."""
        with self._lock:
            if name not in self._open:
                known = {path.parent.name for path in self.folder.glob("*/session.json")}
                if name not in known:  # a name is compared with what is there, never made a path of
                    raise KeyError(name)
                self._open[name] = Session(self.folder / name)
            return self._open[name]

    def create(self, name: str, runs: Sequence[str], count: int, seed: int, catalog: Catalog) -> Session:
        """Draw captions of one run, or pairs of two, and keep them."""
        name = name.strip().rstrip(".")
        with self._lock:
            folder = self.folder / name
            if not name or folder.exists():
                raise InputError(f"there is a session called {name!r} already", remedy="choose another name")
            found = [catalog.find(run) for run in runs]
            indexes = [catalog.index(run) for run in found]
            items = _items(indexes, count, seed)
            content = {"runs": [run.name for run in found], "seed": seed, "items": [asdict(item) for item in items]}
            write_atomically(folder / "session.json", json_text(content) + "\n")
        return self.get(name)


def _items(indexes: Sequence[RunIndex], count: int, seed: int) -> list[Item]:
    """Items drawn at random; of two runs, ids that both have, with captions that differ."""
    first, *others = [{row["id"]: row for row in index.texts()} for index in indexes]
    ids = [
        name
        for name, row in first.items()
        if all(name in other and other[name]["caption"] != row["caption"] for other in others)
    ]
    if not ids:
        raise InputError("there is nothing to rate", remedy="choose runs of the same pictures whose captions differ")
    drawn = sorted(random.Random(seed).sample(range(len(ids)), min(count, len(ids))))
    items = []
    for place in drawn:
        row = first[ids[place]]
        captions = (row["caption"], *(other[row["id"]]["caption"] for other in others))
        items.append(Item(row["id"], captions, row["media"], tuple(json.loads(row["refs"]))))
    return items
