"""Throw text at the kernels until they break: `python tests/fuzz.py 200000`. `make sanitize` runs it under a sanitizer.

Nothing is compared here; the twins do that. What is asked: no crash, no hang, finite numbers, right shapes.
"""

from __future__ import annotations

import random
import sys

import numpy as np

from caplens.native._kernels import Candidates, NgramIndex, References, TfIdf, TokenMap, WordRuns, ptb_tokenise
from caplens.text.idf import build_idf

PIECES = [
    *[
        "a",
        "the",
        "dog's",
        "can't",
        "U.S.",
        "St.",
        "Mr.",
        "$5.00",
        "1/2",
        "1\xa01/2",
        "3-year-old",
        "http://a.b/c?d=e&f",
        "#tag",
        "@you",
        "...",
        "--",
        "-LRB-",
        "``",
        "''",
        "(",
        ")",
        "[",
        "]",
        "&",
        "&amp;",
        ":-)",
    ],
    *(
        "\u00a0",
        "\u2003",
        "\u3000",
        "\x00",
        "\x1c",
        "\x85",
        "\u200b",
        "\u2028",
        "\r",
        "\n",
        "\t",
        "é",
        "ß",
        "İ",
        "ﬁ",
        "日本",
        "🐕",
        "👩\u200d🚀",
        "½",
        "€",
        "\ufffd",
    ),
    *(
        "\ud800",
        "\udfff",
        "\U0010ffff",
        "e\u0301",
        "\u202e",
        "“",
        "”",
        "‘",
        "’",
        "—",
        "…",
        "gonna",
        "cannot",
        "'tis",
        "o'clock",
    ),
]


def nasty_text(draw: random.Random) -> str:
    """Words that tokenisers stumble over, random code points, very long lines."""
    kind = draw.random()
    if kind < 0.05:
        return ""
    if kind < 0.15:
        return "".join(chr(draw.randrange(0x110000)) for _ in range(draw.randrange(40)))
    if kind < 0.25:
        return "".join(chr(draw.randrange(128)) for _ in range(draw.randrange(60)))
    count = draw.randrange(2000) if kind > 0.995 else draw.randrange(16)
    return draw.choice(["", " ", " ", " "]).join(draw.choice(PIECES) for _ in range(count))


def well_formed(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def fuzz(texts: int, seed: int = 0) -> None:
    """Run every text kernel on so many texts."""
    draw = random.Random(seed)
    while texts > 0:
        groups = [[nasty_text(draw) for _ in range(draw.randrange(6))] for _ in range(draw.randrange(1, 40))]
        captions = [nasty_text(draw) for _ in range(draw.randrange(60))]
        # Captions like their references, or nothing would ever match.
        captions += [draw.choice(texts) for texts in groups if texts]
        rows = np.array([draw.randrange(len(groups)) for _ in captions], dtype=np.int64)
        texts -= sum(map(len, groups)) + len(captions)

        assert len(ptb_tokenise([well_formed(text) for text in captions])) == len(captions)
        tokenizer = draw.choice(["ptb", "whitespace"])
        references = References(groups, tokenizer)
        run_kernels(
            references, Candidates(references, captions, rows), groups if draw.random() < 0.3 else None, tokenizer
        )
        words = [nasty_text(draw).encode("utf-8", "replace").decode() for _ in range(draw.randrange(1, 20))]
        lengths = np.array([draw.randrange(12) for _ in rows], dtype=np.int64)
        numbers = np.array([draw.randrange(len(words)) for _ in range(lengths.sum())], dtype=np.int64)
        run_kernels(references, Candidates(TokenMap(references, words), numbers, lengths, rows), None, tokenizer)


def run_kernels(references: References, candidates: Candidates, corpus: list[list[str]] | None, tokenizer: str) -> None:
    """Every loop over pairs, with idf of the references or of a table."""
    count, pairs = len(candidates), int(candidates.pair_starts()[-1])
    assert candidates.bleu_counts().shape == (count, 10)
    common = candidates.common_subsequences()
    assert (common[:, 0] <= common[:, 1:].min(axis=1)).all()
    if corpus is None:
        index = NgramIndex(references)
        assert index.document_frequency().max(initial=0) <= len(references)
    else:
        table = build_idf(corpus, tokenizer)
        index = NgramIndex(references, table.words, table.prefixes, table.lasts)
    weights = TfIdf(index, np.linspace(0, 9, len(index)), 10.0)
    for clip in (False, True):
        cosines = candidates.cosines(weights, clip)
        assert cosines.shape == (pairs, 4)
        assert np.isfinite(cosines).all()
    logs, distinct, total = candidates.repetitions(WordRuns(references, clip))
    assert np.isfinite(logs).all()
    assert (distinct <= total).all()


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    fuzz(wanted)
    print(f"{wanted:,} texts, no crash")
