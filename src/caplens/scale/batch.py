"""One batch of somebody else's pipeline: a plain function for Ray Data, `datasets.map`, Spark and Daft."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError
from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.metrics import load_metrics
from caplens.metrics.base import Metric
from caplens.readers.columns import ColumnChoice, find_columns
from caplens.readers.rows import check_texts, media_of
from caplens.scale.plan import corpus_tokenizer


def score_batch(
    batch: Mapping[str, Any],
    metrics: str | Sequence[str | Metric],
    *,
    caption_column: str | None = None,
    image_column: str | None = None,
    **options: Any,
) -> dict[str, Floats]:
    """Score one batch of columns and return a column of scores per metric, NaN where a caption has none.

    Args:
        batch: columns by name (lists, numpy arrays, a DataFrame): captions, references, pictures as paths or bytes,
            under any name that `caplens.read` knows.
        metrics: names, or metrics made by `caplens.load_metric`; they are loaded once per process.
        caption_column: the column to judge, if its name is unusual; ``image_column`` likewise.
        options: passed to every metric that takes them. The CIDEr family needs ``idf=`` a table of the whole corpus.

    >>> scores = score_batch({"caption": ["a cat"], "references": [["a cat", "the cat"]]}, "rouge-l")
    >>> {name: column.tolist() for name, column in scores.items()}
    {'rouge-l': [1.0]}
    """
    wanted = metrics.split(",") if isinstance(metrics, str) else metrics
    named = tuple(name.strip() for name in wanted if isinstance(name, str))
    loaded = [*_loaded(named, pickle.dumps(options)), *(metric for metric in wanted if isinstance(metric, Metric))]
    captions = _captions(batch, ColumnChoice(caption_column, image_column, None))
    for metric in loaded:
        reason = "idf is counted over all references" if corpus_tokenizer(metric) else metric.whole_set(captions)
        if reason:
            raise InputError(
                f"{metric.name} cannot score a batch alone: {reason}",
                remedy="give idf= a table of the whole corpus (caplens idf build), or leave this metric out",
            )
    work = Workspace(captions, quiet=True)
    return {metric.name: metric.result(work).scores for metric in loaded}


def _captions(batch: Mapping[str, Any], choice: ColumnChoice) -> CaptionSet:
    names = [str(name) for name in batch]
    columns = find_columns(names, choice, "the batch")
    if columns.caption is None:
        raise InputError(
            f"no column we know as a caption, only {', '.join(names)}", where="the batch", remedy="pass caption_column="
        )

    def values(name: str | None) -> list[Any] | None:
        return None if name is None else [_plain(value) for value in batch[name]]

    candidates = values(columns.caption) or []
    references, images, videos = values(columns.references), values(columns.image), values(columns.video)
    places = [f"the batch, row {row}" for row in range(1, len(candidates) + 1)]
    return CaptionSet(
        ids=[str(row) for row in range(len(candidates))],
        candidates=["" if text is None else text for text in candidates],
        references=None
        if references is None
        else [check_texts(texts, "reference", place) for texts, place in zip(references, places, strict=True)],
        images=None
        if images is None
        else [media_of(image, "image", "", place) for image, place in zip(images, places, strict=True)],
        videos=None
        if videos is None
        else [media_of(video, "video", "", place) for video, place in zip(videos, places, strict=True)],
        source="the batch",
    )


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


@functools.lru_cache(maxsize=4)
def _loaded(names: tuple[str, ...], options: bytes) -> list[Metric]:
    return load_metrics(list(names), pickle.loads(options)) if names else []
