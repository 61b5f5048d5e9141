"""The pages of the server and of an export: plain HTML around scripts that ask for data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from caplens.report.html import TEMPLATES as REPORT_TEMPLATES

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
PageName = Literal["try", "runs", "run", "compare", "rate", "session", "login"]
_SHARED_STYLES = ("theme.css", "page.css", "app.css")
_SHARED_SCRIPTS = ("elements.js", "source.js")


@dataclass(frozen=True)
class Page:
    """What a page is called, and what it needs besides what all need."""

    title: str
    styles: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()


PAGES: dict[PageName, Page] = {
    "try": Page("Try a caption", ("details.css", "check.css", "try.css"), ("details.js", "try.js")),
    "runs": Page("Runs", (), ("runs.js",)),
    "run": Page("Run", ("details.css", "check.css"), ("details.js", "cards.js", "run.js")),
    "compare": Page("Compare runs", ("leaderboard.css",), ("cards.js", "compare.js")),
    "rate": Page("Rate captions", (), ("rate.js",)),
    "session": Page("Rate captions", ("rate.css",), ("session.js",)),
    "login": Page("Token", (), ("login.js",)),
}
EXPORTED: tuple[PageName, ...] = ("runs", "run", "compare")
"""Pages that work without a server."""


def asset_names(names: tuple[PageName, ...] = tuple(PAGES)) -> list[str]:
    """Return the styles and scripts that these pages load."""
    pages = [PAGES[name] for name in names]
    files = [*_SHARED_STYLES, *_SHARED_SCRIPTS, *(file for page in pages for file in (*page.styles, *page.scripts))]
    return list(dict.fromkeys(files))


def asset(name: str) -> bytes:
    """Return a style or a script: the server's own, or one that it shares with reports; a `KeyError` for others."""
    if name not in asset_names():
        raise KeyError(name)
    own = HERE / "static" / name
    return (own if own.exists() else REPORT_TEMPLATES / name).read_bytes()


def render(name: PageName, *, exported: bool = False, site: str = "") -> str:
    """Return a page as text; one of an export links to files beside it."""
    page = PAGES[name]
    links = {each: file_name(each) if exported else f"/{'' if each == 'try' else each}" for each in PAGES}
    return (
        _environment()
        .get_template(f"{name}.html")
        .render(
            page=name,
            title=site or page.title,
            version=version("caplens"),
            styles=(*_SHARED_STYLES, *page.styles),
            scripts=(*_SHARED_SCRIPTS, *page.scripts),
            assets="static/" if exported else "/static/",
            exported=exported,
            links=links,
        )
    )


def file_name(name: PageName) -> str:
    """Return what a page of an export is called."""
    return "index.html" if name == "runs" else f"{name}.html"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
