"""Captions and references as token numbers, made once per evaluation and shared by every n-gram metric."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from caplens.core.errors import InputError
from caplens.native._kernels import Candidates, NgramIndex, References, WordRuns
from caplens.storage.identity import callable_name
from caplens.text.named_tokenizers import NamedTokenizer
from caplens.text.ptb import tokenize

if TYPE_CHECKING:
    from caplens.core.workspace import Workspace

Tokenizer = str | Callable[[str], Iterable[str]]
"""How text becomes words: "ptb" (what coco-caption does), "whitespace", or a callable that returns strings."""
T = TypeVar("T")
PART = 1 << 17
"""So many captions are scored at a time where each of their references takes memory."""


def tokenizer_name(tokenizer: Tokenizer) -> str:
    """Return what a signature calls a tokenizer; one without a name gets a mark, so that no other is called so.

    >>> tokenizer_name("ptb"), tokenizer_name(str.split)
    ('ptb', 'builtins.str.split')
    """
    if not callable(tokenizer):
        if tokenizer not in ("ptb", "whitespace"):
            raise InputError(f"no tokenizer is called {tokenizer!r}", remedy="take 'ptb', 'whitespace' or a callable")
        return tokenizer
    return tokenizer.label if isinstance(tokenizer, NamedTokenizer) else callable_name(tokenizer)


def split_tokens(texts: Sequence[str], tokenizer: Tokenizer) -> list[list[str]]:
    """Return the words of every text, for metrics that look at few of them; the kernels tokenize by themselves.

    >>> split_tokens(["A dog.", ""], "ptb")
    [['a', 'dog'], []]
    """
    if callable(tokenizer):
        return [list(tokenizer(text)) for text in texts]
    return [text.split() for text in (tokenize(texts) if tokenizer == "ptb" else texts)]


class ReferenceIndex:
    """The references of many images, tokenized, and what metrics derive from them; threads may share it."""

    def __init__(self, references: Iterable[Sequence[str]], tokenizer: Tokenizer = "ptb") -> None:
        self.tokenizer = tokenizer_name(tokenizer)
        self.kernel = References(references, tokenizer)
        self._kept: dict[Hashable, object] = {}
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self.kernel)

    def get_or_compute(self, key: Hashable, make: Callable[[], T]) -> T:
        """What was made under this key, made now if it is the first time."""
        with self._lock:
            if key not in self._kept:
                self._kept[key] = make()
            return self._kept[key]  # type: ignore[return-value]

    @property
    def ngrams(self) -> NgramIndex:
        """The words of the references, and the n-grams of more than one image, n = 2 to 4."""
        return self.get_or_compute("ngrams", lambda: NgramIndex(self.kernel))

    def word_runs(self, whole_tokens: bool) -> WordRuns:
        r"""The words to count: tokens as they stand, or what ``\w+`` finds in them."""
        return self.get_or_compute(("word runs", whole_tokens), lambda: WordRuns(self.kernel, whole_tokens))


class Corpus:
    """Candidates and the references each is judged against. A *pair* is a candidate and one of its references."""

    def __init__(self, references: ReferenceIndex, candidates: Candidates) -> None:
        self.references, self.candidates = references, candidates
        starts = candidates.pair_starts()
        self._repetitions: dict[bool, tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]] = {}
        self.first_pairs: NDArray[np.int64] = starts[:-1]
        self.reference_counts: NDArray[np.int64] = np.diff(starts)

    @classmethod
    def of(cls, candidates: Sequence[str], references: Sequence[Sequence[str]], tokenizer: Tokenizer = "ptb") -> Corpus:
        """Row by row: the first candidate against the first list of references, and so on."""
        index = ReferenceIndex(references, tokenizer)
        return cls(index, Candidates(index.kernel, candidates, np.arange(len(candidates))))

    def parts(self) -> Iterator[Corpus]:
        """The same captions, so many at a time that what is computed for every pair stays small."""
        count = len(self.candidates)
        if count <= PART:
            yield self
            return
        for start in range(0, count, PART):
            yield Corpus(self.references, self.candidates.rows(start, min(start + PART, count)))

    @functools.cached_property
    def bleu_counts(self) -> NDArray[np.float64]:
        """Per candidate the counts that BLEU-1 to BLEU-4 are made of."""
        return self.candidates.bleu_counts()

    def repetitions(self, whole_tokens: bool) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """Per pair the sum of log f(w) of CIDEr-R's eq. 6; per candidate its distinct words and all its words."""
        if whole_tokens not in self._repetitions:
            repetitions = self.candidates.repetitions(self.references.word_runs(whole_tokens))
            self._repetitions[whole_tokens] = repetitions
        return self._repetitions[whole_tokens]

    @property
    def counts_name(self) -> str:
        """How many references the captions have, for signatures: "5", or "4-5"."""
        least, most = int(self.reference_counts.min(initial=2**62)), int(self.reference_counts.max(initial=0))
        return str(most) if least >= most else f"{least}-{most}"

    def per_pair(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Each candidate's value repeated for each of its references."""
        return np.repeat(values, self.reference_counts)


def corpus_of(work: Workspace, tokenizer: Tokenizer) -> Corpus:
    """The workspace's captions as token numbers; a caption without references has no pairs."""

    def make() -> Corpus:
        captions = work.captions
        references = captions.references if captions.references is not None else [()] * len(captions)
        if captions.groups is None:
            return Corpus.of(captions.candidates, references, tokenizer)
        # A picture with several captions is one document of the idf, however many they are.
        place: dict[tuple[str, ...], int] = {}
        rows = [
            place.setdefault((group, *texts), len(place))
            for group, texts in zip(captions.groups, references, strict=True)
        ]
        index = ReferenceIndex([texts for _, *texts in place], tokenizer)
        return Corpus(index, Candidates(index.kernel, captions.candidates, np.array(rows)))

    return work.get_or_compute(("corpus", tokenizer), make)
