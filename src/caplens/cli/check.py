"""`caplens check`: a verdict on every alt text, for people, for editors and for builds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from caplens.cli._arguments import (
    AllowUrls,
    BatchSize,
    Device,
    Dtype,
    Options,
    read_options,
)
from caplens.cli._show import JsonTarget, progress_bar, say, show_table, write_json

if TYPE_CHECKING:
    from caplens.core.captions import CaptionSet


class FailOn(StrEnum):
    """The mildest verdict that fails the check."""

    doubtful = "doubtful"
    wrong = "wrong"


def command(
    texts: Annotated[
        list[Path],
        typer.Argument(
            metavar="TEXTS...", help="Alt texts: a csv, json, jsonl or parquet file, web pages, folders of pages."
        ),
    ],
    images: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of the pictures.")] = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            "--fail-on",
            metavar="VERDICT",
            help="doubtful or wrong: exit code 1 if a text has this verdict or a worse one.",
        ),
    ] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write every text with its verdict as csv.")] = None,
    jsonl: Annotated[Path | None, typer.Option(metavar="FILE", help="Write one json object per text.")] = None,
    sarif: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write findings as SARIF, for code hosts and editors.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with every text beside its picture.")
    ] = None,
    option: Options = None,
    device: Device = None,
    dtype: Dtype = None,
    batch_size: BatchSize = None,
    allow_urls: AllowUrls = False,
    json: JsonTarget = None,
) -> None:
    """Check alt texts: fine, doubtful or wrong, and why.

    Example: caplens check alt.csv --images photos --fail-on wrong
    """
    from caplens.evaluation.check import check

    given = _read(texts, images)
    with progress_bar() as progress:
        report = check(
            given.captions,
            places=given.places,
            decorative=given.decorative,
            progress=progress,
            **read_options(option, allow_urls=allow_urls, device=device, dtype=dtype, batch_size=batch_size),
        )
    write_json(json, report.to_dict())
    for target, write in ((csv, report.to_csv), (jsonl, report.to_jsonl), (sarif, report.to_sarif)):
        if target is not None:
            write(target)
    if html is not None:
        report.to_html(html, title=texts[0].name)
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


@dataclass(frozen=True)
class _Given:
    """What is to be checked, and where it stands."""

    captions: CaptionSet
    places: list[str] | None = None
    decorative: list[bool] | None = None


def _read(paths: Sequence[Path], images: Path | None) -> _Given:
    """Read one file of texts, or the pictures of any number of web pages."""
    from caplens.core.captions import CaptionSet
    from caplens.core.errors import InputError
    from caplens.readers import page_images, read

    if len(paths) == 1 and not _has_pages(paths[0]):
        return _Given(read(paths[0], None, images))
    files = [path for path in paths if not _has_pages(path)]
    if files:
        raise InputError("is not a web page", where=str(files[0]), remedy="check files of texts one at a time")
    shown = [
        (path / image.page if path.is_dir() else path, image) for path in paths for image in page_images(path, images)
    ]
    if not shown:
        raise InputError("there is no picture on the page", where=", ".join(map(str, paths)))
    captions = CaptionSet.of(
        [image.alt or "" for _, image in shown],
        images=[image.media for _, image in shown],
        ids=[f"{number}: {image.id}" for number, (_, image) in enumerate(shown, 1)],
        source=str(paths[0]),
    )
    places = [f"{page}, line {image.line}" for page, image in shown]
    # An empty alt says that the picture is decoration; a missing one says nothing.
    return _Given(captions, places, [image.alt == "" or image.hidden for _, image in shown])


def _has_pages(path: Path) -> bool:
    if path.is_dir():
        return any(entry.suffix.lower() in (".html", ".htm") for entry in path.rglob("*"))
    return path.suffix.lower() in (".html", ".htm")
