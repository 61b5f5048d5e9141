"""Token numbers: one tokenization per distinct text, and the two ways of splitting that the official code has."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from caplens.native._kernels import Candidates, NgramIndex, References, TfIdf, TokenMap, WordRuns
from caplens.text.ngrams import Corpus, ReferenceIndex, tokenizer_name


def test_every_distinct_text_is_tokenized_once() -> None:
    seen: list[str] = []

    def tokenize(text: str) -> list[str]:
        seen.append(text)
        return text.split()

    shared = ["a cat", "a dog"]
    Corpus.of(["a cat", "x", "x"], [shared, shared, ["a cat", "".join(["a", " dog"])]], tokenize)
    assert seen == ["a cat", "a dog", "a cat", "x"]  # references, then candidates


def test_words_break_at_any_whitespace_and_pieces_only_at_the_space() -> None:
    corpus = Corpus.of(["1\u00a01/2 mile", "", "a  b"], [["1\u00a01/2"], [""], ["a b"]], "whitespace")
    assert corpus.candidates.lengths().tolist() == [3, 0, 2]
    assert corpus.candidates.reference_lengths().tolist() == [2, 0, 2]
    # common subsequence, tokens of the candidate, tokens of the reference: an empty text is one empty token
    assert corpus.candidates.common_subsequences().tolist() == [[1, 2, 1], [1, 1, 1], [2, 3, 2]]


def test_names_of_tokenizers() -> None:
    class Split:
        def __call__(self, text: str) -> list[str]:
            return text.split()

    assert tokenizer_name(Split()).endswith("Split")
    assert tokenizer_name(test_names_of_tokenizers).endswith("test_names_of_tokenizers")


def test_captions_as_numbers_are_the_captions_as_words() -> None:
    index = ReferenceIndex([["a cat sat", "a cat"], ["the t-shirt dog"]], "whitespace")
    words = ["a", "cat", "sat", "t-shirt", "new", "the"]
    rows = [[0, 1, 2], [], [5, 3, 4, 4]]
    flat = np.array([number for row in rows for number in row])
    groups = np.array([0, 0, 1])
    lengths = np.array([len(row) for row in rows])
    numbers = Candidates(TokenMap(index.kernel, words), flat, lengths, groups)
    texts = Candidates(index.kernel, [" ".join(words[number] for number in row) for row in rows], groups)
    weights = TfIdf(index.ngrams, np.linspace(0.1, 2.0, len(index.ngrams)), 3.0)
    for a, b in [
        (numbers.bleu_counts(), texts.bleu_counts()),
        (numbers.common_subsequences(), texts.common_subsequences()),
        (numbers.cosines(weights, True), texts.cosines(weights, True)),
        *zip(numbers.repetitions(index.word_runs(False)), texts.repetitions(index.word_runs(False)), strict=True),
    ]:
        np.testing.assert_array_equal(a, b)


def test_wrong_arguments_raise_and_never_crash() -> None:
    references = References([["a b"]], "whitespace")
    other = References([["a b"]], "whitespace")
    row = np.array([0])
    candidates = Candidates(references, ["a"], row)
    with pytest.raises(IndexError, match="does not exist"):
        Candidates(references, ["a"], np.array([1]))
    with pytest.raises(IndexError, match="does not exist"):
        Candidates(references, ["a"], np.array([-1]))
    with pytest.raises(ValueError, match="one group"):
        Candidates(references, ["a", "b"], row)
    with pytest.raises(IndexError, match="outside the vocabulary"):
        Candidates(TokenMap(references, ["a"]), np.array([1]), np.array([1]), row)
    with pytest.raises(ValueError, match="exceed"):
        Candidates(TokenMap(references, ["a"]), np.array([0]), np.array([2]), row)
    with pytest.raises(ValueError, match="one idf per n-gram"):
        TfIdf(NgramIndex(references), np.zeros(1), 1.0)
    with pytest.raises(ValueError, match="other references"):
        candidates.cosines(TfIdf(NgramIndex(other), np.zeros(3), 1.0), True)
    with pytest.raises(ValueError, match="other references"):
        candidates.repetitions(WordRuns(other, True))
    with pytest.raises(ValueError, match="damaged"):
        NgramIndex(references, ["a"], np.array([9], dtype=np.uint32), np.array([0], dtype=np.uint32))
    with pytest.raises(ValueError, match="tokenizer"):
        References([], "bpe")
    with pytest.raises(TypeError, match="strings"):
        References([[1]], "ptb")  # type: ignore[list-item]
    with pytest.raises(TypeError, match="list of strings"):
        References([["a"]], lambda text: [1])  # type: ignore[list-item]
    with pytest.raises(ZeroDivisionError):
        References([["a"]], lambda text: [str(1 // 0)])


def test_ctrl_c_stops_a_long_kernel() -> None:
    """In a process of its own: test runners ignore the signal in theirs."""
    program = """
import signal, threading
from caplens.native._kernels import NgramIndex, References
signal.signal(signal.SIGINT, signal.default_int_handler)
texts = [f"{number} a dog runs over the green grass" for number in range(300_000)]
threading.Timer(0.05, signal.raise_signal, [signal.SIGINT]).start()
for _ in range(100):
    NgramIndex(References([texts], "ptb"))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "KeyboardInterrupt" in done.stderr
    assert done.returncode != 0


def test_an_ngram_may_weigh_less_than_its_first_words() -> None:
    references = References([["a b c d"]], "whitespace")
    index = NgramIndex(references)
    idf = np.full(len(index), 2.0)
    idf[-1] = 0.5  # only the last n-gram, which is the whole text, differs from an unknown one
    cosines = Candidates(references, ["a b c d e"], np.array([0])).cosines(TfIdf(index, idf, 2.0), True)
    expected = [4 / np.sqrt(4 * 5), 3 / np.sqrt(3 * 4), 2 / np.sqrt(2 * 3), 0.5 / np.sqrt(0.5**2 + 2.0**2)]
    np.testing.assert_allclose(cosines[0], expected)
