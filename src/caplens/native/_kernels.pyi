"""Types of the native kernels (src/caplens/native/*.cpp)."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

def log_each(values: NDArray[np.float64]) -> NDArray[np.float64]: ...
def exp_each(values: NDArray[np.float64]) -> NDArray[np.float64]: ...
def kendall_resampled(
    x: NDArray[np.int32], y: NDArray[np.int32], units: NDArray[np.int32], weights: NDArray[np.int32]
) -> NDArray[np.float64]: ...
def kendall_swapped(
    a: NDArray[np.int32],
    b: NDArray[np.int32],
    y: NDArray[np.int32],
    units: NDArray[np.int32],
    masks: NDArray[np.uint8],
) -> NDArray[np.float64]: ...
def parse_arcs(
    features: NDArray[np.float32],
    rows: NDArray[np.int32],
    lengths: NDArray[np.int32],
    padding: NDArray[np.float32],
    bias: NDArray[np.float32],
    upper: NDArray[np.float32],
    upper_bias: NDArray[np.float32],
    kinds: NDArray[np.int32],
) -> NDArray[np.int32]: ...
def ptb_tokenize(captions: list[str]) -> list[str]: ...
def ptb_tokenize_lines(file: str) -> list[str]: ...
def wmd_nearest(
    vectors: NDArray[np.float32],
    starts: NDArray[np.int64],
    words: NDArray[np.int64],
    counts: NDArray[np.int64],
    candidates: NDArray[np.int64],
    pair_starts: NDArray[np.int64],
    references: NDArray[np.int64],
) -> NDArray[np.float64]: ...

class References:
    """The references of every image, tokenized once; never changes, so threads may share it."""

    def __init__(self, groups: Iterable[Iterable[str]], tokenizer: str | Callable[[str], Iterable[str]]) -> None: ...
    def __len__(self) -> int: ...
    def words(self) -> list[str]: ...

class NgramIndex:
    """Words and n-grams with document frequencies, each with an id, words first: those of a table, or those of the
    references that stand in at least so many groups. N-grams of one group weigh what unknown ones weigh."""

    @overload
    def __init__(self, references: References, *, least: int = 2) -> None: ...
    @overload
    def __init__(
        self,
        references: References,
        words: list[str],
        prefixes: NDArray[np.uint32],
        lasts: NDArray[np.uint32],
        frequencies: NDArray[np.uint32],
    ) -> None: ...
    def __len__(self) -> int: ...
    def frequencies(self) -> NDArray[np.uint32]:
        """The different document frequencies, ascending."""
    def document_frequency(self) -> NDArray[np.uint32]: ...
    def keys(self) -> NDArray[np.uint64]: ...

class TfIdf:
    """A weight for every n-gram of an index, one for all others, and the norms of the references' tf-idf vectors."""

    def __init__(self, index: NgramIndex, idf: NDArray[np.float64], unseen: float) -> None:
        """`idf` has one weight for each of the index's `frequencies()`."""
    @property
    def all_zero(self) -> bool:
        """Whether no n-gram of the references or the table weighs more than nothing."""

class WordRuns:
    """The words of the references that CIDEr-R counts: whole tokens, or what \\w+ finds in them."""

    def __init__(self, references: References, whole_tokens: bool) -> None: ...

class TokenMap:
    """What the numbers of a token vocabulary mean."""

    def __init__(self, references: References, words: Iterable[str]) -> None: ...

class Candidates:
    """Captions to judge, each against one group of references; a pair is a candidate and one of its references."""

    @overload
    def __init__(self, references: References, texts: Iterable[str], groups: NDArray[np.int64]) -> None: ...
    @overload
    def __init__(
        self, words: TokenMap, ids: NDArray[np.int64], lengths: NDArray[np.int64], groups: NDArray[np.int64]
    ) -> None: ...
    def __len__(self) -> int: ...
    def rows(self, begin: int, end: int) -> Candidates:
        """Some of these captions, one after the other; they share the tokens."""
    def pair_starts(self) -> NDArray[np.int64]: ...
    def lengths(self) -> NDArray[np.int64]: ...
    def reference_lengths(self) -> NDArray[np.int64]: ...
    def bleu_counts(self) -> NDArray[np.float64]: ...
    def common_subsequences(self) -> NDArray[np.int64]: ...
    def consensus(self, weights: TfIdf, clip: bool, penalties: NDArray[np.float64]) -> NDArray[np.float64]:
        """Per candidate and n = 1..4 the sum over its references of penalty times cosine."""
    def repetitions(self, runs: WordRuns) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]: ...

def meteor_normalize(lines: list[str]) -> list[str]: ...
def english_stem(word: str) -> str: ...

class DamagedIndex(RuntimeError):
    """A file that is no index of this version, or that was changed, cut or crafted: it has to be built again."""

class Meteor:
    """METEOR 1.5's matchers and aligner with the data it is given; never changes, so threads may share it."""

    def __init__(
        self,
        function_words: list[str],
        synonyms: Path | None,
        paraphrases: Path | None,
        stems: dict[str, str] | None = None,
        parameters: tuple[float, ...] | None = None,
    ) -> None: ...
    def score(
        self, captions: list[str], references: list[list[str]]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], int]: ...
    def align(self, caption: str, reference: str) -> list[tuple[int, int, int, int, int]]: ...
    def align_all(self, captions: list[str], references: list[str]) -> list[list[tuple[int, int, int, int, int]]]: ...
    @property
    def synonym_source(self) -> str: ...
    @property
    def paraphrase_source(self) -> str: ...

class Synonyms:
    """The synonym index: WordNet synsets of a word and of its base form."""

    def __init__(self, path: Path) -> None: ...
    def synsets(self, word: str) -> list[int]: ...
    @property
    def source(self) -> str: ...

class ParaphraseBuilder:
    """Collects a paraphrase table from its text and writes the index."""

    def feed(self, chunk: bytes) -> None: ...
    def write(self, path: Path, source: str) -> None: ...
    @property
    def entries(self) -> int: ...

def write_synonyms(
    path: Path, words: list[tuple[str, list[int]]], irregular: list[tuple[str, list[int]]], source: str
) -> None: ...
