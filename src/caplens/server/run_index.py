"""A run as one SQLite file that pages ask: paging, search by words, score range and verdict, differences of two runs.

It can be deleted at any time and is made again from the run.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from caplens.core.errors import InputError
from caplens.core.plain_json import json_text
from caplens.server.run_files import Kind, Row, read_run
from caplens.storage.atomic import atomic_path

LAYOUT = 1
"""Of the tables below; part of the file's name."""
MOST_DETAILS = 100_000
"""Characters of the details of one caption."""
MOST_PER_PAGE = 200
LEAST_GAP = 0.00005
"""Scores that are closer look alike on a page."""
LEAST_INDEXED = 3
"""Characters of a word that the index of texts can find; shorter ones are looked for one text after the other."""
Show = Literal["all", "fine", "doubtful", "wrong", "wrong-words", "left-out", "unscored", "empty"]
Order = Literal["worst", "best", "file"]
_SHOWN: dict[Show, str] = {
    "all": "1",
    "fine": "verdict='fine'",
    "doubtful": "verdict='doubtful'",
    "wrong": "verdict='wrong'",
    "wrong-words": "wrong_words=1",
    "left-out": "left_out=1",
    "unscored": "failures<>'{}'",
    "empty": "trim(caption)=''",
}
_TEXTS = "id, caption, refs, media, verdict, reasons, details, failures, wrong_words, left_out, haystack"


@dataclass(frozen=True)
class Query:
    """Which captions of a run are wanted."""

    words: str = ""
    metric: int | None = None
    """The place of the metric that orders and limits."""
    order: Order = "file"
    low: float | None = None
    high: float | None = None
    show: Show = "all"
    offset: int = 0
    limit: int = 30


def build_index(path: Path, kind: Kind, target: Path) -> None:
    """Read a run and write its index, whole or not at all."""
    try:
        _build(path, kind, target)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, sqlite3.Error) as error:
        raise InputError(
            f"is not what `caplens score` or `caplens check` writes ({error!r:.80})",
            where=path.name,
            remedy="make it again with this version",
        ) from None


def _build(path: Path, kind: Kind, target: Path) -> None:
    content = read_run(path, kind)
    names = [f"s{number}" for number in range(len(content.metrics))]
    with atomic_path(target) as temporary, closing(sqlite3.connect(temporary)) as database:
        database.execute("PRAGMA journal_mode=OFF")
        database.execute("PRAGMA synchronous=OFF")
        columns = "".join(f", {name} REAL" for name in names)
        database.execute(f"CREATE TABLE rows (row INTEGER PRIMARY KEY, {_TEXTS}{columns})")
        database.execute("CREATE TABLE about (summary TEXT)")
        marks = ",".join("?" * (len(_TEXTS.split(",")) + len(names) + 1))
        database.executemany(f"INSERT INTO rows VALUES ({marks})", _values(content.rows))
        for name in names:
            database.execute(f"CREATE INDEX by_{name} ON rows ({name})")
        database.execute("CREATE INDEX by_id ON rows (id)")
        database.execute("CREATE INDEX by_verdict ON rows (verdict)")
        database.execute(
            "CREATE VIRTUAL TABLE texts USING fts5(haystack, content='rows', content_rowid='row', tokenize='trigram')"
        )
        database.execute("INSERT INTO texts (texts) VALUES ('rebuild')")
        summary = {
            "kind": kind,
            "captions": _count(database, "1"),
            "metrics": [asdict(metric) for metric in content.metrics],
            "counts": {show: _count(database, condition) for show, condition in _SHOWN.items()},
            "pictures": _count(database, "media IS NOT NULL"),
            "errors": content.errors,
            "notes": content.notes,
        }
        database.execute("INSERT INTO about VALUES (?)", (json_text(summary),))
        database.commit()


def _values(rows: Iterable[Row]) -> Iterator[tuple[Any, ...]]:
    for number, row in enumerate(rows):
        details = json_text(row.details)
        if len(details) > MOST_DETAILS:
            details = json_text({"note": {"note": "these details are too long for a page; the run's file has them"}})
        words = [word for entry in row.details.values() for word in entry.get("words", ())]
        texts = [row.id, row.caption, *row.references]
        yield (
            number,
            _whole(row.id),
            _whole(row.caption),
            json_text(row.references),
            row.media,
            row.verdict,
            json_text(row.reasons),
            details,
            json_text(row.failures),
            any(word.get("status") == "wrong" for word in words) or _has_reason(row, "wrong-words"),
            any(entry.get("missing") for entry in row.details.values()) or _has_reason(row, "left-out"),
            _whole("\n".join(texts).casefold()),
            *row.scores,
        )


def _has_reason(row: Row, kind: str) -> bool:
    return any(reason.get("kind") == kind for reason in row.reasons)


