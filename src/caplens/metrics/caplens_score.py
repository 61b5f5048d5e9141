"""caplens, the learned composite: does the caption fit the picture that the references, and the picture, tell of?

A logistic model over eleven features that all grow with quality, learned without any rated set: the more a caption has
of one of them, the higher it scores. docs/research/composite.md says what it was trained on and how far it gets.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from caplens.core.errors import InputError
from caplens.core.types import Floats, unit
from caplens.core.workspace import Workspace
from caplens.encoders.sentence import load_sentence_encoder
from caplens.metrics import _options as options
from caplens.metrics._mlp import Contributions, FeatureMLP
from caplens.metrics._sentences import parts_fact
from caplens.metrics._well_formedness import WELL_FORMEDNESS, well_formedness, well_formedness_identity
from caplens.metrics.base import Metric, Resources, Statistics, reference_counts, register
from caplens.metrics.sent_sim import places, to_references
from caplens.metrics.spice import Spice
from caplens.storage import weights
from caplens.storage.digests import content_digest
from caplens.storage.identity import Identity
from caplens.text.sentences import TextParts

if TYPE_CHECKING:
    from caplens.encoders.embedded import Head, JoinedHeads

ENCODER = "all-MiniLM-L6-v2"
HEADS = "contrastive"
# The caption's nearest so many of the bank's say how usual it is; itself (a cosine of 1) is not one of them.
NEIGHBOURS = 10
SAME = 0.999

MEANING = (
    "meaning of the nearest reference",
    "meaning of the references together",
    "nearest reference, as a picture shows it",
    "references together, as a picture shows them",
    "objects, attributes and relations (SPICE)",
    "not a caption for many pictures",
)
PICTURE = "fit to the picture, beyond what the references foresee"
FEATURES = (*MEANING, PICTURE, *WELL_FORMEDNESS)


@register
class CaplensScore(Metric):
    """0 to 1: the probability that the caption was written for this picture rather than for a similar one.

    Args:
        weights: "default", or a file of `caplens train composite`.
        picture: whether to look at pictures where captions have them.
    """

    name = "caplens-score"
    aliases = ("caplens",)
    needs = frozenset({"references"})
    optional_inputs = frozenset({"image"})
    paper = ""
    summary = "learned composite of meaning, scene graph, picture (where given) and well-formedness; hard to game"
    english_only = True

    def __init__(self, *, weights: str | os.PathLike[str] = "default", picture: bool = True) -> None:
        self.weights = options.path("weights", weights, "path, or default")
        self.picture = options.flag("picture", picture)

    def _path(self) -> Path:
        return weights.shipped("caplens") if os.fspath(self.weights) == "default" else Path(self.weights)

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        path = self._path()
        load_network(path)
        return (
            ("weights", f"{path.stem}@{content_digest(path)[:12]}"),
            ("encoder", ENCODER),
            *Spice().signature_parts(),
            ("picture", "where-given" if self.picture else "no"),
        )

    def resources(self) -> Resources:
        path = self._path()
        network = load_network(path)
        edition = trained_with(network)
        parts: Resources = {
            "weights": weights.model_digest(path),
            "meaning": meaning_identity(network.extra["bank"], edition),
            "well-formedness": well_formedness_identity(),
        }
        return {**parts, "picture": picture_identity(edition)} if self.picture else parts

    def statistics(self, work: Workspace) -> Statistics:
        network = load_network(self._path())
        edition = trained_with(network)
        features = np.zeros((len(work.captions), len(FEATURES)))
        features[:, : len(MEANING)] = meaning(work, network.extra["bank"], edition)
        features[:, len(MEANING) + 1 :] = well_formedness(work)
        notes: tuple[str, ...] = ()
        facts = {"references": reference_counts(work.captions.references or [])}
        facts |= parts_fact("vectors", TextParts.of(list(places(work.captions)), load_sentence_encoder(ENCODER).fits))
        if self.picture and work.captions.images is not None:
            fit = picture_fit(work, edition)
            seen = ~np.isnan(fit)
            features[seen, len(MEANING)] = (fit - foreseen(features, network.extra["foreseen"]))[seen]
            facts["pictures"] = "all" if seen.all() else str(int(seen.sum()))
            if not seen.all():
                notes = (f"{int((~seen).sum())} captions have no picture that can be read: judged by references alone",)
        return Statistics(network(features)[:, None], Contributions(network, features), notes, facts=facts)


def load_network(path: Path) -> FeatureMLP:
    """A network with these inputs, read again when its file has changed."""
    return _load(path, weights.model_digest(path))


@functools.lru_cache(maxsize=4)
def _load(path: Path, _: str) -> FeatureMLP:
    network = FeatureMLP.load(path)
    if network.features != FEATURES or not {"bank", "foreseen"} <= network.extra.keys():
        raise InputError(f"these weights take {', '.join(network.features)}", where=str(path), remedy="train them anew")
    return network


def trained_with(network: FeatureMLP) -> str:
    """The edition of the embedded encoder that the weights were trained with."""
    return network.about.get("edition", "embedded")


def meaning(work: Workspace, bank: NDArray[np.floating], edition: str = "embedded") -> Floats:
    """The features of `MEANING`, one row per caption; `bank` holds sentence vectors of captions of other pictures."""
    row_of = places(work.captions)
    sentences = load_sentence_encoder(ENCODER).encode(list(row_of), work.progress).astype(np.float64)
    columns = np.zeros((len(work.captions), len(MEANING)))
    for first, vectors in ((0, sentences), (2, in_joint_space(sentences, edition))):
        columns[:, first], columns[:, first + 1] = to_references(vectors, row_of, work.captions)
    columns[:, 4] = Spice().result(work).scores
    own = sorted({row_of[text] for text in work.captions.candidates})
    usual = np.zeros(len(row_of))
    usual[own] = usualness(sentences[own], bank)
    columns[:, 5] = -usual[[row_of[text] for text in work.captions.candidates]]
    return columns


def meaning_identity(bank: NDArray[np.floating], edition: str = "embedded") -> Identity:
    """What the features of `MEANING` depend on besides the captions."""
    from caplens.encoders.embedded import heads_path

    parts = {"encoder": weights.model_digest(ENCODER), "heads": content_digest(heads_path(HEADS, edition))}
    return Identity.of({**parts, "bank": bank, "spice": Spice().identity(), "code": [meaning, to_references]})


def usualness(sentences: Floats, bank: NDArray[np.floating]) -> Floats:
    """Mean cosine to the nearest captions of the bank, which are of other pictures."""
    cosines = sentences @ bank.astype(np.float64).T
    cosines[cosines > SAME] = -1
    count = min(NEIGHBOURS, cosines.shape[1])
    return np.asarray(np.partition(cosines, -count, axis=1)[:, -count:].mean(axis=1))


def in_joint_space(sentences: Floats, edition: str = "embedded") -> Floats:
    """Sentence vectors through the text head of the embedded image-text encoder, at unit length: no picture needed."""
    return unit(_text_head(edition)(sentences.astype(np.float32)))


@functools.cache
def _text_head(edition: str) -> Head | JoinedHeads:
    from caplens.encoders.embedded import heads_path, read_heads

    return read_heads(heads_path(HEADS, edition)).text


def picture_fit(work: Workspace, edition: str = "embedded") -> Floats:
    """Cosine of caption and picture in the embedded encoder's space; NaN where there is no picture."""
    from caplens.metrics.clip_score import ClipScore

    pictures = ClipScore(encoder=edition).seen(work).vectors.astype(np.float64)
    sentences = load_sentence_encoder(ENCODER).encode(work.captions.candidates).astype(np.float64)
    return np.asarray(np.einsum("ij,ij->i", in_joint_space(sentences, edition), unit(pictures)))


def picture_identity(edition: str = "embedded") -> Identity:
    """What the cosine with the picture depends on; not on the encoder itself, which may not be on this machine."""
    from caplens.encoders.embedded import EDITIONS, EmbeddedEncoder, heads_path

    towers = EDITIONS[edition]
    models = [weights.model_digest(name) for name in (*towers.pictures, ENCODER)]
    return Identity.of(
        {
            "models": models,
            "heads": content_digest(heads_path(HEADS, edition)),
            "code": [picture_fit, EmbeddedEncoder, towers],
        }
    )


def foreseen(features: Floats, coefficients: Floats) -> Floats:
    """The picture's cosine that captions with such features of `MEANING` have on average."""
    cosines: Floats = features[:, : len(MEANING)] @ coefficients[:-1] + coefficients[-1]
    return cosines
