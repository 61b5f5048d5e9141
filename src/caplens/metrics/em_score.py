"""EMScore (Shi et al. 2022): a caption's words against a video's frames, and the whole against the whole.

Frames and tokens are vectors of length one. Fine: precision is the idf-weighted mean over tokens of the best frame,
recall the mean over frames of the best token, and their F1. Coarse: the cosine of caption and video, the video being
the mean of its frames. The score is the mean of both; with references, the mean of that and of the best reference's,
where recall is idf-weighted too. No prompt, no scale, no clipping, as in the official code. There a maximum can meet
the zeros that pad a batch; here a score never depends on what else is in the batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError
from caplens.core.types import Floats, unit
from caplens.core.workspace import Workspace
from caplens.metrics import _options as options
from caplens.metrics._sentences import parts_fact
from caplens.metrics._visual import VisualMetric
from caplens.metrics.base import Resources, Statistics, reference_counts, register

if TYPE_CHECKING:
    from caplens.encoders.base import TokenVectors

PAPER = "Shi et al. 2022, EMScore: Evaluating Video Captioning via Coarse-Grained and Fine-Grained Embedding Matching"
Idf = Literal["auto", "references", "candidates", "none"]
PADDING = 0
"""The id that pads texts; the official idf counts it once in every caption."""


@dataclass(frozen=True)
class TokenWeights:
    """Inverse document frequency of token ids."""

    known: Mapping[int, float]
    unknown: float

    @classmethod
    def of(cls, captions: Iterable[Sequence[int]], end: int) -> TokenWeights:
        """idf = log((N + 1) / (df + 1)); the end token, which is in every caption, gets the mean of all."""
        counts: Counter[int] = Counter()
        total = 0
        for ids in captions:
            counts.update({*ids, PADDING})
            total += 1
        known = {token: float(np.log((total + 1) / (count + 1))) for token, count in counts.items()}
        if known:
            known[end] = sum(known.values()) / len(known)
        return cls(known, float(np.log(total + 1)))

    def __call__(self, ids: Sequence[int]) -> Floats:
        """One weight per token, summing to 1; all equal where every token is in every caption."""
        weights = np.array([self.known.get(token, self.unknown) for token in ids])
        total = weights.sum()
        return weights / total if total > 0 else np.full(len(ids), 1 / len(ids))


def equal_weights(ids: Sequence[int]) -> Floats:
    """Every token counts the same."""
    return np.full(len(ids), 1 / len(ids))


@dataclass(frozen=True)
class Match:
    """How two sequences of vectors match."""

    precision: float
    recall: float
    coarse: float

    @property
    def fine(self) -> float:
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total != 0 else 0.0

    @property
    def score(self) -> float:
        return (self.fine + self.coarse) / 2


def match(left: Floats, right: Floats, left_weights: Floats, right_weights: Floats, coarse: float) -> Match:
    """Best partners both ways; rows are vectors of length one."""
    similarity = left @ right.T
    return Match(float(left_weights @ similarity.max(axis=1)), float(right_weights @ similarity.max(axis=0)), coarse)


def matching(metric: EmbeddingMatching, work: Workspace) -> Statistics:
    """EMScore of every caption in the space of the metric's encoder."""
    from caplens.vision.video import decoder

    captions = work.captions
    watched = metric.watched(work, metric.frames)
    candidates = metric.token_vectors(work, captions.candidates)
    weigh, idf_name = _weights(metric, work, metric.idf, candidates)
    references = captions.references if "references" in metric.needs else None
    by_reference: list[TokenVectors] = []
    if references is not None:
        by_reference = metric.token_vectors(work, [text for texts in references for text in texts])
    scores = np.full(len(captions), np.nan)
    details: list[dict[str, Any]] = []
    start = 0
    for row, candidate in enumerate(candidates):
        partners = by_reference[start : start + len(references[row])] if references is not None else []
        start += len(partners)
        shown = watched.frames[row]
        if shown is None:
            details.append({})
            continue
        tokens, whole, weights = unit(candidate.vectors), unit(candidate.whole), weigh(candidate.ids)
        seen = unit(shown)
        video = unit(seen.mean(axis=0))
        matched = match(tokens, seen, weights, np.full(len(seen), 1 / len(seen)), float(whole @ video))
        scores[row] = matched.score
        details.append(_detail(matched, len(seen)))
        if partners:
            each = [
                match(tokens, unit(other.vectors), weights, weigh(other.ids), float(whole @ unit(other.whole)))
                for other in partners
            ]
            # The best reference is chosen for the fine and for the coarse part on its own, as the official code does.
            best = (max(other_match.fine for other_match in each) + max(other_match.coarse for other_match in each)) / 2
            scores[row] = (matched.score + best) / 2
            details[-1]["references"] = best
    facts = {"media": "video", "decoder": decoder()}
    if metric.frames == "all":
        facts["frames"] = metric.frames
    facts["idf"] = idf_name
    if references is not None:
        facts["references"] = reference_counts(references)
    parts = metric.text_parts(work, captions.candidates)
    flat = [] if references is None else [metric.text_parts(work, [text for texts in references for text in texts])]
    facts |= parts_fact("tokens", parts, *flat)
    notes = metric.notes(parts)
    return Statistics(scores[:, None], details=details, notes=notes, failures=watched.failures, facts=facts)