def _whole(text: str) -> str:
    """Half characters (lone surrogates) cannot be stored as UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _count(database: sqlite3.Connection, condition: str, values: Iterable[Any] = ()) -> int:
    return int(database.execute(f"SELECT count(*) FROM rows WHERE {condition}", tuple(values)).fetchone()[0])


class RunIndex:
    """The index of one run, opened for reading."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def summary(self) -> dict[str, Any]:
        """Return the facts of the run."""
        with closing(self._open()) as database:
            found: dict[str, Any] = json.loads(database.execute("SELECT summary FROM about").fetchone()[0])
        return found

    def page(self, query: Query) -> dict[str, Any]:
        """Return a page of captions, and how many there are in all."""
        column = self._column(query.metric)
        condition, values = _condition(query, column)
        if query.order == "file" or column is None:
            ordering = "row"
        else:
            falling = (query.order == "worst") != self._higher_is_better(query.metric)
            # Captions without a score come last either way.
            ordering = f"{column} IS NULL, {column} {'DESC' if falling else 'ASC'}, row"
        with closing(self._open()) as database:
            total = _count(database, condition, values)
            # Their numbers first: the texts of what is passed over need not be read.
            chosen = database.execute(
                f"SELECT row FROM rows WHERE {condition} ORDER BY {ordering} LIMIT ? OFFSET ?",
                (*values, min(query.limit, MOST_PER_PAGE), query.offset),
            ).fetchall()
        return {"total": total, "rows": self.rows(row["row"] for row in chosen)}

    def rows(self, numbers: Iterable[int]) -> list[dict[str, Any]]:
        """Return some captions by their numbers."""
        with closing(self._open()) as database:
            found = [database.execute("SELECT * FROM rows WHERE row=?", (number,)).fetchone() for number in numbers]
        return [_shown(row) for row in found if row is not None]

    def texts(self) -> Iterator[sqlite3.Row]:
        """Yield id, caption, references (as json) and media of all captions."""
        with closing(self._open()) as database:
            yield from database.execute("SELECT id, caption, refs, media FROM rows ORDER BY row")

    def media(self, number: int) -> str | None:
        """Return what the picture or video of a caption is called."""
        with closing(self._open()) as database:
            row = database.execute("SELECT media FROM rows WHERE row=?", (number,)).fetchone()
        return None if row is None else row["media"]

    def differences(self, other: RunIndex, metric: str, view: str, offset: int, limit: int) -> dict[str, Any]:
        """Return where two runs differ most in a metric: their captions side by side."""
        mine, theirs = (f"s{index._place(metric)}" for index in (self, other))
        gap = f"(a.{mine} - b.{theirs})"
        if not self._higher_is_better(self._place(metric)):
            gap = f"(b.{theirs} - a.{mine})"
        conditions = {
            "differ": f"abs({gap})>{LEAST_GAP}",
            "first": f"{gap}>{LEAST_GAP}",
            "second": f"{gap}<-{LEAST_GAP}",
        }
        with closing(self._open()) as database:
            database.execute("ATTACH DATABASE ? AS other", (f"file:{other.path}?mode=ro",))
            joined = f"rows a JOIN other.rows b ON a.id=b.id WHERE {conditions[view]}"
            total = database.execute(f"SELECT count(*) FROM {joined}").fetchone()[0]
            found = database.execute(
                f"SELECT a.row AS row, b.row AS other_row, {gap} AS gap FROM {joined} ORDER BY abs(gap) DESC, a.row "
                "LIMIT ? OFFSET ?",
                (min(limit, MOST_PER_PAGE), offset),
            ).fetchall()
        left = self.rows(row["row"] for row in found)
        right = other.rows(row["other_row"] for row in found)
        pairs = [
            {"first": one, "second": two, "gap": row["gap"]} for one, two, row in zip(left, right, found, strict=True)
        ]
        return {"total": total, "pairs": pairs}

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)
        database.row_factory = sqlite3.Row
        return database

    def _metrics(self) -> list[dict[str, Any]]:
        metrics: list[dict[str, Any]] = self.summary()["metrics"]
        return metrics

    def _column(self, metric: int | None) -> str | None:
        if metric is None:
            return None
        if not 0 <= metric < len(self._metrics()):
            raise InputError(f"the run has no metric number {metric}", remedy="its metrics are numbered from 0")
        return f"s{metric}"

    def _place(self, metric: str) -> int:
        names = [entry["name"] for entry in self._metrics()]
        if metric not in names:
            raise InputError(f"a run has no scores of {metric!r}", remedy=f"it has {', '.join(names) or 'none'}")
        return names.index(metric)

    def _higher_is_better(self, metric: int | None) -> bool:
        return metric is None or bool(self._metrics()[metric]["higher_is_better"])


def _condition(query: Query, column: str | None) -> tuple[str, list[Any]]:
    conditions: list[str] = [_SHOWN[query.show]]
    values: list[Any] = []
    for word in query.words.casefold().replace("\0", "").split():
        word = _whole(word)
        if len(word) >= LEAST_INDEXED:
            conditions.append("row IN (SELECT rowid FROM texts WHERE texts MATCH ?)")
            values.append('"' + word.replace('"', '""') + '"')
        else:
            conditions.append("instr(haystack, ?)")
            values.append(word)
    for bound, sign in ((query.low, ">="), (query.high, "<=")):
        if bound is not None and column is not None:
            conditions.append(f"{column} {sign} ?")
            values.append(bound)
    return " AND ".join(conditions), values


def _shown(row: sqlite3.Row) -> dict[str, Any]:
    scores = [row[name] for name in row.keys() if name[0] == "s" and name[1:].isdigit()]  # noqa: SIM118
    return {
        "row": row["row"],
        "id": row["id"],
        "caption": row["caption"],
        "references": json.loads(row["refs"]),
        "picture": row["media"] is not None,
        "verdict": row["verdict"],
        "reasons": json.loads(row["reasons"]),
        "details": json.loads(row["details"]),
        "failures": json.loads(row["failures"]),
        "wrong_words": bool(row["wrong_words"]),
        "left_out": bool(row["left_out"]),
        "scores": scores,
    }


if __name__ == "__main__":  # in a process of its own: a large run's memory is given back
    build_index(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))  # type: ignore[arg-type]
