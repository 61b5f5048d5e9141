"""Findings on alt texts as SARIF 2.1.0, which code hosts and editors show beside the lines they are about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from caplens.evaluation.check import Checked

RULES = {
    "empty": "An image has no alternative text.",
    "file-name": "The alternative text is a file name.",
    "placeholder": "The alternative text is a placeholder.",
    "redundant-prefix": "The alternative text begins with 'image of'.",
    "too-long": "The alternative text is too long.",
    "repeated": "Several images have the same alternative text.",
    "language": "The alternative text is in a language that was not judged.",
    "no-picture": "The image could not be looked at.",
    "no-content": "The alternative text says nothing that an image could show.",
    "another-picture": "The alternative text seems to be about another image.",
    "wrong-words": "Words of the alternative text are not seen in the image.",
    "left-out": "Something in the image is not mentioned.",
}
_PLACE = re.compile(r"(?P<file>.*), (?P<word>row|line) (?P<number>\d+)(, id .*)?", re.S)
LEVELS = {"fine": "note", "doubtful": "warning", "wrong": "error"}


def sarif_log(rows: Sequence[Checked]) -> dict[str, Any]:
    """Return the findings as a SARIF log."""
    results = []
    for row in rows:
        file, line = _split_place(row.place)
        for finding in row.findings:
            location: dict[str, Any] = {"artifactLocation": {"uri": _address(file)}}
            if line is not None:
                location["region"] = {"startLine": line}
            results.append(
                {
                    "ruleId": finding.kind,
                    "level": LEVELS[finding.verdict],
                    "message": {"text": f"{shorten(row.text) or row.id}: {finding.message}"},
                    "locations": [{"physicalLocation": location}],
                }
            )
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "caplens",
                        "rules": [{"id": kind, "shortDescription": {"text": text}} for kind, text in RULES.items()],
                    }
                },
                "results": results,
            }
        ],
    }


def _split_place(place: str) -> tuple[str, int | None]:
    """Return file and line of a place; the rows of json and parquet have no line that an editor could show.

    >>> _split_place("alt.csv, row 7, id 'x'"), _split_place("a, b.html, line 3"), _split_place("a.json, row 7, id 'x'")
    (('alt.csv', 8), ('a, b.html', 3), ('a.json', None))
    """
    found = _PLACE.fullmatch(place)
    if found is None:
        return place, None
    file, number = found["file"], int(found["number"])
    if found["word"] == "line":
        return file, number
    header = {".csv": 1, ".tsv": 1, ".jsonl": 0}.get(Path(file).suffix.lower())
    return file, None if header is None else number + header


def _address(file: str) -> str:
    """Return a path as SARIF wants it: with slashes, relative to where the check ran, unsafe characters written out.

    >>> _address("site/a page.html")
    'site/a%20page.html'
    """
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def shorten(text: str, most: int = 60) -> str:
    """Return a text on one line, cut where it is long."""
    plain = " ".join(text.split())
    return plain if len(plain) <= most else plain[: most - 1] + "…"
