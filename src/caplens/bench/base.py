"""What a rating set is: a file of `sets/` that turns the user's files into captions to score and figures to compute."""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

import numpy as np

from caplens.bench.data import DataFolders
from caplens.bench.statistics import AgreementStatistic
from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError, MissingData
from caplens.evaluation.resampling import Ints

SetClass = TypeVar("SetClass", bound="type[RatingSet]")

# Draws of references and of distractors: the seed stands in the signature of every set that draws.
SEED = 1
DRAWS = 5


@dataclass(frozen=True)
class Task:
    """A loaded set."""

    trials: list[CaptionSet]
    """What metrics score; several when references are drawn several times, or one per captioning system."""
    units: int
    """Number of images: what bootstrap and permutation tests resample."""
    figures: list[AgreementStatistic]
    signature: str
    """Everything about the protocol that changes a figure."""
    notes: tuple[str, ...] = ()
    details: bool = False
    """Whether some figures read the metrics' details, so that only metrics that explain can be measured by these."""
    sources: tuple[Path, ...] = ()
    pictures: tuple[Sequence[str], ...] = ()
    """Per trial the name of every row's picture or video, by which scores from outside are joined."""


class RatingSet(ABC):
    """A set of captions that people judged."""

    name: ClassVar[str]
    title: ClassVar[str]
    what: ClassVar[str]
    """One line: what was judged, by whom, on which scale."""
    protocol: ClassVar[str]
    """How the figures are computed, so that anybody can repeat it."""
    license: ClassVar[str]
    home: ClassVar[str]
    """Where to get it."""
    files: ClassVar[tuple[tuple[str, ...], ...]]
    """Each needed file as a tuple of the names it is known by."""
    paper: ClassVar[str]
    only_when_named: ClassVar[bool] = False
    """Whether `caplens bench all` leaves it out, because it is too long for slow metrics."""

    @abstractmethod
    def load(self, data: DataFolders) -> Task:
        """Read the set; MissingData says which file is not there."""

    def require(self, data: DataFolders, *names: str) -> Path:
        """A file of this set, or a message that says where to get it."""
        return data.require(self.title, self.home, *names)

    def found(self, data: DataFolders) -> list[Path]:
        """The files of this set that are here; all of `files`, or nothing."""
        paths = [data.find(*names) for names in self.files]
        return [path for path in paths if path] if all(paths) else []


_registry: dict[str, RatingSet] = {}


def rating_set(cls: SetClass) -> SetClass:
    """Class decorator: make a set known by its name."""
    _registry[cls.name] = cls()
    return cls


def known_sets() -> dict[str, RatingSet]:
    """Every rating set by name."""
    from caplens.bench import sets

    for module in pkgutil.iter_modules(sets.__path__):
        importlib.import_module(f"{sets.__name__}.{module.name}")
    return dict(sorted(_registry.items()))


def find_sets(names: Sequence[str]) -> list[RatingSet]:
    """Sets by name, or by the beginning of several names; hyphens, underscores and case do not matter.

    >>> [found.name for found in find_sets(["pascal50s"])]
    ['pascal-50s-consensus', 'pascal-50s-pairs']
    """

    def plain(text: str) -> str:
        return text.lower().replace("-", "").replace("_", "")

    known = known_sets()
    chosen: dict[str, RatingSet] = {}
    for name in names:
        hits = [key for key in known if plain(key) == plain(name)]
        hits = hits or [key for key in known if plain(key).startswith(plain(name))]
        if not hits or not name:
            raise InputError(f"no rating set is called {name!r}", remedy=f"the sets are: {', '.join(known)}")
        chosen |= {key: known[key] for key in hits}
    return list(chosen.values())


def missing_files(rating_set: RatingSet, data: DataFolders) -> list[str]:
    """What was looked for and not found."""
    return [" or ".join(names) for names in rating_set.files if data.find(*names) is None]


def number_units(names: Iterable[Hashable]) -> tuple[Ints, int]:
    """A number per distinct name, in order of first appearance.

    >>> number_units(["b", "a", "b"])
    (array([0, 1, 0], dtype=int32), 2)
    """
    numbers: dict[Hashable, int] = {}
    units = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int32)
    return units, len(numbers)


def require_rows(count: int, title: str, path: Path) -> None:
    """Refuse a file that was read and held nothing of the set."""
    if not count:
        raise MissingData(f"{title}: {path} holds no row of this set")
