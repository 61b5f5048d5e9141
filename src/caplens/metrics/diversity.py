"""Diversity: how much the several captions of a picture differ, and how much a captioner repeats what it has read.

Q. Wang, A. B. Chan. Describing like humans: on diversity in image captioning. CVPR 2019 (self-cider).
R. Shetty, M. Rohrbach, L. A. Hendricks, M. Fritz, B. Schiele. Speaking the same language: matching machine to human
captions by adversarial training. ICCV 2017 (div-1, div-2, mbleu-4, vocabulary, novel).

Every caption of a picture has the picture's value in its row, so that the mean over pictures, intervals and tests are
those of any other metric. Without groups every caption is a picture of its own.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from caplens.core.captions import CaptionSet, rows_by_picture
from caplens.core.errors import MissingData
from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.metrics import _options as options
from caplens.metrics.base import Metric, Resources, Statistics, register
from caplens.metrics.bleu import Bleu4
from caplens.metrics.cider import Cider, CiderPlain
from caplens.readers import read_references
from caplens.storage.digests import content_digest
from caplens.text.idf import IdfSource, build_idf
from caplens.text.ngrams import Tokenizer, split_tokens, tokenizer_name

SHETTY = "Shetty et al. 2017, ICCV"


class Diversity(Metric):
    """A value for the words of all captions of a picture."""

    needs = frozenset()
    paper = SHETTY

    def __init__(self, *, tokenizer: Tokenizer = "ptb") -> None:
        self.tokenizer = options.tokenizer(tokenizer)

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return (("tokenizer", tokenizer_name(self.tokenizer)),)

    def statistics(self, work: Workspace) -> Statistics:
        words = split_tokens(work.captions.candidates, self.tokenizer)
        scores = np.zeros(len(words))
        for rows in rows_by_picture(work.captions).values():
            scores[rows] = self.value([words[row] for row in rows])
        return Statistics(scores[:, None], notes=lone_note(work.captions))

    @abstractmethod
    def value(self, captions: Sequence[Sequence[str]]) -> float:
        """The diversity of a picture's captions, given as words."""


def lone_note(captions: CaptionSet) -> tuple[str, ...]:
    """Return what the reader should know where every picture has one caption."""
    if captions.groups is not None and len(set(captions.groups)) < len(captions):
        return ()
    return ("every picture has one caption here, and one caption does not vary: give several (--several, groups=)",)


class Div(Diversity):
    """Distinct n-grams of a picture's captions / all their words."""

    n: ClassVar[int]

    def value(self, captions: Sequence[Sequence[str]]) -> float:
        total = sum(map(len, captions))
        distinct = {
            tuple(words[start : start + self.n]) for words in captions for start in range(len(words) - self.n + 1)
        }
        return len(distinct) / total if total else 0.0


@register
class Div1(Div):
    name, n = "div-1", 1
    summary = "distinct words of a picture's captions per word"


@register
class Div2(Div):
    name, n = "div-2", 2
    summary = "distinct pairs of words of a picture's captions per word"


@register
class Distinct(Diversity):
    """The share of a picture's captions that are not a repetition of another."""

    name = "distinct"
    summary = "share of a picture's captions that differ"

    def value(self, captions: Sequence[Sequence[str]]) -> float:
        return len({tuple(words) for words in captions}) / len(captions)


@register
class MBleu4(Bleu4):
    """BLEU-4 of each caption against the others of its picture; lower is more diverse."""

    name = "mbleu-4"
    needs = frozenset()
    paper = SHETTY
    summary = "BLEU-4 of a caption against the others of its picture; lower is more diverse"
    higher_is_better = False

    def statistics(self, work: Workspace) -> Statistics:
        texts = work.captions.candidates
        others: list[list[str]] = [[] for _ in texts]
        for rows in rows_by_picture(work.captions).values():
            for row in rows:
                # A lone caption is like nothing: an empty text has no n-gram to share.
                others[row] = [texts[other] for other in rows if other != row] or [""]
        made = super().statistics(Workspace(CaptionSet.of(texts, others)))
        return Statistics(made.rows, notes=lone_note(work.captions))


