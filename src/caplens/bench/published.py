"""Figures in print, from published.json: which paper, which table, how near ours must be to count as reproduced."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

Status = Literal["reproduced", "not reproduced", "not published"]


@dataclass(frozen=True)
class Published:
    """One figure in print."""

    value: float
    source: str
    tolerance: float
    """How far ours may be, in the units printed."""
    why: str
    """Where the tolerance comes from."""
    scale: float
    remark: str
    """What is known about the metric's difference; empty where nothing is but the reason for the tolerance."""


@dataclass(frozen=True)
class Comparison:
    """Our figure beside one in print."""

    published: Published
    difference: float
    """Ours minus theirs, in the units printed."""

    @property
    def status(self) -> Status:
        return "reproduced" if abs(self.difference) <= self.published.tolerance + 1e-9 else "not reproduced"


@functools.cache
def _content() -> dict[str, Any]:
    text = (files("caplens.bench") / "published.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def look_up(rating_set: str, figure: str, protocol: str, metric: str, signature: str) -> list[Published]:
    """What is in print for this figure; a metric on other weights, or a set run otherwise, has nothing in print."""
    content = _content()
    needed = content["requires"].get(metric)
    if needed is not None and needed not in signature:
        return []
    return [
        Published(
            value=table["figures"][figure][metric],
            source=f"{content['papers'][table['paper']]}, {table['table']}",
            tolerance=table["tolerance"],
            why=table["why"],
            scale=table["scale"],
            remark=table.get("remarks", {}).get(metric) or content["remarks"].get(metric, ""),
        )
        for table in content["tables"]
        if table["set"] == rating_set
        and metric in table["figures"].get(figure, {})
        and table.get("protocol", "") in protocol
    ]


def compare(rating_set: str, figure: str, protocol: str, metric: str, signature: str, value: float) -> list[Comparison]:
    """Our value (not yet scaled) beside every figure in print."""
    return [
        Comparison(published, value * published.scale - published.value)
        for published in look_up(rating_set, figure, protocol, metric, signature)
    ]
