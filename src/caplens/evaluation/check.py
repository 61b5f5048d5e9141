"""Judge alt texts one by one: fine, doubtful or wrong, with the reason in words. The work behind `caplens check`."""

from __future__ import annotations

import functools
import json
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from caplens.core.captions import CaptionSet, media_name
from caplens.core.details import Details
from caplens.core.errors import InputError, as_caplens_error
from caplens.core.plain_json import json_text
from caplens.core.progress import Progress, silent
from caplens.core.tables import Table
from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.evaluation.belonging import ENCODER, belonging
from caplens.evaluation.details import apply_verdict_rules, left_out, wrong_words
from caplens.evaluation.evaluate import score_captions
from caplens.evaluation.pages import render_page
from caplens.evaluation.results import Report
from caplens.evaluation.sarif import sarif_log, shorten
from caplens.evaluation.tabular import Tabular
from caplens.metrics.base import Result
from caplens.storage.atomic import write_atomically
from caplens.text.alt_text import text_problems
from caplens.text.language import looks_english

if TYPE_CHECKING:
    from caplens.vision.pictures import PictureReader

Verdict = Literal["fine", "doubtful", "wrong"]
VERDICTS: tuple[Verdict, ...] = ("fine", "doubtful", "wrong")
METRIC = "infometic"
OF_ALL_ENCODERS = ("allow_urls", "device", "dtype", "batch_size")
"""Options of the metric that another encoder takes, too."""
MOST_LEFT_OUT = 3
"""Things left out that a reason names."""


@dataclass(frozen=True)
class Finding:
    """One reason for a verdict."""

    kind: str
    message: str
    verdict: Verdict
    """What this reason alone makes of the text; 'fine' is a remark."""
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Checked:
    """One alt text and what became of it."""

    id: str
    text: str
    image: str | None
    place: str
    """File and line or row, for messages and editors."""
    findings: tuple[Finding, ...]
    another_picture: float | None = None
    """How probable it is that the text was written for another picture; None where the picture was not looked at."""

    @property
    def verdict(self) -> Verdict:
        """Return the worst that any reason says."""
        return max((finding.verdict for finding in self.findings), key=VERDICTS.index, default="fine")

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values."""
        return {
            "id": self.id,
            "text": self.text,
            "image": self.image,
            "place": self.place,
            "verdict": self.verdict,
            "reasons": [
                {
                    "kind": finding.kind,
                    "message": finding.message,
                    "verdict": finding.verdict,
                    "words": list(finding.words),
                }
                for finding in self.findings
            ],
            "another_picture": self.another_picture,
        }


@dataclass(frozen=True)
class CheckReport(Tabular):
    """The verdicts on a set of alt texts."""

    rows: tuple[Checked, ...]
    captions: CaptionSet
    calibration: Calibration
    notes: tuple[str, ...] = ()
    details: Mapping[int, Details] = field(default_factory=dict, repr=False)
    """By row, what the page draws."""
    signature: str = ""
    pictures: PictureReader | None = field(default=None, repr=False, compare=False)
    """What was read and decoded, for the page to show."""

    def __len__(self) -> int:
        return len(self.rows)

    def count(self, verdict: Verdict) -> int:
        """Return how many texts have this verdict."""
        return sum(row.verdict == verdict for row in self.rows)

    def failing(self, worst_allowed: Verdict) -> list[Checked]:
        """Return the texts whose verdict is worse than this."""
        return [row for row in self.rows if VERDICTS.index(row.verdict) > VERDICTS.index(worst_allowed)]

    def table(self) -> Table:
        """Return one row per text that is not fine, the worst first."""
        shown = sorted(
            (row for row in self.rows if row.verdict != "fine"), key=lambda row: -VERDICTS.index(row.verdict)
        )
        return Table(
            ("verdict", "id", "text", "reason"),
            [[row.verdict, row.id, shorten(row.text), _reason(row)] for row in shown],
        )

    def all_rows(self) -> Table:
        """Return one row per text, in the order given: what the csv has."""
        return Table(
            ("id", "image", "text", "verdict", "reasons"),
            [[row.id, row.image or "", row.text, row.verdict, _reason(row)] for row in self.rows],
        )

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return every text with its verdict as csv, and write it where a path is given."""
        text = self.all_rows().to_csv()
        if path is not None:
            write_atomically(path, text)
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values."""
        return {
            "texts": len(self.rows),
            "counts": {verdict: self.count(verdict) for verdict in VERDICTS},
            "how_often_right": self.calibration.rates,
            "signature": self.signature,
            "rows": [row.to_dict() for row in self.rows],
            "notes": list(self.notes),
        }

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write `to_dict` as a json file."""
        write_atomically(path, json_text(self.to_dict()) + "\n")

    def to_jsonl(self, path: str | os.PathLike[str]) -> None:
        """Write one json object per text."""
        write_atomically(path, "".join(json_text(row.to_dict()) + "\n" for row in self.rows))

    def to_sarif(self, path: str | os.PathLike[str]) -> None:
        """Write the findings as SARIF 2.1.0, which code hosts show beside the lines they are about."""
        write_atomically(path, json_text(sarif_log(self.rows)) + "\n")

    def to_html(self, path: str | os.PathLike[str], title: str = "") -> None:
        """Write one self-contained page."""
        write_atomically(path, render_page(self, title or Path(path).stem))