@register
class SelfCider(Metric):
    """Self-CIDEr: how evenly a picture's captions spread in the space of CIDEr's tf-idf vectors, from 0 to 1."""

    name = "self-cider"
    needs = frozenset()
    optional_inputs = frozenset({"references"})
    paper = "Wang & Chan 2019, CVPR"
    summary = "spread of a picture's captions by CIDEr: 0 all alike, 1 nothing in common"
    signature_keys: ClassVar = {"documents": "whose words idf was counted in: references, captions or table"}

    def __init__(self, *, idf: IdfSource = "corpus", tokenizer: Tokenizer = "ptb") -> None:
        self._cider: Cider = CiderPlain(idf=idf, tokenizer=tokenizer)
        self.idf, self.tokenizer = self._cider.idf, self._cider.tokenizer

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return self._cider.signature_parts()

    def resources(self) -> Resources:
        return self._cider.resources()

    def statistics(self, work: Workspace) -> Statistics:
        captions = work.captions
        pictures = list(rows_by_picture(captions).values())
        table = self._cider.table()
        documents_are = "table"
        if table is None:
            documents_are = "captions" if captions.references is None else "references"
            # The corpus is the references; without any, the captions themselves, a picture being a document.
            documents = (
                [[captions.candidates[row] for row in rows] for rows in pictures]
                if captions.references is None
                else [captions.references[rows[0]] for rows in pictures]
            )
            table = build_idf(documents, self.tokenizer)
        pairs = [pair for rows in pictures for pair in itertools.combinations_with_replacement(rows, 2)]
        likeness = np.zeros(0)
        if pairs:
            both = CaptionSet.of(
                [captions.candidates[one] for one, _ in pairs], [[captions.candidates[other]] for _, other in pairs]
            )
            cider = CiderPlain(idf=table, tokenizer=self.tokenizer)
            likeness = cider.statistics(Workspace(both)).rows[:, 0]
        scores, start = np.zeros(len(captions)), 0
        for rows in pictures:
            count = len(rows) * (len(rows) + 1) // 2
            kernel = np.zeros((len(rows), len(rows)))
            kernel[np.triu_indices(len(rows))] = likeness[start : start + count]
            scores[rows] = spread(kernel)
            start += count
        facts = {"images": str(table.images), "documents": documents_are}
        return Statistics(scores[:, None], notes=lone_note(captions), facts=facts)


def spread(kernel: Floats) -> float:
    """Return -log_m(σ₁ / Σσ) of m captions, whose likeness stands in the upper half; σ² are its eigenvalues.

    >>> spread(np.eye(3)), spread(np.ones((3, 3)))
    (1.0, 0.0)
    """
    values = np.sqrt(np.clip(np.linalg.eigvalsh(kernel, UPLO="U"), 0, None))
    # Rounding leaves some 1e-8 of what is nothing; captions without words are alike.
    values = np.where(values > 1e-6 * values.max(initial=0.0), values, 0.0)
    if len(values) < 2 or not values.any():
        return 0.0
    return float(max(0.0, -np.log(values.max() / values.sum()) / np.log(len(values))))


@register
class Vocabulary(Metric):
    """The number of distinct words of all captions; a word that k captions share counts 1/k for each of them."""

    name = "vocabulary"
    needs = frozenset()
    paper = SHETTY
    summary = "distinct words of all captions together"
    shown_as_percent = False

    def __init__(self, *, tokenizer: Tokenizer = "ptb") -> None:
        self.tokenizer = options.tokenizer(tokenizer)

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return (("tokenizer", tokenizer_name(self.tokenizer)),)

    def whole_set(self, captions: CaptionSet | None = None) -> str:
        return "a word counts once, in however many captions it stands"

    def statistics(self, work: Workspace) -> Statistics:
        words = [set(row) for row in split_tokens(work.captions.candidates, self.tokenizer)]
        captions_with = Counter(word for row in words for word in row)
        shares = [sum(1 / captions_with[word] for word in sorted(row)) for row in words]
        # The second column keeps the scale where only some captions, or their means, are added up.
        return Statistics(np.array([[share, 1 / len(words)] for share in shares]).reshape(-1, 2))

    def corpus(self, sums: Floats, count: int) -> Floats:
        return sums[..., 0] / sums[..., 1]


@register
class Novel(Metric):
    """The share of captions that are not, word by word, among those that the captioner was trained on.

    Args:
        training: the file of training captions, in any layout that caplens reads as references; or a list of them.
    """

    name = "novel"
    needs = frozenset()
    paper = SHETTY
    summary = "share of captions that are not in the training captions (option training)"

    def __init__(
        self, *, training: str | os.PathLike[str] | Sequence[str] | None = None, tokenizer: Tokenizer = "ptb"
    ) -> None:
        listed = isinstance(training, list | tuple)
        self.training = training if training is None or listed else options.path("training", training, "file")
        self.tokenizer = options.tokenizer(tokenizer)

    @classmethod
    def takes(cls, captions: CaptionSet) -> bool:
        return False  # never by itself: it needs its option

    def check(self, captions: CaptionSet) -> None:
        if self.training is None:
            raise MissingData("novel compares with training captions and none were given: give training=FILE")

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return (("tokenizer", tokenizer_name(self.tokenizer)),)

    def resources(self) -> Resources:
        return {"training": content_digest(self.training)} if isinstance(self.training, str | os.PathLike) else {}

    def statistics(self, work: Workspace) -> Statistics:
        if isinstance(self.training, str | os.PathLike):
            training = [text for texts in read_references(self.training).values() for text in texts]
        else:
            training = list(self.training or ())
        known = set(map(tuple, split_tokens(training, self.tokenizer)))
        captions = split_tokens(work.captions.candidates, self.tokenizer)
        scores = np.array([tuple(words) not in known for words in captions], dtype=np.float64)
        digest = hashlib.sha256(repr(sorted(known)).encode("utf-8", "surrogatepass")).hexdigest()
        return Statistics(scores[:, None], facts={"training": f"{len(known)}-captions-{digest[:12]}"})
