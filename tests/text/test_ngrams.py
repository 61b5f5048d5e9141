"""Token numbers: one tokenization per distinct text, and the two ways of splitting that the official code has."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import caplens
from caplens.native._kernels import Candidates, NgramIndex, References, TfIdf, TokenMap, WordRuns
from caplens.text import ngrams
from caplens.text.ngrams import Corpus, ReferenceIndex, tokenizer_name
from caplens.text.words import split_words


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

    assert ".Split@local-" in tokenizer_name(Split())  # another class may have that name
    assert tokenizer_name(Split()) != tokenizer_name(Split())
    assert tokenizer_name(split_words) == "caplens.text.words.split_words"


def test_captions_as_numbers_are_the_captions_as_words() -> None:
    index = ReferenceIndex([["a cat sat", "a cat"], ["the t-shirt dog"]], "whitespace")
    words = ["a", "cat", "sat", "t-shirt", "new", "the"]
    rows = [[0, 1, 2], [], [5, 3, 4, 4]]
    flat = np.array([number for row in rows for number in row])
    groups = np.array([0, 0, 1])
    lengths = np.array([len(row) for row in rows])
    numbers = Candidates(TokenMap(index.kernel, words), flat, lengths, groups)
    texts = Candidates(index.kernel, [" ".join(words[number] for number in row) for row in rows], groups)
    weights = TfIdf(index.ngrams, np.linspace(0.1, 2.0, len(index.ngrams.frequencies())), 3.0)
    ones = np.ones(int(texts.pair_starts()[-1]))
    for a, b in [
        (numbers.bleu_counts(), texts.bleu_counts()),
        (numbers.common_subsequences(), texts.common_subsequences()),
        (numbers.consensus(weights, True, ones), texts.consensus(weights, True, ones)),
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
    with pytest.raises(ValueError, match="one idf per frequency"):
        TfIdf(NgramIndex(references), np.zeros(2), 1.0)
    with pytest.raises(ValueError, match="other references"):
        candidates.consensus(TfIdf(NgramIndex(other), np.zeros(1), 1.0), True, np.ones(1))
    with pytest.raises(ValueError, match="one penalty per pair"):
        candidates.consensus(TfIdf(NgramIndex(references), np.zeros(1), 1.0), True, np.ones(2))
    with pytest.raises(IndexError, match="do not exist"):
        candidates.rows(0, 2)
    with pytest.raises(ValueError, match="other references"):
        candidates.repetitions(WordRuns(other, True))
    with pytest.raises(ValueError, match="damaged"):
        NgramIndex(references, ["a"], *(np.array(part, dtype=np.uint32) for part in ([9], [0], [1, 1])))
    with pytest.raises(ValueError, match="differ in length"):
        NgramIndex(references, ["a"], *(np.array(part, dtype=np.uint32) for part in ([0], [0], [1])))
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
    references = References([["a b c d"], ["a b c d"], ["a b c"]], "whitespace")
    index = NgramIndex(references)
    assert index.frequencies().tolist() == [2, 3]
    weights = TfIdf(index, np.array([0.5, 2.0]), 2.0)  # what stands in two of the images weighs less: d, cd, bcd, abcd
    sums = Candidates(references, ["a b c d e"], np.array([0])).consensus(weights, True, np.ones(1))
    own = [4 + 4 + 4 + 0.25, 4 + 4 + 0.25, 4 + 0.25, 0.25]
    unknown = [4, 4, 4, 4]
    expected = [part / np.sqrt(part * (part + more)) for part, more in zip(own, unknown, strict=True)]
    np.testing.assert_allclose(sums[0], expected)


texts = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=9).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(texts, max_size=3), max_size=6))
def test_document_frequencies_are_those_of_counting_every_ngram(groups: list[list[str]]) -> None:
    counted: Counter[tuple[str, ...]] = Counter()
    for group in groups:
        lists = [text.split() for text in group]
        counted.update({tuple(w[i : i + n]) for w in lists for n in range(1, 5) for i in range(len(w) - n + 1)})
    references = References(groups, "whitespace")
    index = NgramIndex(references)
    names: list[tuple[str, ...]] = [(word,) for word in references.words()]
    for key in index.keys().tolist():
        names.append((*names[key >> 32], *names[key & 0xFFFFFFFF]))
    expected = {gram: count for gram, count in counted.items() if count > 1 or len(gram) == 1}
    if "" in references.words():  # an empty text is one empty token to ROUGE, and no n-gram
        expected["",] = 0
    assert dict(zip(names, index.document_frequency().tolist(), strict=True)) == expected
    assert index.frequencies().tolist() == sorted(set(expected.values()))


def test_parts_of_a_corpus_score_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    captions = [f"a dog {number} runs" if number % 3 else "a cat" for number in range(20)]
    references = [[f"a dog runs {number}", "a cat sits"][: 1 + number % 2] for number in range(20)]
    metrics = ["cider-d", "cider-r", "cider-plain"]
    whole = caplens.evaluate(captions, references, metrics=metrics)
    monkeypatch.setattr(ngrams, "PART", 7)
    for result in caplens.evaluate(captions, references, metrics=metrics):
        np.testing.assert_array_equal(result.scores, whole[result.name].scores)
