"""Whether the word that a metric likes least is one that people call wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from caplens.bench.statistics import ItemStatistic, Scored
from caplens.core.details import AnyDetails
from caplens.core.types import Floats
from caplens.evaluation.resampling import Ints

Marked = frozenset[tuple[str, int]]
"""Words of a caption in small letters, each with its number among its equals."""
PROTOCOL = (
    "only captions with a wrong word, and metrics that judge words: the share, among the words with the lowest score "
    "(without scores: among all called wrong), of those that are marked; 0 where the metric blames no word"
)


def number_words(words: Iterable[str]) -> list[tuple[str, int]]:
    """Return words in small letters, numbered among their equals, so that two ways to cut a caption can be compared.

    >>> number_words(["A", "cat", "a"])
    [('a', 0), ('cat', 0), ('a', 1)]
    """
    seen: Counter[str] = Counter()
    numbered = []
    for word in map(str.lower, words):
        numbered.append((word, seen[word]))
        seen[word] += 1
    return numbered


def blamed_words(details: AnyDetails) -> list[tuple[str, int]]:
    """Return the words that a metric likes least; none where it likes all.

    >>> cat, mat = ({"text": text, "status": "right", "score": score} for text, score in (("cat", 0.2), ("mat", 0.9)))
    >>> blamed_words({"words": [{"text": "a"}, cat, mat]})
    [('cat', 0)]
    """
    words = details.get("words", [])
    scores = [word["score"] for word in words if word.get("status") and word.get("score") is not None]
    worst = min(scores, default=None)
    return [
        key
        for key, word in zip(number_words(word["text"] for word in words), words, strict=True)
        if (word.get("status") == "wrong" if worst is None else word.get("status") and word.get("score") == worst)
    ]


def localization(key: str, rows: Sequence[int], marked: Sequence[Marked], units: Ints) -> ItemStatistic:
    """Return the figure over these rows of the first trial, with the words that are wrong in each."""

    def judge(scored: Scored) -> Floats:
        details = scored.trials[0].details
        if details is None or not any("words" in entry for entry in details):
            return np.full(len(rows), np.nan)
        values = []
        for row, wrong in zip(rows, marked, strict=True):
            blamed = blamed_words(details[row])
            values.append(sum(word in wrong for word in blamed) / len(blamed) if blamed else 0.0)
        return np.array(values)

    return ItemStatistic(key=key, headline=True, units=units, judge=judge)
