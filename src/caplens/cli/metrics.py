"""`caplens metrics`: what can be computed, and what each metric needs."""

from __future__ import annotations

from typing import Annotated

import typer

from caplens.cli._show import JsonTarget, say, show_table, write_json


def command(
    name: Annotated[str | None, typer.Argument(help="Show one metric in full: options, aliases, paper.")] = None,
    json: JsonTarget = None,
) -> None:
    """List the metrics: name, what they need, one line each."""
    from caplens.metrics import find_metric, list_metrics

    if name is not None:
        metric = find_metric(name)
        facts = next(entry for entry in list_metrics() if entry["name"] == metric.name)
        facts = {**facts, "options": sorted(metric.options())}
        write_json(json, facts)
        for key, value in facts.items():
            say(json, f"{key:8} {', '.join(value) if isinstance(value, list) else value}")
        return
    listed = list_metrics()
    write_json(json, listed)
    rows = [[entry["name"], " + ".join(entry["needs"]) or "nothing else", entry["summary"]] for entry in listed]
    show_table(json, ["metric", "needs", "what it is"], rows)
