"""Score captions with several metrics at once: the work behind `caplens.evaluate` and `caplens score`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from caplens.core.captions import CaptionSet, Media
from caplens.core.errors import CaplensError, CaplensWarning, InputError, as_caplens_error
from caplens.core.progress import Progress, silent
from caplens.core.workspace import Workspace
from caplens.evaluation.results import Report
from caplens.metrics import default_metrics, expand_groups, load_metrics
from caplens.metrics.base import Metric
from caplens.text.language import detect_language
from caplens.text.named_tokenizers import tokenizer_for
from caplens.text.ngrams import tokenizer_name


def evaluate(
    candidates: CaptionSet | Sequence[str] | Mapping[Any, str],
    references: Sequence[Sequence[str]] | Mapping[Any, Sequence[str]] | None = None,
    images: Sequence[Media | None] | Mapping[Any, Media | None] | None = None,
    videos: Sequence[Media | None] | Mapping[Any, Media | None] | None = None,
    ids: Sequence[Any] | None = None,
    metrics: str | Sequence[str | Metric] | None = None,
    *,
    groups: Sequence[Any] | Mapping[Any, Any] | None = None,
    progress: Progress = silent,
    strict: bool = False,
    language: str | None = None,
    **options: Any,
) -> Report:
    """Judge captions.

    Args:
        candidates: the captions to judge, a list or ``{id: caption}``, or a whole `CaptionSet`.
        references: per caption a list of captions that people wrote.
        images: per caption the path of its picture; ``videos`` likewise.
        ids: names of the captions when they are given as lists.
        metrics: names (``caplens.list_metrics()``), groups (``classical``, ``picture``, ``learned``, ``all``), files
            (``./mine.py:Mine``) or metrics made by ``caplens.load_metric``; by default the quick ones that look at
            everything given.
        groups: where a picture has several captions, the id of its picture for every caption; mappings of references
            and images then go by the picture, and the report has `several` and `per_picture`.
        strict: raise at the first picture that cannot be read instead of scoring it NaN.
        language: of the captions, a code such as ``pt`` or ``zh``, or ``auto`` to look at them; it chooses the
            tokenizer of metrics that compare words, unless ``tokenizer=`` names one.
        options: passed to every metric that takes them, such as ``idf=`` or ``encoder=``.

    A metric that cannot run (no references, no weights, a bug) is listed in ``report.errors`` with the reason; the
    others are not lost. If none can run, the first reason is raised.

    >>> report = evaluate(["a cat on a mat"], [["a cat on a mat"]], metrics=["bleu-4", "rouge-l"])
    >>> report["rouge-l"].score
    1.0
    """
    if isinstance(candidates, CaptionSet):
        if any(column is not None for column in (references, images, videos, ids, groups)):
            raise InputError("a CaptionSet came with extra columns", remedy="put them into the CaptionSet")
        captions = candidates
    else:
        captions = CaptionSet.of(candidates, references, images, videos, ids, groups=groups)
    options |= language_option(language, [captions])
    return score_captions(Workspace(captions, progress, strict), metrics, options)


def language_option(language: str | None, sets: Iterable[CaptionSet]) -> dict[str, str]:
    """Return the option that tells metrics the language; ``auto`` is that of most texts, and a note says which."""
    if language is None:
        return {}
    if language == "auto":
        texts = [text for captions in sets for text in [*captions.candidates, *chain(*(captions.references or []))]]
        language = detect_language(texts)
        if language != "en":
            tokenizer = tokenizer_name(tokenizer_for(language))
            found = "no language was recognized" if language == "und" else f"the captions look like {language}"
            warnings.warn(f"{found}: words are found by the tokenizer {tokenizer}", CaplensWarning, stacklevel=3)
    return {"language": language}


def score_captions(
    work: Workspace, metrics: str | Sequence[str | Metric] | None, options: Mapping[str, Any] | None = None
) -> Report:
    """Score the captions of a workspace; what `evaluate` does with its arguments."""
    if metrics is None:
        metrics = default_metrics(work.captions)
    if isinstance(metrics, str):
        metrics = [name for name in metrics.split(",") if name.strip()]
    if not metrics:
        raise InputError("no metric was asked for", remedy="name some: metrics=['cider-r', 'bleu-4']")
    loaded = [metric for metric in metrics if isinstance(metric, Metric)]
    names = expand_groups([name for name in metrics if isinstance(name, str)], work.captions)
    missing: dict[str, CaplensError] = {}
    loaded += load_metrics(names, dict(options or {}), missing)

    report = Report(work.captions)
    if work.captions.images is not None:
        from caplens.vision.pictures import pictures_of

        report.pictures = pictures_of(work)
    report.errors.update({name: str(reason) for name, reason in missing.items()})
    first: CaplensError | None = next(iter(missing.values()), None)
    if work.strict and first is not None:
        raise first
    for metric in loaded:
        try:
            report.add(metric.result(work))
        except Exception as error:
            reason = as_caplens_error(error)
            if work.strict:
                raise reason from reason.__cause__
            report.errors[metric.name] = str(reason)
            first = first or reason
    if first is not None and not report.results:
        raise first
    return report