@dataclass(frozen=True)
class Calibration:
    """How evidence becomes the probability that a text is about another picture.

    There are two: over the strong encoder (`belonging.Background.evidence`) where its weights are here, else over
    InfoMetIC's numbers (`evidence`). Both were fitted and measured by tools/calibrate_check.py on photos that no model
    was trained on.
    """

    weights: tuple[float, ...]
    """For each feature of the evidence, then the constant."""
    wrong_from: float
    doubtful_from: float
    measured_with: str
    """The weights it holds for."""
    rates: dict[str, float] = field(default_factory=dict)
    """How often each verdict on a picture was right, on other photos than it was fitted on."""

    @classmethod
    @functools.cache
    def load(cls, over: str = METRIC) -> Calibration:
        """Return the shipped one over InfoMetIC or over the strong encoder."""
        path = Path(str(files("caplens") / "storage" / "shipped" / "check-calibration.json"))
        content = json.loads(path.read_text("utf-8"))[over]
        return cls(
            weights=tuple(content["weights"]),
            wrong_from=float(content["wrong_from"]),
            doubtful_from=float(content["doubtful_from"]),
            measured_with=str(content["measured_with"]),
            rates=dict(content["rates"]),
        )

    def probability(self, features: Sequence[float]) -> float:
        """Return how probable it is that the caption was written for another picture."""
        logit = float(np.dot(self.weights[:-1], features) + self.weights[-1])
        return round(1 / (1 + math.exp(-min(max(logit, -60.0), 60.0))), 4)


def evidence(details: Details) -> list[float] | None:
    """Return what the picture says about a caption: its cosine, where it stands among people's, and its red words.

    None where nothing can be said: no picture, no word that a picture could show, another language.
    """
    judged = [word for word in details.get("words", []) if "percentile" in word]
    percentiles = details.get("percentiles", {})
    if not judged or "cosine" not in details or "overall" not in percentiles:
        return None
    words = np.array([word["percentile"] for word in judged])
    return [
        details["cosine"],
        math.log(percentiles["overall"] + 0.01),
        math.log(percentiles["precision"] + 0.01),
        float((words < 0.1).mean()),
        float(np.log(words + 0.01).mean()),
    ]


