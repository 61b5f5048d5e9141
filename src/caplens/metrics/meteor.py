"""METEOR 1.5 as pycocoevalcap runs it (`-l en -norm` on PTB tokens), and for some other languages, without Java.

M. Denkowski, A. Lavie. Meteor Universal: language specific translation evaluation for any target language. WMT 2014.

Words of the caption are aligned with words of one reference: equal words, equal stems, WordNet synonyms, paraphrases.
Precision and recall of the alignment, with function words and inexact matches discounted, give a mean that is lowered
the more pieces the alignment falls into. The best reference counts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import ClassVar

import numpy as np

from caplens.core.captions import CaptionSet
from caplens.core.details import Details, LazyDetails, Status, Word
from caplens.core.errors import InputError, MissingData
from caplens.core.optional import require
from caplens.core.progress import Progress, silent
from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.metrics import _options as options
from caplens.metrics.base import Metric, Resources, Statistics, reference_counts, register
from caplens.native._kernels import Meteor as Kernel
from caplens.native._kernels import meteor_normalize
from caplens.storage import weights
from caplens.storage.sealed import shared_copy
from caplens.text import meteor_data, ptb
from caplens.text.meteor_data import FUNCTION_WORDS, Indexes
from caplens.text.ngrams import Tokenizer, tokenizer_name
from caplens.text.ptb import well_formed

# The parameters of METEOR 1.5: weight of recall, exponent and weight of the penalty, weight of content words, and the
# weights of the modules. Those for English were tuned for ranking; those for languages with stems alone are one set.
ENGLISH = (0.85, 0.2, 0.6, 0.75, 1.0, 0.6, 0.8, 0.6)
UNIVERSAL = (0.75, 1.4, 0.7, 0.5, 1.0, 0.5, 0.0, 0.0)
STEMMERS = {
    "da": "danish",
    "fi": "finnish",
    "hu": "hungarian",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "sv": "swedish",
    "tr": "turkish",
}
"""Languages for which METEOR has stems and no paraphrases, with the Snowball stemmer of each."""
NEED_PARAPHRASES = frozenset({"ar", "cs", "de", "es", "fr", "ru"})
"""Languages that METEOR matches by paraphrases too, from tables that are not in the carrier."""
_FUNCTION_WORDS = frozenset(FUNCTION_WORDS)
MODULES: tuple[Status, ...] = ("exact", "stem", "synonym", "paraphrase")


@register
class Meteor(Metric):
    """METEOR; `data` names a folder with METEOR's files (docs/metrics/meteor.md), else those of `caplens weights`.

    Args:
        language: en, or another of METEOR's: da, fi, hu, it, nl, no, pt, ro, sv, tr by words and stems; every other by
            words alone, as METEOR's own `-l other`.
    """

    name = "meteor"
    needs = frozenset({"references"})
    paper = "Denkowski and Lavie 2014, WMT"
    summary = "alignment with the best reference by words, stems, synonyms and paraphrases"
    english_only = True
    environment: ClassVar[str] = "CAPLENS_METEOR_DATA"

    def __init__(
        self, *, data: str | os.PathLike[str] | None = None, tokenizer: Tokenizer = "ptb", language: str = "en"
    ) -> None:
        self.data = None if data is None else options.path("data", data, "folder")
        self.tokenizer = options.tokenizer(tokenizer)
        self.language = options.matching("language", language, "[a-z]{2,3}", "a code of two or three letters, as pt")
        if self.language in NEED_PARAPHRASES:
            raise MissingData(
                f"METEOR in {self.language} needs a table of paraphrases that comes with METEOR 1.5 and not with the "
                "package that caplens fetches it from: take the other metrics, or -o language=und (words alone)"
            )

    @property
    def parameters(self) -> tuple[float, ...]:
        return ENGLISH if self.language == "en" else UNIVERSAL

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        language = self.language if self.language == "en" or self.language in STEMMERS else "other"
        return (("version", "1.5"), ("language", language), ("tokenizer", tokenizer_name(self.tokenizer)))

    def language_note(self, captions: CaptionSet) -> str | None:
        return super().language_note(captions) if self.language == "en" else None

    def resources(self) -> Resources:
        """The files that the indexes are built from, or are to be; nothing is built for that."""
        folder = self._own_folder()
        if folder is not None:
            return meteor_data.source_digests(folder)
        built, published = meteor_data.built(), weights.model_digest("meteor")
        fetched = built.complete or weights.find("meteor") is not None
        return {
            "synonyms": published if fetched or built.synonyms else "absent",
            "paraphrases": published if fetched or built.paraphrases else "absent",
        }

    def shared_files(self, progress: Progress = silent) -> tuple[Path, ...]:
        indexes = self.indexes(progress)
        return tuple(path for path in (indexes.synonyms, indexes.paraphrases) if path is not None)

    def _own_folder(self) -> Path | None:
        """The folder of data that the user named."""
        chosen = self.data or os.environ.get(self.environment)
        if not chosen:
            return None
        if not Path(chosen).is_dir():
            raise InputError("METEOR's data must be a folder, and this is none", where=os.fspath(chosen))
        return Path(chosen)

    def statistics(self, work: Workspace) -> Statistics:
        """Columns: weighted matches and weighted length of caption and reference, matched words, chunks."""
        references = work.captions.references or []
        captions = self._prepare([line.replace("|||", "") for line in self._tokenize(work.captions.candidates)])
        prepared = self._prepare_references(references)
        if self.language == "en":
            language = Language(self.indexes(work.progress))
            used = [module for module in MODULES if _has(language.indexes, module)]
        else:
            language = Language(Indexes(None, None), self.stems(chain(captions, *prepared)))
            used = ["exact", *(["stem"] if self.language in STEMMERS else [])]
        kernel = language.aligner()
        rows, best, long_captions = kernel.score(captions, prepared)
        facts = {"modules": ",".join(used), **_data_fact(kernel), "references": reference_counts(references)}
        chosen = [texts[number] for texts, number in zip(prepared, best.tolist(), strict=True)]
        absent = [module for module in MODULES if module not in used] if self.language == "en" else []
        notes = _notes(absent, long_captions)
        return Statistics(rows, details=Alignments(language, captions, chosen), notes=notes, facts=facts)

    def stems(self, lines: Iterable[str]) -> dict[str, str]:
        """The stem of every word; none where the language has no stemmer, so that words are compared as they are."""
        if self.language not in STEMMERS:
            return {}
        stem = require("snowballstemmer:stemmer", purpose=f"METEOR in {self.language}")(
            STEMMERS[self.language]
        ).stemWord
        words = dict.fromkeys(chain(*map(words_of, lines)))
        if self.language == "pt":
            return {word: _old_portuguese(word, stem) for word in words}
        return {word: stem(word) for word in words}

    def _prepare(self, lines: Sequence[str]) -> list[str]:
        """Lines as METEOR compares them; it normalizes English ones, and knows no way to normalize the others."""
        return prepare(lines) if self.language == "en" else [well_formed(line).lower() for line in lines]

    def scores(self, rows: Floats) -> Floats:
        alpha, beta, gamma = self.parameters[:3]
        with np.errstate(divide="ignore", invalid="ignore"):
            precision, recall = rows[..., 0] / rows[..., 2], rows[..., 1] / rows[..., 3]
            mean = 1 / ((1 - alpha) / precision + alpha / recall)
            penalty = gamma * (rows[..., 5] / rows[..., 4]) ** beta
            scores = mean * (1 - penalty)
        # Nothing to divide by means nothing matched.
        return np.where(np.isnan(scores), 0.0, np.maximum(scores, 0.0))

    def corpus(self, sums: Floats, count: int) -> Floats:
        return self.scores(sums)

    def _tokenize(self, texts: Sequence[str]) -> Sequence[str]:
        if self.tokenizer == "ptb":
            return ptb.tokenize(texts)
        return [" ".join(self.tokenizer(text)) for text in texts] if callable(self.tokenizer) else texts

    def _prepare_references(self, references: Sequence[Sequence[str]]) -> list[list[str]]:
        """All of them in one go. Three bars end a reference in METEOR's protocol, so they make two of one."""
        lines = iter(self._tokenize([text for texts in references for text in texts]))
        groups = [[part for _ in texts for part in next(lines).split("|||")] for texts in references]
        flat = iter(self._prepare([part for parts in groups for part in parts]))
        return [[next(flat) for _ in parts] for parts in groups]

    def indexes(self, progress: Progress = silent) -> Indexes:
        """The data this metric runs with, as far as it is on this machine."""
        folder = self._own_folder()
        if folder is not None:
            return meteor_data.build(folder, progress, own=True)
        indexes = meteor_data.built()
        if indexes.complete:
            return indexes
        fetched = weights.find("meteor")
        return indexes if fetched is None else meteor_data.build(fetched, progress)


