"""A small client of the Python package index: it finds one named archive and downloads it.

It looks where pip would: PIP_INDEX_URL, PIP_EXTRA_INDEX_URL and PIP_FIND_LINKS, else the same settings in pip's
configuration files, else the public index. An index answers in JSON (PEP 691) or HTML (PEP 503); it may also be a
folder. Proxies come from the environment; certificates from PIP_CERT, REQUESTS_CA_BUNDLE, SSL_CERT_FILE or the system.

What is trusted: the sha256 and the size that the caller names, and nothing else. An index, a mirror or a proxy can
refuse to serve an archive, but cannot have another one accepted: no more bytes than announced are read, and an archive
whose sum differs is deleted before anybody opens it. Nothing is installed, built, imported or run.
"""

from __future__ import annotations

import base64
import configparser
import hashlib
import http.client
import json
import os
import re
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit

import platformdirs

from caplens.core.errors import MissingData
from caplens.core.progress import Progress, silent

PUBLIC_INDEX = "https://pypi.org/simple/"
SECONDS = 60.0
"""Without a byte, after which an attempt is given up."""
ATTEMPTS = 2
SYSTEM_FOLDER = Path("/etc")
MOST_PAGE_BYTES = 64 * 2**20
_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_TRANSPORT_ERRORS = (OSError, http.client.HTTPException, ValueError)


@dataclass(frozen=True)
class Location:
    """Somewhere archives may be: an index with a page per package, or one page or folder with everything."""

    address: str
    has_pages: bool

    def page(self, package: str) -> str:
        """Return the address at which the archives of a package are listed."""
        if not self.has_pages:
            return self.address
        return f"{self.address.rstrip('/')}/{re.sub(r'[-_.]+', '-', package).lower()}/"


def download(package: str, archive: str, sha256: str, size: int, target: Path, progress: Progress = silent) -> None:
    """Download the archive of this name, size and sum to `target`; a `MissingData` says why no location had it."""
    reasons = []
    for location in locations():
        try:
            address = _find(location, package, archive, sha256)
            _save(address, sha256, size, target, progress)
            return
        except _Unusable as error:
            reasons.append(f"{without_password(location.address)}: {error}")
    raise MissingData(f"could not download {archive} ({'; '.join(reasons) or 'no index is configured'})")


class _Unusable(Exception):
    """A location does not have the archive, or does not deliver it."""


def locations() -> list[Location]:
    """Return where to look, local folders first."""
    listed = [Location(address, has_pages=False) for address in setting("find-links").split()]
    if setting("no-index").lower() not in {"1", "yes", "true", "on"}:
        indexes = [setting("index-url") or PUBLIC_INDEX, *setting("extra-index-url").split()]
        listed += [Location(address, has_pages=True) for address in indexes]
    return sorted(listed, key=lambda location: _local(location.address) is None)


def setting(name: str) -> str:
    """Return one of pip's settings, from the environment or from its configuration files; empty if it is not set."""
    chosen = os.environ.get(f"PIP_{name.upper().replace('-', '_')}")
    if chosen:
        return chosen
    value = ""
    for path in _configuration_files():
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError):
            continue
        for section in ("global", "install", "download"):
            value = parser.get(section, name, fallback=value)
    return value


def _configuration_files() -> list[Path]:
    """Return pip's configuration files, those that win last."""
    chosen = os.environ.get("PIP_CONFIG_FILE", "")
    if chosen == os.devnull:
        return []
    name = "pip.ini" if os.name == "nt" else "pip.conf"
    shared = platformdirs.site_config_dir("pip", appauthor=False, multipath=True).split(os.pathsep)
    files = [Path(folder) / name for folder in shared]
    if os.name == "posix":
        files.append(SYSTEM_FOLDER / name)
    if not os.path.exists(chosen):
        files.append(Path.home() / ("pip" if os.name == "nt" else ".pip") / name)
        files.append(Path.home() / ".config" / "pip" / name)
        files.append(Path(platformdirs.user_config_dir("pip", appauthor=False, roaming=True)) / name)
    return [*files, Path(sys.prefix) / name, *([Path(chosen)] if chosen else [])]


def _find(location: Location, package: str, archive: str, sha256: str) -> str:
    """Return the address of an archive; links whose listed sum is another are not followed."""
    page = location.page(package)
    folder = _local(page)
    other_sum = False
    for name, address, listed_sum in _remote_links(page) if folder is None else _local_links(folder):
        if name == archive and listed_sum in {"", sha256}:
            return address
        other_sum = other_sum or name == archive
    raise _Unusable("lists another file under this name" if other_sum else "does not have it")


def _local(address: str) -> Path | None:
    """Return the path behind a file:// address or a plain path; None for what is on the network."""
    parts = urlsplit(address)
    if parts.scheme == "file":
        return Path(urllib.request.url2pathname(parts.path))
    return None if "://" in address else Path(address).expanduser()


def _local_links(path: Path) -> Iterator[tuple[str, str, str]]:
    """Name, address and sum of what a page in a folder lists; without a page, of every file that is there."""
    page = path / "index.html" if path.is_dir() else path
    try:
        if page.is_file():
            yield from _html_links(page.read_text("utf-8", "replace"), page.absolute().as_uri())
        elif path.is_dir():
            for file in path.iterdir():
                yield file.name, file.absolute().as_uri(), ""
    except OSError as error:
        raise _Unusable(str(error)) from None


