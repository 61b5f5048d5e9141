"""Web pages: every ``img`` with its ``alt``, the picture it shows, and the line it stands in.

The standard library's parser needs minutes for 60 KB of unclosed tags: its time grows with the square of the length.
So tags are found here, in one pass, by the rules that browsers follow for comments, raw text and quotes.
"""

from __future__ import annotations

import codecs
import html
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from caplens.core.captions import Media
from caplens.core.errors import CaplensWarning, InputError
from caplens.readers.limits import Budget, ReadLimits
from caplens.readers.media import from_data_address, is_data_address
from caplens.readers.rows import Row
from caplens.readers.source import Source

PAGE_SUFFIXES = frozenset({".html", ".htm"})
# Where pages that load their pictures late keep the real address; `src` is then a placeholder.
_LAZY = ("data-src", "data-lazy-src", "data-original", "data-lazy")
_RAW_TEXT = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"})
_TAG_NAME = re.compile(r"[a-zA-Z][^\s/>]*+")
# Quotes count only after "="; possessive, so that no input is tried twice.
_TAG_REST = re.compile(r"""(?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+)*+>""")
_ATTRIBUTE = re.compile(r"""([^\s/>=][^\s/>=]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>]*+)))?+""")
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([-\w.:]{1,40})""", re.IGNORECASE)
_ENCODINGS = {
    name: codec
    for codec, names in {
        # Browsers read the first three as Windows-1252.
        "cp1252": "iso-8859-1 latin1 us-ascii windows-1252",
        "utf-8": "utf-8 utf8",
        **{f"iso8859-{part}": f"iso-8859-{part}" for part in (2, 5, 7, 9, 15)},
        **{f"cp125{part}": f"windows-125{part}" for part in (0, 1, 3, 4, 5, 6, 7, 8)},
        **{name: name for name in ("gb2312", "gbk", "gb18030", "big5", "euc-jp", "euc-kr", "shift_jis", "koi8-r")},
    }.items()
    for name in names.split()
}
"""The encodings that a page may declare; others (utf-7, punycode …) are no way to write a page."""


@dataclass(frozen=True)
class PageImage:
    """An ``img`` of a page."""

    page: str
    """The page's path below the folder that was given, or its name."""
    line: int
    column: int
    alt: str | None
    """None: there is no ``alt`` at all; empty: the page says that the picture needs none."""
    address: str
    """Where the page says the picture is."""
    media: Media | None
    """The picture, if it can be had."""
    problem: str = ""
    """Why it cannot."""
    hidden: bool = False
    """Kept from screen readers: ``role="presentation"``, ``role="none"`` or ``aria-hidden="true"``."""

    @property
    def id(self) -> str:
        """Page, line and column: an address may stand on a page twice."""
        return f"{self.page}:{self.line}:{self.column}"


def page_images(
    path: str | os.PathLike[str],
    images: str | os.PathLike[str] | None = None,
    limits: ReadLimits | None = None,
) -> Iterator[PageImage]:
    """Every ``img`` of a page, or of all pages below a folder.

    A picture is looked for below the folder of the page (or below the folder that was given), or below `images`: never
    elsewhere. An http(s) address stays one, and is only fetched where that is allowed.
    """
    limits = limits or ReadLimits.from_environment()
    path = Path(path)
    root = path if path.is_dir() else path.parent
    budget = Budget(limits, str(path))
    for page in find_pages(path) if path.is_dir() else [path]:
        with Source(page, limits) as source:
            name = os.path.relpath(page, root) if path.is_dir() else page.name
            finder = _PictureFinder(page.parent, root, None if images is None else Path(images))
            for image in _images_of(_text(source), name, finder):
                budget.spend_row()
                yield image


def find_pages(folder: Path) -> list[Path]:
    """The pages below a folder, in order."""
    return sorted(
        Path(parent, name)
        for parent, _, names in os.walk(folder)
        for name in names
        if os.path.splitext(name)[1].lower() in PAGE_SUFFIXES and os.path.isfile(os.path.join(parent, name))
    )


def read(path: Path, images: str | os.PathLike[str] | None, limits: ReadLimits) -> Iterator[Row]:
    """The alt texts of pages as captions; pictures without one are counted in a note and left out."""
    missing = empty = rows = 0
    for image in page_images(path, images, limits):
        if image.alt is None:
            missing += 1
        elif not image.alt.strip():
            empty += 1
        else:
            rows += 1
            yield Row(image.id, f"{path}, {image.id}", caption=image.alt, image=image.media, located=True)
    if not rows:
        raise InputError("no picture has an alt text", where=str(path), remedy="check the path")
    if missing or empty:
        warnings.warn(
            f"{path}: left out are pictures without alt ({missing:,}) and with an empty one ({empty:,})",
            CaplensWarning,
            stacklevel=2,
        )


def _text(source: Source) -> str:
    data = source.short_bytes()
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if data.startswith(mark):
            return source.decode(data, encoding=encoding).removeprefix("\ufeff")
    declared = _CHARSET.search(data, 0, 4096)
    name = declared[1].decode("ascii").lower() if declared else "utf-8"
    return source.decode(data, encoding=_ENCODINGS.get(name, "utf-8"))