def check(
    captions: CaptionSet,
    *,
    progress: Progress = silent,
    places: Sequence[str] | None = None,
    decorative: Sequence[bool] | None = None,
    **options: Any,
) -> CheckReport:
    """Judge alt texts against the rules for them and, where pictures are given, against their pictures.

    Args:
        captions: the texts, with their pictures.
        places: where each text stands (file and line), for messages; by default its row.
        decorative: which pictures are marked as decoration and need no text.
        options: passed to the metric that looks at the pictures, such as ``allow_urls=``.
    """
    if not len(captions):
        raise InputError("there is no text to check", where=captions.source)
    notes: list[str] = []
    work = Workspace(captions, progress, quiet=True)  # what a metric would say of the whole set stands in the rows
    report = _look(work, notes, options) if captions.images is not None else None
    result = None if report is None else report[METRIC]
    if captions.images is None:
        notes.append("no pictures were given, so only the texts themselves were checked: add --images DIR")
    pictures = _pictures_by_text(captions)
    calibration, strong = Calibration.load(), None
    if report is not None:
        strong = _look_again(work, notes, options)
        calibration = calibration if strong is None else Calibration.load(ENCODER)
    drawn: dict[int, Details] = {}
    rows = []
    for row, text in enumerate(captions.candidates):
        findings = [
            Finding(problem.kind, problem.message, "wrong" if problem.serious else "doubtful")
            for problem in text_problems(text, pictures[text.strip().lower()])
        ]
        if decorative is not None and decorative[row]:
            findings = [] if findings and findings[0].kind == "empty" else findings
            rows.append(_checked(captions, row, findings, places))
            continue
        probability = None
        if not any(finding.verdict == "wrong" for finding in findings):
            if not looks_english(text):
                findings.append(Finding("language", "not in English, so its words were not judged", "doubtful"))
            elif result is not None:
                try:
                    again = None if strong is None else strong[row]
                    seen, probability = _by_picture(result, row, again, calibration, drawn)
                except Exception as error:  # the other texts are not lost
                    message = f"its picture was not looked at: {as_caplens_error(error)}"
                    seen = [Finding("no-picture", message, "doubtful")]
                findings += seen
        rows.append(_checked(captions, row, findings, places, probability))
    signature = "" if result is None else result.signature
    looked_at = None if report is None else report.pictures
    return CheckReport(tuple(rows), captions, calibration, tuple(notes), drawn, signature, looked_at)


def _look(work: Workspace, notes: list[str], options: dict[str, Any]) -> Report | None:
    """Score the texts against their pictures; where that cannot be done, say why and go on without."""
    try:
        return score_captions(work, [METRIC], options)
    except Exception as error:
        notes.append(f"the pictures were not looked at: {as_caplens_error(error)}")
        return None


def _look_again(work: Workspace, notes: list[str], options: dict[str, Any]) -> Floats | None:
    """Return what the strong encoder sees, or None where its weights are not here."""
    try:
        return belonging(work, **{name: value for name, value in options.items() if name in OF_ALL_ENCODERS})
    except Exception as error:
        notes.append(f"verdicts would be surer with the encoder {ENCODER}: {as_caplens_error(error)}")
        return None


def _by_picture(
    result: Result, row: int, again: Floats | None, calibration: Calibration, drawn: dict[int, Details]
) -> tuple[list[Finding], float | None]:
    if row in result.failures:
        return [Finding("no-picture", f"its picture was not looked at: {result.failures[row]}", "doubtful")], None
    raw = result.explained(row)
    features = evidence(raw)
    details = drawn[row] = apply_verdict_rules(raw)
    if features is None:
        message = "no word of it says something that a picture could show"
        return [Finding("no-content", message, "doubtful")], None
    probability = calibration.probability(features if again is None else again.tolist())
    red, missing = wrong_words(details), left_out(details)[:MOST_LEFT_OUT]
    findings = []
    if probability >= calibration.doubtful_from:
        verdict: Verdict = "wrong" if probability >= calibration.wrong_from else "doubtful"
        findings.append(Finding("another-picture", "seems to be about another picture", verdict, tuple(red)))
    elif red:
        findings.append(Finding("wrong-words", f"not seen in the picture: {', '.join(red)}", "doubtful", tuple(red)))
    if missing:
        findings.append(Finding("left-out", f"not mentioned: {', '.join(missing)}", "fine", tuple(missing)))
    return findings, probability


def _pictures_by_text(captions: CaptionSet) -> Counter[str]:
    """Return how many different pictures each text stands on."""
    images = captions.images or captions.ids
    texts = (text.strip().lower() for text in captions.candidates)
    return Counter(text for text, _ in {*zip(texts, map(_name, images), strict=True)})


def _name(image: Any) -> str:
    return "" if image is None else image if isinstance(image, str) else media_name(image)


def _checked(
    captions: CaptionSet,
    row: int,
    findings: Sequence[Finding],
    places: Sequence[str] | None,
    probability: float | None = None,
) -> Checked:
    image = None if captions.images is None else captions.images[row]
    return Checked(
        id=captions.ids[row],
        text=captions.candidates[row],
        image=None if image is None else media_name(image),
        place=captions.where(row) if places is None else places[row],
        findings=tuple(findings),
        another_picture=probability,
    )


def _reason(row: Checked) -> str:
    serious = [finding.message for finding in row.findings if finding.verdict != "fine"]
    return "; ".join(serious or [finding.message for finding in row.findings])
