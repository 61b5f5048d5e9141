"""The CIDEr family: consensus of tf-idf weighted n-grams with what people wrote.

R. Vedantam, C. L. Zitnick, D. Parikh. CIDEr: consensus-based image description evaluation. CVPR 2015.
G. O. dos Santos, E. L. Colombini, S. Avila. CIDEr-R: robust consensus-based image description evaluation. W-NUT 2021.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Literal

import numpy as np

from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.metrics import _options as options
from caplens.metrics._sentences import length_note
from caplens.metrics.base import Metric, Resources, Statistics, register
from caplens.native._kernels import exp_each
from caplens.text.idf import IdfSource, IdfTable, Weights, find_idf, idf_weights
from caplens.text.ngrams import Corpus, Tokenizer, corpus_of, tokenizer_name

SIGMA = 6.0  # of the Gaussian on the length difference; CIDEr-D, section 3 of the supplement
K_R = 0.8  # weight of the repetition penalty; CIDEr-R, section 4


class Cider(Metric):
    """Mean over references and n = 1..4 of the tf-idf cosine times a penalty, times ten."""

    needs = frozenset({"references"})
    paper = "Vedantam et al. 2015, CVPR"
    clip = True

    def __init__(self, *, idf: IdfSource = "corpus", tokenizer: Tokenizer = "ptb") -> None:
        self.idf = options.idf_source(idf)
        self.tokenizer = options.tokenizer(tokenizer)
        self._table: IdfTable | None = None

    @abstractmethod
    def penalty(self, corpus: Corpus) -> Floats:
        """One factor per pair of candidate and reference."""

    def table(self) -> IdfTable | None:
        """The idf table, read or built at the first call; None when the evaluated references are the corpus."""
        if self._table is None:
            self._table = find_idf(self.idf, self.tokenizer)
        return self._table

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        table = self.table()
        idf = "corpus" if table is None or table.is_corpus else f"table-{table.checksum}"
        return (("tokenizer", tokenizer_name(self.tokenizer)), ("idf", idf))

    def resources(self) -> Resources:
        table = self.table()
        return {} if table is None else {"idf table": table.checksum}

    def wordless(self, corpus: Corpus) -> int:
        """How many captions have no words and score 0."""
        return 0

    def long_notes(self, corpus: Corpus) -> tuple[str, ...]:
        """What the length of captions does to the score, where it does something."""
        return ()

    def statistics(self, work: Workspace) -> Statistics:
        corpus = corpus_of(work, self.tokenizer)
        weights = idf_weights(corpus.references, self.table())
        scores = np.empty(len(corpus.candidates))
        scored = wordless = 0
        for part in corpus.parts():
            # sim(c, s) for n = 1..4 in four columns; CIDEr-R eq. 1
            sums = part.candidates.consensus(weights.kernel, self.clip, self.penalty(part))
            count = len(part.candidates)
            scores[scored : scored + count] = 10.0 * (sums.mean(axis=1) / part.reference_counts)  # eq. 3 and 4
            scored += count
            wordless += self.wordless(part)
        return Statistics(
            scores[:, None],
            notes=(*_notes(weights, len(scores), wordless), *self.long_notes(corpus)),
            facts={"images": str(weights.images), "references": corpus.counts_name},
        )


def _notes(weights: Weights, captions: int, wordless: int) -> tuple[str, ...]:
    """What the reader should know about these captions."""
    notes = []
    if captions and weights.all_zero:
        what = "there is one image" if weights.images == 1 else f"all {weights.images} images have the same references"
        notes.append(
            f"every score is 0 because {what}: an n-gram that every image has weighs log({weights.images}/"
            f"{weights.images}) = 0; give idf= a table (caplens idf build) or a caption file"
        )
    if wordless:
        have = "1 caption has" if wordless == 1 else f"{wordless} captions have"
        notes.append(f"{have} no words and score 0 (the official scorer gives NaN)")
    return tuple(notes)


@register
class CiderD(Cider):
    """CIDEr-D, which coco-caption prints as CIDEr: clipped, with a Gaussian on the length difference."""

    name = "cider-d"
    aliases = ("cider",)
    summary = "consensus with the references (what coco-caption calls CIDEr)"

    def __init__(self, *, idf: IdfSource = "corpus", tokenizer: Tokenizer = "ptb", sigma: float = SIGMA) -> None:
        super().__init__(idf=idf, tokenizer=tokenizer)
        self.sigma = options.number("sigma", sigma, low=0, above=True)

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return (*super().signature_parts(), ("sigma", f"{self.sigma:g}"))

    def penalty(self, corpus: Corpus) -> Floats:
        # The official code's length is the number of bigrams.
        candidate = corpus.per_pair(np.maximum(0, corpus.candidates.lengths() - 1))
        reference = np.maximum(0, corpus.candidates.reference_lengths() - 1)
        delta = np.abs(candidate - reference)
        differences = range(int(delta.max(initial=0)) + 1)  # few, for many pairs
        # CIDEr-R eq. 2; one by one: NumPy's powers differ in the last bit between processors
        factors = np.array([math.e ** (-(difference**2) / (2 * self.sigma**2)) for difference in differences])
        return factors[delta]

    def long_notes(self, corpus: Corpus) -> tuple[str, ...]:
        return length_note(
            corpus, "the Gaussian on the difference in length makes their score nearly 0, whatever they say"
        )


@register
class CiderPlain(Cider):
    """CIDEr as first defined: no clipping, no length penalty."""

    name = "cider-plain"
    summary = "CIDEr without clipping and length penalty"
    clip = False

    def penalty(self, corpus: Corpus) -> Floats:
        return np.ones(int(corpus.reference_counts.sum()))


@register
class CiderR(Cider):
    """CIDEr-R: penalties for length, relative to the reference, and for repeated words."""

    name = "cider-r"
    paper = "dos Santos et al. 2021, W-NUT"
    summary = "CIDEr that is robust to long references and punishes repeated words"

    def __init__(
        self,
        *,
        idf: IdfSource = "corpus",
        tokenizer: Tokenizer = "ptb",
        k_r: float = K_R,
        formula: Literal["official", "paper"] = "official",
    ) -> None:
        super().__init__(idf=idf, tokenizer=tokenizer)
        self.k_r = options.number("k_r", k_r, low=0, high=1)
        self.formula = options.choice("formula", formula, ("official", "paper"))

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return (*super().signature_parts(), ("k_r", f"{self.k_r:g}"), ("formula", self.formula))

    def penalty(self, corpus: Corpus) -> Floats:
        candidate, reference = corpus.candidates.lengths(), corpus.candidates.reference_lengths()
        # l(c), l(s): the official code takes bigrams + 1, which is the number of words, and 1 for an empty text.
        candidate, reference = corpus.per_pair(np.maximum(1, candidate)), np.maximum(1, reference)
        log_length_penalty = -((candidate - reference) ** 2) / reference**2  # Pen_L, eq. 5

        # The official code's words are what \w+ finds in the tokens.
        logs, distinct, total = corpus.repetitions(whole_tokens=self.formula == "paper")
        root = distinct if self.formula == "official" else total  # the paper prints the exponent 1/l(c)
        log_repetition_penalty = logs / corpus.per_pair(np.maximum(1, root))  # Pen_R, eq. 6
        # Pen_R^k_r Pen_L^(1 - k_r), eq. 7
        combined = exp_each(self.k_r * log_repetition_penalty + (1 - self.k_r) * log_length_penalty)
        if distinct.all():
            return combined
        wordless = np.repeat(distinct == 0, corpus.reference_counts)
        return np.where(wordless, 0.0, combined)

    def wordless(self, corpus: Corpus) -> int:
        return int((corpus.repetitions(whole_tokens=self.formula == "paper")[1] == 0).sum())