def _remote_links(address: str) -> Iterator[tuple[str, str, str]]:
    """Name, address and sum of what an index lists; links that leave the network are left out."""
    try:
        with _open(address, _ACCEPT) as answer:
            content = answer.read(MOST_PAGE_BYTES + 1)
            base, kind = answer.geturl(), answer.headers.get_content_type()
    except urllib.error.HTTPError as error:
        raise _Unusable("does not have it" if error.code == 404 else f"answered {error.code} {error.reason}") from None
    except _TRANSPORT_ERRORS as error:
        raise _Unusable(_reason(error)) from None
    if len(content) > MOST_PAGE_BYTES:
        raise _Unusable("its list of archives is too long")
    text = content.decode("utf-8", "replace")
    for name, link, sum_ in _json_links(text, base) if kind.endswith("json") else _html_links(text, base):
        if urlsplit(link).scheme in {"http", "https"}:
            yield name, _with_login(link, address), sum_


def _json_links(text: str, base: str) -> Iterator[tuple[str, str, str]]:
    try:
        for file in json.loads(text)["files"]:
            yield file["filename"], urljoin(base, file["url"]), str(file.get("hashes", {}).get("sha256", ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _Unusable("its list of archives cannot be read") from None


def _html_links(text: str, base: str) -> Iterator[tuple[str, str, str]]:
    parser = _Anchors()
    parser.feed(text)
    for link in parser.links:
        try:
            address, fragment = urldefrag(urljoin(urljoin(base, parser.base), link))
        except ValueError:  # an address of the wrong form
            continue
        sum_ = fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else ""
        yield unquote(urlsplit(address).path.rpartition("/")[2]), address, sum_


class _Anchors(HTMLParser):
    """The links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.base = ""
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        target = dict(attrs).get("href") or ""
        if tag == "a" and target:
            self.links.append(target)
        elif tag == "base" and target:
            self.base = target


def _save(address: str, sha256: str, size: int, target: Path, progress: Progress) -> None:
    """Read an archive, at most `size` bytes, and keep it if its sum is right."""
    problem = ""
    for attempt in range(ATTEMPTS):
        time.sleep(0.5 * attempt)
        try:
            arrived, sum_ = _copy(address, size, target, progress)
            if arrived == size and sum_ == sha256:
                return
        except _Unusable as error:
            problem = str(error)
        else:
            if arrived >= size:
                target.unlink()
                raise _Unusable(
                    f"it is larger than the {size:,} bytes it should have"
                    if arrived > size
                    else f"it is not the file it should be (sha256 {sum_}, expected {sha256}); it was deleted"
                )
            problem = f"only {arrived:,} of {size:,} bytes arrived"
        target.unlink(missing_ok=True)
    raise _Unusable(problem)


def _copy(address: str, size: int, target: Path, progress: Progress) -> tuple[int, str]:
    """Return how many bytes arrived, at most one more than `size`, and their sum; an `OSError` is the target's."""
    arrived, sum_ = 0, hashlib.sha256()
    with target.open("wb") as out:
        for block in _blocks(address, size + 1):
            out.write(block)
            sum_.update(block)
            arrived += len(block)
            progress(f"{target.name}, MB", -(-arrived // 10**6), -(-size // 10**6))
    return arrived, sum_.hexdigest()


def _blocks(address: str, most: int) -> Iterator[bytes]:
    path = _local(address)
    try:
        with path.open("rb") if path is not None else _open(address, "*/*") as source:
            while most and (block := source.read(min(1 << 20, most))):
                most -= len(block)
                yield block
    except _TRANSPORT_ERRORS as error:
        raise _Unusable(_reason(error)) from None


def _open(address: str, accept: str) -> Any:
    """Open an http(s) address; a user name in it is shown to that host only, not to where it redirects."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    request = urllib.request.Request(urlunsplit(parts._replace(netloc=host)), headers={"User-Agent": "caplens"})
    request.add_header("Accept", accept)
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=_certificates()))
    return opener.open(request, timeout=SECONDS)


def _with_login(link: str, page: str) -> str:
    """Return a link with the login of the page that has it, if both are on the same host.

    >>> _with_login("https://mirror.example/a.whl", "https://me:secret@mirror.example/simple/a/")
    'https://me:secret@mirror.example/a.whl'
    """
    there, here = urlsplit(link), urlsplit(page)
    login, _, host = here.netloc.rpartition("@")
    same_host = (there.scheme, there.netloc) == (here.scheme, host)
    return urlunsplit(there._replace(netloc=here.netloc)) if login and same_host else link


def _certificates() -> ssl.SSLContext:
    chosen = setting("cert") or os.environ.get("REQUESTS_CA_BUNDLE", "")
    if not chosen:
        return ssl.create_default_context()  # which knows SSL_CERT_FILE and SSL_CERT_DIR
    if os.path.isdir(chosen):
        return ssl.create_default_context(capath=chosen)
    return ssl.create_default_context(cafile=chosen)


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) and error.reason else error
    hint = "; SSL_CERT_FILE names the certificates to trust" if isinstance(cause, ssl.SSLCertVerificationError) else ""
    return f"{cause or type(error).__name__}{hint}"


def without_password(address: str) -> str:
    """Return an address as messages may show it.

    >>> without_password("https://me:secret@mirror.example/simple")
    'https://mirror.example/simple'
    """
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
