"""Is a file still what it was?

A file's sum is computed when the file is first used. Then its fingerprint (size, times of change, inode) is kept in a
small record, under the sum that the file should have; while the fingerprint stays the same, the file is not read again.
A record saves time and proves nothing to whoever can write it: `caplens doctor --verify` reads every file anew.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path

from caplens.storage.atomic import write_atomically
from caplens.storage.digests import Fingerprint, content_digest, digest, fingerprint, is_settled


def changed_files(expected: Mapping[Path, str], record: Path, *, thorough: bool = False) -> list[Path]:
    """Return the files that do not have the sum they should have; `thorough` reads all of them again."""
    known = _read(record)
    entries: dict[str, tuple[str, Fingerprint]] = {}
    changed = []
    for path, expected_sum in expected.items():
        name, mark = _name(path, record), fingerprint(path)
        trusted = not thorough and known.get(name) == (expected_sum, mark)
        actual_sum = expected_sum if trusted else digest(path) if thorough else content_digest(path)
        if actual_sum == expected_sum and fingerprint(path) == mark:
            entries[name] = (expected_sum, mark if is_settled(mark) else ())
        else:
            changed.append(path)
    _write(record, entries, known)
    return changed


def remember(sums: Mapping[Path, str], record: Path) -> None:
    """Record the sums of files that were just written."""
    marks = {path: fingerprint(path) for path in sums}
    entries = {
        _name(path, record): (sum_, marks[path] if is_settled(marks[path]) else ()) for path, sum_ in sums.items()
    }
    _write(record, entries, {})


def recorded_sum(path: Path, record: Path) -> str | None:
    """Return the sum under which a file was recorded."""
    sum_, _ = _read(record).get(_name(path, record), (None, ()))
    return sum_


def _name(path: Path, record: Path) -> str:
    return path.relative_to(record.parent).as_posix()


def _read(record: Path) -> dict[str, tuple[str, Fingerprint]]:
    try:
        entries = json.loads(record.read_text("utf-8"))
        return {name: (str(sum_), tuple(map(int, mark))) for name, (sum_, *mark) in entries.items()}
    except (OSError, ValueError, TypeError, AttributeError):  # not there, or damaged
        return {}


def _write(
    record: Path, entries: Mapping[str, tuple[str, Fingerprint]], known: Mapping[str, tuple[str, Fingerprint]]
) -> None:
    """Write the record if it differs; where that is not possible, sums are computed again in the next process."""
    if entries != known:
        with contextlib.suppress(OSError):
            write_atomically(record, json.dumps({name: [sum_, *mark] for name, (sum_, mark) in entries.items()}))