def _tags(text: str) -> Iterator[tuple[int, str, str]]:
    """Position, name and attributes of every start tag."""
    start = text.find("<")
    while start >= 0:
        end: int
        if text.startswith("<!--", start):
            end = text.find("-->", start + 2)
        elif text.startswith(("<!", "<?", "</"), start):
            end = text.find(">", start)
        elif name := _TAG_NAME.match(text, start + 1):
            rest = _TAG_REST.match(text, name.end())
            if rest is None:
                return  # never closed, so it reaches to the end of the page; browsers drop it
            tag, end = name[0].lower(), rest.end()
            yield start, tag, rest[0]
            if tag in _RAW_TEXT:
                closing = re.compile(f"</{tag}", re.IGNORECASE).search(text, end)
                end = -1 if closing is None else closing.start()
        else:
            end = start + 1
        start = -1 if end < 0 else text.find("<", end)


def _attributes(text: str) -> dict[str, str]:
    """Attributes by name; of two with one name, browsers take the first."""
    attributes: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(text):
        value = next((group for group in match.groups()[1:] if group is not None), "")
        attributes.setdefault(match[1].lower(), value)
    return {name: _unescape(value) for name, value in attributes.items()}


def _unescape(text: str) -> str:
    try:
        return html.unescape(text)
    except ValueError:  # a number of thousands of digits
        return text


def _images_of(text: str, page: str, finder: _PictureFinder) -> Iterator[PageImage]:
    line, line_start, counted = 1, 0, 0
    for position, tag, rest in _tags(text):
        if tag == "base" and finder.base is None:
            finder.base = _attributes(rest).get("href")
        if tag != "img":
            continue
        line += text.count("\n", counted, position)
        line_start = max(line_start, text.rfind("\n", counted, position) + 1)
        counted = position
        attributes = _attributes(rest)
        address, media, problem = finder.find(_addresses(attributes), f"{page}:{line}")
        yield PageImage(
            page=page,
            line=line,
            column=position - line_start + 1,
            alt=attributes.get("alt"),
            address=address,
            media=media,
            problem=problem,
            hidden=attributes.get("role", "").strip().lower() in ("presentation", "none")
            or attributes.get("aria-hidden", "").strip().lower() == "true",
        )


def _addresses(attributes: dict[str, str]) -> list[str]:
    """Where the picture may be, the most likely place first."""
    single = [attributes.get(name, "").strip() for name in _LAZY]
    if not any(single):
        single = [attributes.get("src", "").strip()]
    sets = [attributes.get(name, "") for name in ("data-srcset", "srcset")]
    listed = [entry.split()[0] for addresses in sets for entry in re.split(r",\s+", addresses) if entry.strip()]
    return [address for address in (*single, *listed) if address]


class _PictureFinder:
    """Finds the pictures of one page: below a folder, and nowhere else."""

    def __init__(self, page_folder: Path, root: Path, images: Path | None) -> None:
        if images is not None and not images.is_dir():
            raise InputError("there is no such folder", where=str(images), remedy="check the path")
        self.page_folder, self.root, self.images = page_folder, root, images
        self.base: str | None = None

    def find(self, addresses: list[str], place: str) -> tuple[str, Media | None, str]:
        """The address of a picture, the picture itself, and why there is none."""
        answers = ((address, *self._look(address, place)) for address in addresses)
        first = next(answers, ("", None, "the picture has no address"))
        return first if first[1] is not None else next((answer for answer in answers if answer[1] is not None), first)

    def _look(self, address: str, place: str) -> tuple[Media | None, str]:
        if is_data_address(address):
            return from_data_address(address, f"{place}, data:"), ""
        try:
            whole = urljoin(self.base, address) if self.base else address
            parts = urlsplit(whole)
        except ValueError:
            return None, "this is no address"
        path = unquote(parts.path)
        if "\0" in path:
            return None, "this is no address"
        if parts.scheme in ("http", "https") or parts.netloc:
            beside = self._below_images(path)
            return beside or (whole if parts.scheme else f"https:{whole}"), ""
        if parts.scheme:
            return None, f"an address that starts with {parts.scheme[:20]}: is not read"
        if self.images is not None:
            media = self._below_images(path)
            return media, "" if media else f"no such picture below {self.images}"
        file = (self.root / path.lstrip("/")) if path.startswith("/") else self.page_folder / path
        if not _is_below(file, self.root):
            return None, f"lies outside {self.root}; give the folder above, or --images"
        return (os.fspath(file), "") if os.path.isfile(file) else (None, "there is no such file")

    def _below_images(self, path: str) -> str | None:
        """The picture in the folder for pictures: under its whole path, or under its name."""
        if self.images is None:
            return None
        parts = [part for part in path.split("/") if part not in ("", ".", "..")]
        for tail in (parts, parts[-1:]):
            file = self.images.joinpath(*tail)
            if tail and os.path.isfile(file) and _is_below(file, self.images):
                return os.fspath(file)
        return None


def _is_below(file: Path, folder: Path) -> bool:
    try:
        return file.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a name that is too long, a link that leads to itself
        return False