def prepare(lines: Sequence[str]) -> list[str]:
    """Tokenized lines as METEOR compares them: normalized, lower-case.

    >>> prepare(["a man 's t-shirt", "the U.S. flag"])
    ["a man ' s t shirt", 'the us flag']
    """
    return [line.lower() for line in meteor_normalize(list(lines))]


def _old_portuguese(word: str, stem: Callable[[str], str]) -> str:
    """A stem as METEOR's Snowball makes it, which is older: it does not know the endings -ução and -uções."""
    for ending, unknown in (("ução", "uzão"), ("uções", "uzões")):
        if word.endswith(ending):
            stemmed = stem(word.removesuffix(ending) + unknown)
            place = len(word) - len(ending) + 1
            return stemmed[:place] + "ç" + stemmed[place + 1 :]
    return stem(word)


def words_of(line: str) -> list[str]:
    """The words of a prepared line as Java cuts them: fewer characters separate words than in Python.

    >>> words_of("a dog\\x1cruns")
    ['a', 'dog\\x1cruns']
    """
    return re.findall(r"[^ \t\n\r\f]+", line)


def aligner(indexes: Indexes) -> Kernel:
    """METEOR's aligner for English."""
    return Language(indexes).aligner()


@dataclass(frozen=True)
class Language:
    """What words are matched by: in English the indexes, in other languages stems alone."""

    indexes: Indexes
    stems: dict[str, str] | None = None

    def aligner(self) -> Kernel:
        """The kernel; it keeps the indexes that were read last, so nothing is kept here."""
        if self.stems is not None:
            return Kernel([], None, None, self.stems, UNIVERSAL)
        synonyms, paraphrases = (
            path and shared_copy(path) for path in (self.indexes.synonyms, self.indexes.paraphrases)
        )
        return Kernel(FUNCTION_WORDS, synonyms, paraphrases)


