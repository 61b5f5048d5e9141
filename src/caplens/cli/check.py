"""`caplens check`: a verdict on every alt text, for people, for editors and for builds."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from caplens.cli._arguments import AllowUrls, Options, read_options
from caplens.cli._show import JsonTarget, progress_bar, say, show_table, write_json


class FailOn(StrEnum):
    """The mildest verdict that fails the check."""

    doubtful = "doubtful"
    wrong = "wrong"


def command(
    texts: Annotated[Path, typer.Argument(help="Alt texts: csv, json, jsonl, parquet, a web page, or a folder.")],
    images: Annotated[Path | None, typer.Option(help="Folder of the pictures.")] = None,
    fail_on: Annotated[
        FailOn | None, typer.Option("--fail-on", help="Exit code 1 if a text has this verdict or a worse one.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Write every text with its verdict as csv.")] = None,
    jsonl: Annotated[Path | None, typer.Option(help="Write one json object per text.")] = None,
    sarif: Annotated[Path | None, typer.Option(help="Write findings as SARIF, for code hosts and editors.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with every text beside its picture.")] = None,
    option: Options = None,
    allow_urls: AllowUrls = False,
    json: JsonTarget = None,
) -> None:
    """Check alt texts: fine, doubtful or wrong, and why.

    Example: caplens check alt.csv --images photos --html checked.html --fail-on wrong
    """
    from caplens.evaluation.check import check
    from caplens.readers import read_captions
    from caplens.storage.atomic import refuse_overwriting

    refuse_overwriting([csv, jsonl, sarif, html, json], [texts])
    captions = read_captions(texts, None, images)
    with progress_bar() as progress:
        report = check(captions, progress=progress, **read_options(option, allow_urls=allow_urls))
    write_json(json, report.to_dict())
    for target, write in ((csv, report.to_csv), (jsonl, report.to_jsonl), (sarif, report.to_sarif)):
        if target is not None:
            write(target)
    if html is not None:
        report.to_html(html, title=texts.name)
    table = report.table()
    if table.rows:
        show_table(json, table.columns, table.rows)
    say(
        json,
        f"{len(report):,} texts: {report.count('fine'):,} fine, {report.count('doubtful'):,} doubtful, "
        f"{report.count('wrong'):,} wrong",
    )
    for note in report.notes:
        say(json, f"note: {note}")
    for target in (csv, jsonl, sarif, html):
        if target is not None:
            say(json, f"wrote {target}")
    if fail_on is not None and report.failing("fine" if fail_on is FailOn.doubtful else "doubtful"):
        raise typer.Exit(1)
