"""What a metric is: captions to statistics, statistics to scores. One subclass, one file, one `@register`.

A metric turns every caption into one row of numbers (`statistics`); `scores` gives the score of each row and `corpus`
the score of the whole set from the *sum* of its rows. Whatever re-samples captions (bootstrap, permutation tests) adds
up rows and never looks at text again.
"""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from caplens.core.captions import CaptionSet
from caplens.core.details import AnyDetails, Details, read_details
from caplens.core.errors import MetricNote, MissingData
from caplens.core.progress import Progress, silent
from caplens.core.signature import Signature
from caplens.core.sums import exact_sums
from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.storage.identity import Identity
from caplens.text.language import foreign_note, unsegmented_note
from caplens.text.named_tokenizers import SEGMENTING, NamedTokenizer

Need = Literal["references", "image", "video"]
Resources = Mapping[str, str | Identity]
"""What each file that a result depends on is called, with its content digest; and metrics with their identities."""
MetricClass = TypeVar("MetricClass", bound="type[Metric]")


@dataclass(frozen=True)
class Statistics:
    """One row per caption, and what else the metric has to say about it."""

    rows: Floats
    """(captions, columns); for a metric that is a plain mean, one column: the scores."""
    details: Sequence[AnyDetails] | None = None
    notes: tuple[str, ...] = ()
    """What the reader of the number should know: truncated captions, unknown words, a missing module."""
    failures: Mapping[int, str] = field(default_factory=dict)
    """Row to reason, for captions that could not be scored; their rows are NaN."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Signature parts known only after looking at the data, such as the number of references."""


@dataclass(frozen=True)
class Result:
    """The scores of one metric on one set of captions."""

    name: str
    score: float
    scores: Floats
    signature: str
    statistics: Floats
    metric: Metric = field(repr=False, compare=False)
    details: Sequence[AnyDetails] | None = None
    notes: tuple[str, ...] = ()
    failures: Mapping[int, str] = field(default_factory=dict)

    def explained(self, row: int) -> Details:
        """What the metric says about one caption (docs/guide/details.md), with its types; empty if it says nothing."""
        return {} if self.details is None else read_details(self.details[row])


