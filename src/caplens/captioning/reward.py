"""Any metric as a reward for a training loop: references are indexed once, batches are scored in a millisecond."""

from __future__ import annotations

import itertools
import sys
import threading
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caplens.core.captions import CaptionSet, Media
from caplens.core.errors import InputError, MetricNote
from caplens.core.progress import silent
from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.metrics import load_metrics
from caplens.metrics.base import Metric
from caplens.native._kernels import Candidates, TokenMap
from caplens.text.ngrams import Corpus, ReferenceIndex, Tokenizer

T = TypeVar("T")
END_WORD = "endofcaption"
"""What stands for the end of a caption where the end counts as a word."""


class Reward:
    """Scores captions of images by id, as often as wanted.

    Args:
        metric: a name, a metric, or a mixture ``{"cider-r": 1.0, "bleu-4": 0.5}``.
        references: ``{id: [captions]}`` of every image that will be asked for; idf is counted over all of them.
        images: ``{id: picture}`` for metrics that look at pictures.
        vocabulary: ``vocabulary[number]`` is a word; then captions may be rows of numbers.
        end: the number, or numbers, at which a row ends; what follows is padding.
        end_counts: to metrics of n-grams the end is a word too, of references and captions, as in the usual
            self-critical training. Without it a captioner learns to break off: "a dog in a".
        options: passed to the metrics that take them, such as ``idf=`` or ``k_r=``.

    >>> reward = Reward("cider-r", references={1: ["a cat sleeps"], 2: ["a dog runs"]}, vocabulary=["", "a", "dog"])
    >>> reward([1, 2], ["a cat sleeps", "a cat"]).round(3).tolist()
    [7.5, 0.0]
    >>> bool(reward([2], np.array([[1, 2, 0, 0]]))[0] > 0)
    True
    """

    def __init__(
        self,
        metric: str | Metric | Mapping[str | Metric, float] | Mapping[str, float],
        references: Mapping[Any, Sequence[str]],
        *,
        images: Mapping[Any, Media] | None = None,
        vocabulary: Sequence[str] | None = None,
        end: int | Sequence[int] = 0,
        end_counts: bool = False,
        **options: Any,
    ) -> None:
        if not references:
            raise InputError("a reward without references", remedy="give references={id: [captions]}")
        weights = dict(metric) if isinstance(metric, Mapping) else {metric: 1.0}
        named = [name for name in weights if isinstance(name, str)]
        loaded = iter(load_metrics(named, options) if named else [])
        self.mixture = [
            (name if isinstance(name, Metric) else next(loaded), weight) for name, weight in weights.items()
        ]
        self.references = {key: list(texts) for key, texts in references.items()}
        if any("references" in single.needs for single, _ in self.mixture):
            for key, texts in self.references.items():
                if not texts:
                    raise InputError(f"id {key!r} has an empty list of references", remedy="give at least one")
        self.images = images
        # What every batch will come with: a metric that lacks something says so now, not in the middle of a training.
        columns = CaptionSet(["0"], [""], [[""]], None if images is None else [None])
        for single, _ in self.mixture:
            single.check(columns)
        self.vocabulary = None if vocabulary is None else list(vocabulary)
        self.end = [end] if isinstance(end, int) else list(end)
        self.end_counts = end_counts
        self._begin()

    def _begin(self) -> None:
        self._rows = {key: row for row, key in enumerate(self.references)}
        self._made: dict[Hashable, Any] = {}
        self._noted: set[str] = set()
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_rows", "_made", "_noted", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    def __call__(self, ids: Sequence[Any], captions: Any) -> Any:
        """One reward per caption.

        With k captions per id, those of one id stand together. Numbers need a vocabulary; a torch tensor of numbers
        gives a torch tensor of rewards on the same device.
        """
        given = isinstance(captions, list | tuple) and all(issubclass(kind, str) for kind in {*map(type, captions)})
        texts = captions if given else None
        numbers, lengths = (None, None) if texts is not None else self._numbers(captions)
        count = len(texts) if texts is not None else len(cast(Any, lengths))
        keys, rows = self._rows_of(ids, count)
        batch = _Batch(self, keys, rows, texts, numbers, lengths)
        rewards = np.zeros(count)
        for metric, weight in self.mixture:
            rewards += weight * self._score(metric, batch)
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(captions, torch.Tensor):
            return torch.from_numpy(rewards).to(device=captions.device, dtype=torch.get_default_dtype())
        return rewards

    def self_critical(self, ids: Sequence[Any], captions: Any, greedy: Any) -> Any:
        """Advantage of sampled captions over the greedy caption of their image (Rennie et al. 2017, eq. 7)."""
        rewards, baseline = self(ids, captions), self(ids, greedy)
        return (rewards.reshape(len(baseline), -1) - baseline[:, None]).reshape(-1)

    def leave_one_out(self, ids: Sequence[Any], captions: Any) -> Any:
        """Advantage of each sampled caption over the mean of its image's other samples."""
        rewards = self(ids, captions)
        each = rewards.reshape(len(ids), -1)
        others = each.shape[1] - 1
        if others < 1:
            raise InputError("leave-one-out needs at least two captions per id")
        return ((each * (others + 1) - each.sum(1)[:, None]) / others).reshape(-1)

    def index(self, tokenizer: Tokenizer) -> ReferenceIndex:
        """All references as token numbers."""
        return self._get_or_compute(
            ("index", tokenizer), lambda: ReferenceIndex(map(self.closed, self.references.values()), tokenizer)
        )

    def token_map(self, tokenizer: Tokenizer) -> TokenMap:
        """What the numbers of the vocabulary mean to the index."""

        def make() -> TokenMap:
            words = list(self.vocabulary or [])
            for number in self.end if self.end_counts else ():
                words[number] = END_WORD
            return TokenMap(self.index(tokenizer).kernel, words)

        return self._get_or_compute(("map", tokenizer), make)

    def closed(self, texts: Sequence[str]) -> Sequence[str]:
        """Texts with their end as a word, where it counts."""
        return [f"{text} {END_WORD}" for text in texts] if self.end_counts else texts

    def _get_or_compute(self, key: Hashable, make: Callable[[], T]) -> T:
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            return cast(T, self._made[key])

    def _rows_of(self, ids: Sequence[Any], count: int) -> tuple[list[Any], NDArray[np.int64]]:
        """Per caption its id and the place of the references."""
        keys = list(ids)
        if not keys or count % len(keys):
            raise InputError(f"{count} captions for {len(keys)} ids", remedy="give as many captions for each id")
        each = count // len(keys)
        keys = [key for key in keys for _ in range(each)] if each != 1 else keys
        try:
            return keys, np.fromiter(map(self._rows.__getitem__, keys), np.int64, count)
        except KeyError as error:
            key = error.args[0]
            raise InputError(f"no references for id {key!r}", remedy="give them when making the reward") from None

    def _numbers(self, captions: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All words in one line, and how many each caption has."""
        if self.vocabulary is None:
            raise InputError(
                "captions are not a list of strings", remedy="numbers need vocabulary= when making the reward"
            )
        if isinstance(captions, list | tuple):
            lengths = np.array([len(row) for row in captions], dtype=np.int64)
            numbers = np.fromiter(itertools.chain.from_iterable(captions), np.int64, lengths.sum())
            return self._spoken(numbers, lengths)
        table = np.ascontiguousarray(captions.cpu() if hasattr(captions, "cpu") else captions, dtype=np.int64)
        if table.ndim != 2:
            raise InputError(f"captions have {table.ndim} axes", remedy="give one row of numbers per caption")
        return self._spoken(table.reshape(-1), np.full(len(table), table.shape[1]))

    def _spoken(
        self, numbers: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What stands before the first end of each row; with that end, where it counts."""
        stops = lengths.cumsum()
        starts = stops - lengths
        ended = numbers == self.end[0] if len(self.end) == 1 else np.isin(numbers, self.end)
        ends = np.append(np.flatnonzero(ended), len(numbers))
        stops = np.minimum(stops, ends[np.searchsorted(ends, starts)] + self.end_counts)
        return numbers[np.arange(len(numbers)) < np.repeat(stops, lengths)], stops - starts

    def _score(self, metric: Metric, batch: _Batch) -> Floats:
        statistics = metric.statistics(batch)
        for row, reason in statistics.failures.items():
            raise InputError(f"{metric.name} cannot score a caption of id {batch.keys[row]!r}: {reason}")
        if metric.name not in self._noted:  # what holds for all batches is said with the first
            self._noted.add(metric.name)
            for note in statistics.notes:
                warnings.warn(MetricNote(metric.name, note), stacklevel=3)
        return metric.scores(statistics.rows)


class _Batch(Workspace):
    """One batch: captions as text only if a metric asks for text, token numbers against the reward's own index."""

    def __init__(
        self,
        reward: Reward,
        keys: list[Any],
        rows: NDArray[np.int64],
        texts: Sequence[str] | None,
        numbers: NDArray[np.int64] | None,
        lengths: NDArray[np.int64] | None,
    ) -> None:
        self.reward, self.keys, self.rows = reward, keys, rows
        self.texts, self.numbers, self.lengths = texts, numbers, lengths
        self.progress, self.strict, self.quiet, self._computed = silent, True, False, {}

    @property
    def captions(self) -> CaptionSet:  # type: ignore[override]
        return self.get_or_compute("captions", self._captions)

    def _captions(self) -> CaptionSet:
        reward, texts = self.reward, self.texts
        if texts is None:
            words, ends = cast(list[str], reward.vocabulary), np.cumsum(cast(ArrayLike, self.lengths))
            rows = np.split(cast(NDArray[np.int64], self.numbers), ends[:-1])
            texts = [" ".join(words[number] for number in row if number not in reward.end) for row in rows]
        return CaptionSet(
            ids=[str(row) for row in range(len(self.keys))],
            candidates=list(texts),
            references=[reward.references[key] for key in self.keys],
            images=None if reward.images is None else [reward.images.get(key) for key in self.keys],
        )

    def get_or_compute(self, key: Hashable, make: Callable[[], T]) -> T:
        if isinstance(key, tuple) and key[0] == "corpus":
            return super().get_or_compute(key, lambda: cast(T, self._corpus(key[1])))
        return super().get_or_compute(key, make)

    def _corpus(self, tokenizer: Tokenizer) -> Corpus:
        index = self.reward.index(tokenizer)
        if self.texts is not None:
            return Corpus(index, Candidates(index.kernel, self.reward.closed(self.texts), self.rows))
        numbers, lengths = cast(Any, self.numbers), cast(Any, self.lengths)
        return Corpus(index, Candidates(self.reward.token_map(tokenizer), numbers, lengths, self.rows))
