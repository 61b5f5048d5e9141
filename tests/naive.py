"""Textbook twins of the n-gram kernels: slow, plain, and written from the formulas alone."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from statistics import fmean

Gram = tuple[str, ...]


def grams(words: Sequence[str], n: int) -> Counter[Gram]:
    """How often each sequence of n words occurs."""
    return Counter(tuple(words[start : start + n]) for start in range(len(words) - n + 1))


def bleu(candidates: Sequence[str], references: Sequence[Sequence[str]], longest: int) -> tuple[list[float], float]:
    """BLEU of each caption and of the corpus, with coco-caption's 1e-15 and 1e-9 and the closest reference length."""
    rows = []
    for candidate, texts in zip(candidates, references, strict=True):
        words = candidate.split()
        closest = min((abs(len(text.split()) - len(words)), len(text.split())) for text in texts)[1]
        row = [len(words), closest]
        for n in range(1, longest + 1):
            most: Counter[Gram] = Counter()
            for text in texts:
                most |= grams(text.split(), n)
            own = grams(words, n)
            row += [sum(own.values()), sum((own & most).values())]
        rows.append(row)

    def score(row: Sequence[int]) -> float:
        product = 1.0
        for n in range(longest):
            product *= (row[3 + 2 * n] + 1e-15) / (row[2 + 2 * n] + 1e-9)
        ratio = (row[0] + 1e-15) / (row[1] + 1e-9)
        return math.pow(product, 1 / longest) * (math.exp(1 - 1 / ratio) if ratio < 1 else 1.0)

    return [score(row) for row in rows], score([sum(column) for column in zip(*rows, strict=True)])


def longest_common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """By the table of all prefixes."""
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, a in enumerate(first, 1):
        for j, b in enumerate(second, 1):
            table[i][j] = table[i - 1][j - 1] + 1 if a == b else max(table[i - 1][j], table[i][j - 1])
    return table[-1][-1]


def rouge_l(candidates: Sequence[str], references: Sequence[Sequence[str]], beta: float = 1.2) -> list[float]:
    """ROUGE-L with the best precision and the best recall over the references."""
    scores = []
    for candidate, texts in zip(candidates, references, strict=True):
        own = candidate.split(" ")
        common = [longest_common_subsequence(own, text.split(" ")) for text in texts]
        precision = max(length / len(own) for length in common)
        recall = max(length / len(text.split(" ")) for length, text in zip(common, texts, strict=True))
        below = recall + beta**2 * precision
        scores.append((1 + beta**2) * precision * recall / below if below else 0.0)
    return scores


def cider(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    kind: str,
    corpus: Sequence[Sequence[str]] | None = None,
    k_r: float = 0.8,
) -> list[float]:
    """cider-d, cider-plain or cider-r (official or paper) with idf from `corpus`, by default the references."""
    corpus = references if corpus is None else corpus
    frequency: Counter[Gram] = Counter()
    for texts in corpus:
        frequency.update({gram for text in texts for n in range(1, 5) for gram in grams(text.split(), n)})

    def weights(words: Sequence[str], n: int) -> dict[Gram, float]:
        return {
            gram: count * (math.log(len(corpus)) - math.log(max(1, frequency[gram])))
            for gram, count in grams(words, n).items()
        }

    def norm(vector: dict[Gram, float]) -> float:
        return math.sqrt(sum(value**2 for value in vector.values()))

    scores = []
    for candidate, texts in zip(candidates, references, strict=True):
        own = candidate.split()
        values = []
        for text in texts:
            other = text.split()
            factor = penalty(own, other, kind, k_r)
            for n in range(1, 5):
                a, b = weights(own, n), weights(other, n)
                if kind == "cider-plain":
                    dot = sum(value * b.get(gram, 0.0) for gram, value in a.items())
                else:
                    dot = sum(min(value, b.get(gram, 0.0)) * b.get(gram, 0.0) for gram, value in a.items())
                size = norm(a) * norm(b)
                values.append(factor * (dot / size if size else 0.0))
        scores.append(10 * fmean(values))
    return scores


def penalty(candidate: Sequence[str], reference: Sequence[str], kind: str, k_r: float) -> float:
    """What a cosine is multiplied with."""
    if kind == "cider-plain":
        return 1.0
    if kind == "cider-d":
        bigrams = [max(0, len(words) - 1) for words in (candidate, reference)]
        return math.exp(-((bigrams[0] - bigrams[1]) ** 2) / (2 * 6.0**2))
    length = math.exp(-(((max(1, len(candidate)) - max(1, len(reference))) / max(1, len(reference))) ** 2))
    official = kind == "cider-r"
    own = Counter(re.findall(r"\w+", " ".join(candidate)) if official else candidate)
    other = Counter(re.findall(r"\w+", " ".join(reference)) if official else reference)
    if not own:
        return 0.0
    factors = [1 / (1 + abs(own[word] - other[word])) if other[word] else 1 / own[word] for word in own]
    root = len(own) if official else sum(own.values())
    return float(math.prod(factors) ** (k_r / root) * length ** (1 - k_r))