class Metric(ABC):
    """A caption metric. Options are keyword arguments of `__init__`, each stored under its own name."""

    name: ClassVar[str]
    needs: ClassVar[frozenset[Need]]
    optional_inputs: ClassVar[frozenset[Need]] = frozenset()
    """What it looks at where that is given, and does without where it is not."""
    paper: ClassVar[str]
    """Authors, year, title or venue."""
    summary: ClassVar[str]
    """One line for `caplens metrics`."""
    aliases: ClassVar[tuple[str, ...]] = ()
    higher_is_better: ClassVar[bool] = True
    shown_as_percent: ClassVar[bool] = True
    """Whether people print this score times 100."""
    only_when_named: ClassVar[bool] = False
    """Whether `all` leaves it out, because it costs more than time."""
    english_only: ClassVar[bool] = False
    """Whether captions in other languages get numbers that mean nothing; the result then has a note."""
    signature_keys: ClassVar[Mapping[str, str]] = {}
    """Keys of its signature, with what they mean, that are neither options of its nor in `core.signature.KEYS`."""

    @abstractmethod
    def statistics(self, work: Workspace) -> Statistics:
        """One row of numbers per caption."""

    def scores(self, rows: Floats) -> Floats:
        """The score of each caption from its row."""
        return rows[:, 0]

    def corpus(self, sums: Floats, count: int) -> Floats:
        """The score of a set of `count` captions from the sum of its rows; `sums` may have leading axes."""
        return sums[..., 0] / count

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        """Everything that changes the number, known before seeing the data; order is kept."""
        return ()

    def whole_set(self, captions: CaptionSet | None = None) -> str:
        """Return why a caption's row depends on the other captions; empty if shards can be scored one by one.

        Without captions, only what holds for any.
        """
        return ""

    @property
    def label(self) -> str:
        """What tables call it: its name, and what it ran over where that is not what the name stands for."""
        return self.name

    def language_note(self, captions: CaptionSet) -> str | None:
        """Return what the reader should know where it does not understand the captions' language, or its words."""
        if self.english_only:
            return foreign_note(captions.candidates)
        tokenizer = getattr(self, "tokenizer", None)
        spaced = isinstance(tokenizer, NamedTokenizer) and tokenizer.name not in SEGMENTING
        if spaced or isinstance(tokenizer, str):  # any other callable may know what words are
            return unsegmented_note(captions.candidates)
        return None

    @classmethod
    def takes(cls, captions: CaptionSet) -> bool:
        """Say whether these captions come with all the columns that it needs."""
        columns = {"references": captions.references, "image": captions.images, "video": captions.videos}
        visual = cls.needs & {"image", "video"}
        seen = not visual or any(columns[kind] is not None for kind in visual)
        return seen and ("references" not in cls.needs or captions.references is not None)

    def inputs(self, captions: CaptionSet) -> frozenset[Need]:
        """Return the columns, besides the captions themselves, that the result on these captions depends on."""
        return self.needs | self.optional_inputs

    def resources(self) -> Resources:
        """Return the content digest of every file that the result depends on, and the identity of every metric.

        This is the one place where a metric names them: `content_digest` of a file or folder, `model_digest` of a
        model, `metric.identity()` of a metric it builds on. Options need not be named.
        """
        return {}

    def shared_files(self, progress: Progress = silent) -> tuple[Path, ...]:
        """Return large files that it reads through `storage.sealed.shared_copy`: workers on one machine share them."""
        return ()

    def identity(self) -> Identity:
        """Return what results are kept under: name, code, every option, every resource.

        Equal identities give equal results on equal captions. Options are read off the instance by their names.
        """
        options: dict[str, Any] = {}
        for option in sorted(self.options()):
            if not hasattr(self, option):
                raise TypeError(f"{type(self).__name__} does not keep its option {option!r} as self.{option}")
            options[option] = getattr(self, option)
        code = [level for level in type(self).__mro__ if issubclass(level, Metric) and level is not Metric]
        return Identity.of({"metric": self.name, "code": code, "options": options, "resources": self.resources()})

    def check(self, captions: CaptionSet) -> None:
        """Refuse captions that lack what this metric needs; the message says how to supply it."""
        if "references" in self.needs:
            if captions.references is None:
                raise MissingData(
                    f"{self.name} compares with references and none were given: pass references=, "
                    "--references FILE, or a 'references' column"
                )
            for row, texts in enumerate(captions.references):
                if not texts:
                    raise MissingData(f"{self.name}: {captions.where(row)} has an empty list of references")
        visual = self.needs & {"image", "video"}
        if visual and captions.images is None and captions.videos is None:
            kinds = " or ".join(sorted(visual))
            raise MissingData(
                f"{self.name} looks at the {kinds} and none was given: pass images= or videos=, "
                "--images DIR, or an 'image' / 'video' column"
            )

    def result(self, work: Workspace) -> Result:
        """Return the result on these captions, computed once per workspace: how metrics build on metrics (spider)."""
        return work.get_or_compute(("result", self.identity()), lambda: self.compute(work))

    def compute(self, work: Workspace) -> Result:
        """Score every caption of the workspace."""
        self.check(work.captions)
        statistics = self.statistics(work)
        rows, failures = _finite_rows(statistics, len(work.captions))
        foreign = self.language_note(work.captions)
        notes = statistics.notes if foreign is None else (*statistics.notes, foreign)
        if not work.quiet:
            for note in notes:
                warnings.warn(MetricNote(self.name, note), stacklevel=2)
        scores = np.ascontiguousarray(self.scores(rows), dtype=np.float64)
        if scores.shape != (len(rows),):
            raise ValueError(f"scores of shape {scores.shape} for {len(rows)} captions")
        # A caption that could not be scored stays out of the corpus score, and is counted in the report.
        usable = rows[~np.isnan(rows).any(axis=1)]
        score = float(self.corpus(exact_sums(usable), len(usable))) if len(usable) else float("nan")
        parts = (*self.signature_parts(), *statistics.facts.items())
        return Result(
            name=self.name,
            score=score,
            scores=scores,
            signature=str(Signature.of(self.name, parts, {*self.signature_keys, *self.options()})),
            statistics=rows,
            metric=self,
            details=statistics.details if work.details else None,
            notes=notes,
            failures=failures,
        )

    @classmethod
    def option_defaults(cls) -> dict[str, Any]:
        """Keyword arguments this metric takes, with their defaults; `**options` stands for those of the class above."""
        defaults: dict[str, Any] = {}
        for level in cls.__mro__:
            if "__init__" in level.__dict__:
                parameters = list(inspect.signature(level.__dict__["__init__"]).parameters.values())[1:]
                for parameter in parameters:
                    if parameter.kind not in _REST:
                        defaults.setdefault(parameter.name, parameter.default)
                if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
                    break
        return defaults

    @classmethod
    def options(cls) -> frozenset[str]:
        """Names of the keyword arguments this metric takes."""
        return frozenset(cls.option_defaults())

    def plain_options(self) -> dict[str, bool | int | float | str | None]:
        """Return those of its options that json can hold: the score of a set may depend on them."""
        values = {option: getattr(self, option, None) for option in sorted(self.options())}
        return {
            name: value
            for name, value in values.items()
            if value is None or isinstance(value, bool | int | float | str)
        }


def _finite_rows(statistics: Statistics, captions: int) -> tuple[Floats, Mapping[int, str]]:
    """Return the rows, and why some are NaN: no caption goes without a score and without a reason."""
    rows = statistics.rows
    if rows.ndim != 2 or len(rows) != captions:
        raise ValueError(f"statistics of shape {rows.shape} for {captions} captions")
    if statistics.details is not None and len(statistics.details) != captions:
        raise ValueError(f"{len(statistics.details)} details for {captions} captions")
    broken = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    new = [row for row in broken.tolist() if row not in statistics.failures]
    if not new:
        return rows, statistics.failures
    rows = rows.copy()
    rows[new] = np.nan
    return rows, {**statistics.failures, **dict.fromkeys(new, "its score is not a finite number")}


_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


_registry: dict[str, type[Metric]] = {}


def register(metric: MetricClass) -> MetricClass:
    """Class decorator: make a metric known by its name and aliases."""
    for name in (metric.name, *metric.aliases):
        known = _registry.get(name)
        if known is not None and known.__qualname__ != metric.__qualname__:
            raise ValueError(f"two metrics are called {name!r}: {known.__module__} and {metric.__module__}")
        _registry[name] = metric
    return metric


def registered() -> dict[str, type[Metric]]:
    """Every name and alias registered so far; `caplens.metrics` fills it by importing the metric files."""
    return _registry


def reference_counts(references: Sequence[Sequence[str]]) -> str:
    """How many references the captions have, for signatures.

    >>> reference_counts([["a", "b"], ["c"]]), reference_counts([["a"], ["b"]])
    ('1-2', '1')
    """
    counts = [len(texts) for texts in references]
    if not counts:
        return "0"
    return f"{min(counts)}-{max(counts)}" if min(counts) != max(counts) else str(counts[0])
