"""SPICE: do the caption and the references claim the same objects, attributes and relations?

P. Anderson, B. Fernando, M. Johnson, S. Gould. SPICE: semantic propositional image caption evaluation. ECCV 2016.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from caplens.core.details import Details
from caplens.core.optional import check
from caplens.core.workspace import Workspace
from caplens.metrics import _options as options
from caplens.metrics.base import Metric, Resources, Statistics, reference_counts, register
from caplens.storage import weights
from caplens.storage.identity import Identity
from caplens.text.concepts import Claim, SceneGraph, matches
from caplens.text.parse import LONGEST
from caplens.text.proposition_store import PropositionStore, proposition_store
from caplens.text.ptb import tokenize
from caplens.text.scenegraph import word_set
from caplens.text.sentences import TextParts
from caplens.text.spice_jar import run_jar
from caplens.text.wordnet import WORDNET

KINDS = {1: "object", 2: "attribute", 3: "relation"}
COLOURS = word_set(
    "beige black blue brown cream dark gray green grey light maroon orange pink purple red violet white yellow"
)
COUNTS = word_set("one two three four five six seven eight nine ten")
SIZES = word_set(
    "baby big broad bulky chunky compact enormous fat giant gigantic grand great heavy huge large little massive mini "
    "miniature narrow petite short skinny slender slim small stout tall thick thin tiny towering vast wide"
)
ADJECTIVES = {"Color": COLOURS, "Count": COUNTS, "Size": SIZES}
CATEGORIES = ("Object", "Attribute", "Relation", *ADJECTIVES)


@register
class Spice(Metric):
    """F1 between the scene graph of the caption and the merged scene graph of its references.

    Args:
        parser: a parser by name (`caplens weights list`) or the folder of a spaCy pipeline.
        backend: "java" runs the original program, `jar`, in at most `memory` and for at most `timeout` seconds.
    """

    name = "spice"
    needs = frozenset({"references"})
    paper = "Anderson et al. 2016, ECCV"
    summary = "objects, attributes and relations shared with the references"
    english_only = True

    def __init__(
        self,
        *,
        parser: str | os.PathLike[str] = "en_core_web_md",
        backend: Literal["caplens", "java"] = "caplens",
        jar: str | os.PathLike[str] | None = None,
        timeout: float = 3600,
        memory: str = "8G",
    ) -> None:
        self.parser = options.path("parser", parser, "name or a folder of a parser")
        self.backend = options.choice("backend", backend, ("caplens", "java"))
        self.jar = None if jar is None else options.path("jar", jar, "path of spice-1.0.jar")
        self.timeout = options.number("timeout", timeout, low=0, above=True)
        self.memory = options.matching("memory", memory, r"[1-9][0-9]*[kKmMgG]", "an amount of memory such as 8G")
        self._store: tuple[Resources, PropositionStore] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_store": None}  # a copy finds its parser again

    def proposition_store(self) -> PropositionStore:
        """The parser with what it has parsed so far, found at the first call and when its files have changed."""
        resources = self.resources()
        if self._store is None or self._store[0] != resources:
            check("msgpack", purpose="SPICE")
            named = [name for name in (os.fspath(self.parser), WORDNET) if name in weights.models()]
            weights.check(*named, purpose="SPICE")
            parser, wordnet = weights.require(self.parser), weights.require(WORDNET)
            self._store = resources, proposition_store(parser, wordnet, Identity.of(resources).digest)
        return self._store[1]

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        if self.backend == "java":
            return (("backend", "java"),)
        return (("parser", os.path.basename(os.fspath(self.parser))), ("rules", self.proposition_store().fingerprint))

    def resources(self) -> Resources:
        if self.backend == "caplens":
            return {"parser": weights.model_digest(self.parser), "wordnet": weights.model_digest(WORDNET)}
        if self.jar is None:
            return {}
        return {"jar": weights.model_digest(self.jar), "libraries": weights.model_digest(Path(self.jar).parent / "lib")}

    def statistics(self, work: Workspace) -> Statistics:
        captions = work.captions
        references = captions.references or []
        flat = [*captions.candidates, *(text for texts in references for text in texts)]
        facts = {"references": reference_counts(references)}
        if self.backend == "java":
            texts = iter(tokenize(flat))
            candidates = [next(texts) for _ in captions.candidates]
            groups = [tuple(next(texts) for _ in row) for row in references]
            answers = run_jar(self.jar, candidates, groups, timeout=self.timeout, memory=self.memory)
            details = [_jar_details(answer) for answer in answers]
            scores = [float(answer["scores"]["All"]["f"]) for answer in answers]
        else:
            parts = parsed_parts(flat)
            scores, details = self._score(parts, references, work)
            facts |= claims_fact(parts)
        return Statistics(
            np.array(scores, dtype=np.float64).reshape(-1, 1),
            details=details,
            facts=facts,
        )

    def _score(
        self, parts: dict[str, tuple[str, ...]], references: list[list[str]], work: Workspace
    ) -> tuple[list[float], list[Details]]:
        store = self.proposition_store()
        parsed = store.of(
            [part for tokenized in parts.values() for part in tokenized],
            lambda done, total: work.progress("parsing captions", done, total),
        )
        synsets = store.wordnet.synsets
        graphs: dict[tuple[str, ...], list[Claim]] = {}

        def graph(texts: tuple[str, ...]) -> list[Claim]:
            if texts not in graphs:
                graphs[texts] = SceneGraph((claim for text in texts for claim in parsed[text]), synsets).claims()
            return graphs[texts]

        scores, details = [], []
        for candidate, texts in zip(work.captions.candidates, references, strict=True):
            mine, theirs = graph(parts[candidate]), graph(tuple(part for text in texts for part in parts[text]))
            matched = matches(mine, theirs)
            scores.append(f_score(sum(matched), len(mine), len(theirs)) or 0.0)
            details.append(_details(mine, theirs, matched))
        return scores, details


def parsed_parts(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return every text as the parser reads it: tokenized, and in sentences where it is too long to be read whole."""

    def fits(text: str) -> bool:
        return len(text) <= LONGEST or len(tokenize([text])[0].split()) <= LONGEST

    parts = TextParts.of(distinct := list(dict.fromkeys(texts)), fits)
    tokenized = tokenize(parts.texts)
    ranges = zip(distinct, parts.starts, parts.ends, strict=True)
    return {text: tuple(tokenized[start:end]) for text, start, end in ranges}


