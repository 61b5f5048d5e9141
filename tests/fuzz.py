"""Throw text at the kernels until they break: `python tests/fuzz.py 200000`. `make sanitize` runs it under a sanitizer.

Nothing is compared here; the twins do that. What is asked: no crash, no hang, finite numbers, right shapes.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

import numpy as np

from caplens.metrics.meteor import prepare, words_of
from caplens.native._kernels import (
    Candidates,
    Meteor,
    NgramIndex,
    ParaphraseBuilder,
    References,
    TfIdf,
    TokenMap,
    WordRuns,
    parse_arcs,
    ptb_tokenize,
    wmd_nearest,
    write_synonyms,
)
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
    """Words that tokenizers stumble over, random code points, very long lines."""
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
    with tempfile.TemporaryDirectory() as folder:
        meteor = small_meteor(draw, Path(folder))
    while texts > 0:
        groups = [[nasty_text(draw) for _ in range(draw.randrange(6))] for _ in range(draw.randrange(1, 40))]
        captions = [nasty_text(draw) for _ in range(draw.randrange(60))]
        # Captions like their references, or nothing would ever match.
        captions += [draw.choice(texts) for texts in groups if texts]
        rows = np.array([draw.randrange(len(groups)) for _ in captions], dtype=np.int64)
        texts -= sum(map(len, groups)) + len(captions)

        assert len(ptb_tokenize([well_formed(text) for text in captions])) == len(captions)
        tokenizer = draw.choice(["ptb", "whitespace"])
        references = References(groups, tokenizer)
        run_kernels(
            references, Candidates(references, captions, rows), groups if draw.random() < 0.3 else None, tokenizer
        )
        words = [nasty_text(draw).encode("utf-8", "replace").decode() for _ in range(draw.randrange(1, 20))]
        lengths = np.array([draw.randrange(12) for _ in rows], dtype=np.int64)
        numbers = np.array([draw.randrange(len(words)) for _ in range(lengths.sum())], dtype=np.int64)
        run_kernels(references, Candidates(TokenMap(references, words), numbers, lengths, rows), None, tokenizer)
        run_meteor(meteor, captions, [groups[row] for row in rows])
        run_wmd(draw)
        run_parser(draw)


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
        index = NgramIndex(references, table.words, table.prefixes, table.lasts, table.frequencies)
    weights = TfIdf(index, np.linspace(0, 9, len(index.frequencies())), 10.0)
    for clip in (False, True):
        sums = candidates.consensus(weights, clip, np.ones(pairs))
        assert sums.shape == (count, 4)
        assert np.isfinite(sums).all()
    logs, distinct, total = candidates.repetitions(WordRuns(references, clip))
    assert np.isfinite(logs).all()
    assert (distinct <= total).all()


def small_meteor(draw: random.Random, folder: Path) -> Meteor:
    """METEOR with synonyms and paraphrases among the pieces, so that every module finds something."""
    words = sorted({word for line in prepare([well_formed(piece) for piece in PIECES]) for word in words_of(line)})
    synsets = [(word, sorted(draw.sample(range(9), 2))) for word in words]
    write_synonyms(folder / "synonyms", synsets, [("dogs", [1])], "fuzz")
    builder = ParaphraseBuilder()
    for _ in range(400):
        source, target = ([draw.choice(words) for _ in range(draw.randrange(1, 4))] for _ in range(2))
        builder.feed(f"0.5\n{' '.join(source)}\n{' '.join(target)}\n".encode())
    builder.write(folder / "paraphrases", "fuzz")
    return Meteor(words[::7], folder / "synonyms", folder / "paraphrases")


def run_meteor(meteor: Meteor, captions: list[str], groups: list[list[str]]) -> None:
    """Normalize, align, count; every match must lie inside both texts and no word be matched twice."""
    captions = prepare([well_formed(text) for text in captions])
    prepared = [prepare([well_formed(text) for text in texts]) for texts in groups]
    rows, best, _ = meteor.score(captions, prepared)
    assert np.isfinite(rows).all()
    for caption, references, chosen in zip(captions[:4], prepared, best, strict=False):
        if not references:
            continue
        matches = meteor.align(caption, references[chosen])
        own = [place for _, start, length, _, _ in matches for place in range(start, start + length)]
        other = [place for _, _, _, start, length in matches for place in range(start, start + length)]
        assert len(own) == len({*own} & {*range(len(words_of(caption)))})
        assert len(other) == len({*other} & {*range(len(words_of(references[chosen])))})


def run_wmd(draw: random.Random) -> None:
    """Bags of words, empty ones and equal vectors among them."""
    random_numbers = np.random.default_rng(draw.randrange(2**32))
    known = draw.randrange(1, 40)
    vectors = random_numbers.choice([-1.0, 0.0, 0.5, 1e30], (known, draw.randrange(1, 6))).astype(np.float32)
    bags = [sorted(draw.sample(range(known), draw.randrange(min(known, 25)))) for _ in range(30)]
    sizes = [draw.randrange(6) for _ in bags]
    distances = wmd_nearest(
        vectors,
        np.cumsum([0, *map(len, bags)]),
        np.array([word for bag in bags for word in bag], dtype=np.int64),
        random_numbers.choice([1, 2, 10**6], sum(map(len, bags))),
        np.arange(len(bags)),
        np.cumsum([0, *sizes]),
        random_numbers.integers(0, len(bags), sum(sizes)),
    )
    assert (distances >= 0).all()


def run_parser(draw: random.Random) -> None:
    """A parser with a random network must end, whatever it does."""
    random_numbers = np.random.default_rng(draw.randrange(2**32))
    hidden, labels, tokens = draw.randrange(1, 6), draw.randrange(1, 12), draw.randrange(1, 9)

    def floats(*shape: int) -> np.ndarray:
        return random_numbers.normal(size=shape).astype(np.float32)

    lengths = np.array([draw.choice([0, 1, 2, 3, 7, 30]) for _ in range(20)], dtype=np.int32)
    arcs = parse_arcs(
        floats(tokens, 16 * hidden),
        random_numbers.integers(0, tokens, lengths.sum()).astype(np.int32),
        lengths,
        floats(16 * hidden),
        floats(2 * hidden),
        floats(labels, hidden),
        floats(labels),
        random_numbers.integers(0, 5, labels).astype(np.int32),
    )
    assert (arcs[:, 0] < np.repeat(lengths, lengths)).all()
    assert ((arcs[:, 0] < 0) == (arcs[:, 1] < 0)).all()


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    fuzz(wanted)
    print(f"{wanted:,} texts, no crash")