def _has(indexes: Indexes, module: str) -> bool:
    needed = {"synonym": indexes.synonyms, "paraphrase": indexes.paraphrases}
    return module not in needed or needed[module] is not None


def _data_fact(kernel: Kernel) -> dict[str, str]:
    """For the signature: which data, where it is not METEOR's own."""
    published = {file.sha256 for file in weights.models()["meteor"].files.values()}
    strange = [sha for sha in (kernel.synonym_source, kernel.paraphrase_source) if sha and sha not in published]
    return {"data": "+".join(sha[:8] for sha in strange)} if strange else {}


def _notes(absent: Sequence[str], long_captions: int) -> tuple[str, ...]:
    notes = []
    if absent:
        notes.append(
            f"ran without its {' and '.join(absent)} module, so the scores are lower than METEOR's: "
            f"{weights.fetch_command('meteor')}"
        )
    if long_captions:
        notes.append(f"the search is not for texts this long: {long_captions} captions were aligned greedily")
    return tuple(notes)


@dataclass(frozen=True)
class Alignments(LazyDetails):
    """What each caption's words were aligned with."""

    language: Language
    captions: list[str]
    references: list[str]
    """The best reference of each caption."""

    def __len__(self) -> int:
        return len(self.captions)

    def of(self, row: int) -> Details:
        return self.of_rows([row])[0]

    def of_rows(self, rows: Sequence[int]) -> list[Details]:
        pairs = [(self.captions[row], self.references[row]) for row in rows]
        alignments = self.language.aligner().align_all([caption for caption, _ in pairs], [text for _, text in pairs])
        return [_explain(*pair, alignment) for pair, alignment in zip(pairs, alignments, strict=True)]


def _explain(caption_line: str, reference_line: str, alignment: Sequence[tuple[int, int, int, int, int]]) -> Details:
    caption, reference = words_of(caption_line), words_of(reference_line)
    words: list[Word] = [_unmatched(word) for word in caption]
    left = dict(enumerate(reference))
    for module, start, length, other, other_length in alignment:
        match = " ".join(reference[other : other + other_length])
        for position in range(start, start + length):
            words[position] = {"text": caption[position], "status": MODULES[module]}
            if module:
                words[position]["match"] = match
        for position in range(other, other + other_length):
            del left[position]
    return {
        "words": words,
        "missing": [{"text": word} for word in left.values() if word not in _FUNCTION_WORDS],
        "note": f"closest reference: {' '.join(reference)}",
    }


def _unmatched(word: str) -> Word:
    return {"text": word} if word in _FUNCTION_WORDS else {"text": word, "status": "wrong"}