def claims_fact(parts: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """Return what the signature says where some texts were parsed sentence by sentence."""
    return {"sentences": "claims"} if any(len(tokenized) > 1 for tokenized in parts.values()) else {}


def f_score(matched: int, in_caption: int, in_references: int) -> float | None:
    """F1 of precision and recall; None where the references claim nothing.

    >>> f_score(2, 4, 6)
    0.4
    """
    return 2 * matched / (in_caption + in_references) if in_references else None


def categories(claim: Claim) -> list[str]:
    """The categories a claim counts in; colours, counts and sizes are attributes too."""
    kind = KINDS[len(claim.concepts)].capitalize()
    if kind != "Attribute":
        return [kind]
    return [kind, *(name for name, words in ADJECTIVES.items() if not words.isdisjoint(claim.concepts[1].words))]


def _details(mine: list[Claim], theirs: list[Claim], matched_flags: list[bool]) -> Details:
    counts = {name: [0, 0, 0] for name in CATEGORIES}
    for claim, matched in zip(mine, matched_flags, strict=True):
        for name in categories(claim):
            counts[name][0] += matched
            counts[name][1] += 1
    for claim in theirs:
        for name in categories(claim):
            counts[name][2] += 1
    objects = [claim.concepts[0] for claim in mine if len(claim.concepts) == 1]
    return {
        "tuples": [
            {"text": claim.text, "status": "right" if matched else "wrong", "kind": KINDS[len(claim.concepts)]}
            for claim, matched in zip(mine, matched_flags, strict=True)
        ],
        "missing": [
            {"text": str(claim.concepts[0])}
            for claim in theirs
            if len(claim.concepts) == 1 and not any(claim.concepts[0].resembles(own) for own in objects)
        ],
        "categories": {name: f_score(*numbers) for name, numbers in counts.items()},
    }


def _jar_details(answer: dict[str, Any]) -> Details:
    scores = {"Count" if name == "Cardinality" else name: score["f"] for name, score in answer["scores"].items()}
    return {
        "tuples": [
            {
                "text": entry["tuple"],
                "status": "right" if entry["truth_value"] else "wrong",
                "kind": KINDS[len(entry["tuple"])],
            }
            for entry in answer.get("test_tuples", [])
        ],
        "missing": [
            {"text": entry["tuple"][0]}
            for entry in answer.get("ref_tuples", [])
            if len(entry["tuple"]) == 1 and not entry["truth_value"]
        ],
        "categories": {name: scores.get(name) for name in CATEGORIES},
    }
