"""`caplens metrics`: what can be computed, and what each metric needs."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from caplens.cli._show import JsonTarget, say, show_table, write_json


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Show one metric in full: options, aliases, paper.")
    ] = None,
    json: JsonTarget = None,
) -> None:
    """List the metrics: name, what they need, one line each.

    Example: caplens metrics cider-r
    """
    from caplens.metrics import find_metric, list_metrics
    from caplens.metrics.option_meanings import option_meanings

    if name is not None:
        metric = find_metric(name)
        facts = {
            "name": metric.name,
            "aliases": list(metric.aliases),
            "needs": sorted(metric.needs),
            "paper": metric.paper,
            "summary": metric.summary,
        }
        meanings, defaults = option_meanings(metric), metric.option_defaults()
        options = [
            {"name": option, "default": _written(default), "meaning": re.sub('`"?|"?`', "", meanings[option])}
            for option, default in defaults.items()
        ]
        write_json(json, {**facts, "options": options})
        for key, value in facts.items():
            shown = ", ".join(value) if isinstance(value, list) else value
            if shown:
                say(json, f"{key:8} {shown}")
        if options:
            say(json)
            show_table(json, ["option", "default", "meaning"], [list(option.values()) for option in options])
            say(json)
            say(json, f"give one with -o {options[0]['name']}={options[0]['default']}, or by its name in Python")
        return
    listed = list_metrics()
    write_json(json, listed)
    rows = [[entry["name"], " + ".join(entry["needs"]) or "nothing else", entry["summary"]] for entry in listed]
    show_table(json, ["metric", "needs", "what it is"], rows)


def _written(default: object) -> str:
    """
    >>> _written("ptb"), _written(0.8), _written(None), _written(True)
    ('ptb', '0.8', 'none', 'true')
    """
    return default if isinstance(default, str) else str(default).lower()