def _detail(matched: Match, frames: int) -> dict[str, Any]:
    return {
        "precision": matched.precision,
        "recall": matched.recall,
        "fine": matched.fine,
        "coarse": matched.coarse,
        "frames": frames,
    }


def _weights(
    metric: VisualMetric, work: Workspace, idf: str, candidates: list[TokenVectors]
) -> tuple[Callable[[Sequence[int]], Floats], str]:
    """How tokens are weighted, and its name: idf over the references where there are some, else over the candidates."""
    references = work.captions.references
    if idf == "none":
        return equal_weights, "none"
    if idf == "auto":
        idf = "references" if references is not None else "candidates"
    encoder = metric.get_encoder()
    if idf == "references" and references is not None:
        parts = metric.text_parts(work, [text for texts in references for text in texts])
        tokens = [encoder.tokenize(text)[0] for text in parts.texts]
        documents = [list(chain(*tokens[start:end])) for start, end in zip(parts.starts, parts.ends, strict=True)]
    elif idf == "candidates":
        documents = [list(candidate.ids) for candidate in candidates]
    else:
        raise InputError(
            f"idf={idf!r} cannot be had here", remedy="use auto, references (if given), candidates or none"
        )
    end = documents[0][-1] if documents else PADDING
    return TokenWeights.of(documents, end), f"{idf}-{len(documents)}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


class EmbeddingMatching(VisualMetric):
    """EMScore with or without references.

    Args:
        frames: which frames of a video are looked at: all, every-K or uniform-N.
        idf: what weighs the words: references, candidates, none; auto is the references where there are some.
    """

    paper = PAPER
    optional_inputs = frozenset({"references"})

    def __init__(self, *, frames: str = "all", idf: Idf = "auto", **rest: Any) -> None:
        from caplens.vision.video import Sampling

        super().__init__(**rest)
        self.frames = options.readable("frames", frames, Sampling.parse, "all, every-K or uniform-N")
        self.idf = options.choice("idf", idf, ("auto", "references", "candidates", "none"))

    def whole_set(self, captions: CaptionSet | None = None) -> str:
        return "" if self.idf == "none" else "words are weighed by idf over all captions (idf=none does without)"

    def resources(self) -> Resources:
        return {**super().resources(), "decoder": _version("av")}

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        frames = () if self.frames == "all" else (("frames", self.frames),)
        return (*super().signature_parts(), *frames)

    def statistics(self, work: Workspace) -> Statistics:
        return matching(self, work)


@register
class EmScore(EmbeddingMatching):
    """EMScore(X, V)."""

    name = "em-score"
    aliases = ("emscore",)
    needs = frozenset({"video"})
    summary = "Fit of caption and video, words against frames and whole against whole; no references."


@register
class EmScoreRef(EmbeddingMatching):
    """EMScore(X, V, X*)."""

    name = "em-score-ref"
    aliases = ("emscore-ref",)
    needs = frozenset({"video", "references"})
    summary = "EMScore together with the best match to a reference."
