"""The parser against spaCy itself, on a small pipeline made here and on the real one."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caplens.core.errors import InputError
from caplens.storage.weights import find
from caplens.text.parse import LONGEST, SYMBOLS, Parse, Parser, _shape, _string_id

EMBED = {
    "@architectures": "spacy.MultiHashEmbed.v2",
    "width": 16,
    "attrs": ["NORM", "PREFIX", "SUFFIX", "SHAPE", "SPACY", "IS_SPACE"],
    "rows": [200, 50, 100, 100, 20, 20],
    "include_static_vectors": False,
}
ENCODE = {
    "@architectures": "spacy.MaxoutWindowEncoder.v2",
    "width": 16,
    "depth": 4,
    "window_size": 1,
    "maxout_pieces": 3,
}
LISTENER = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16, "upstream": "tok2vec"}
STATE = {
    "@architectures": "spacy.TransitionBasedParser.v2",
    "state_type": "parser",
    "extra_state_tokens": False,
    "hidden_width": 24,
    "maxout_pieces": 2,
    "use_upper": True,
    "nO": None,
    "tok2vec": LISTENER,
}
WORDS = "a man the dog's n't rides Red 2 horses on cop number in t-shirt 1990s quickly and café x".split(" ")  # noqa: SIM905


def random_trees(spacy: Any, vocab: Any, count: int) -> list[Any]:
    """Texts with random heads, crossing arcs among them."""
    draw = random.Random(7)
    docs = []
    for _ in range(count):
        size = draw.randint(1, 12)
        root = draw.randrange(size)
        order = draw.sample(range(size), size)
        order.remove(root)
        heads, placed = [root] * size, [root]
        for token in order:
            heads[token] = draw.choice(placed)
            placed.append(token)
        labels = ["ROOT" if k == root else draw.choice(["nsubj", "dobj", "amod", "prep"]) for k in range(size)]
        words = [draw.choice(WORDS) for _ in range(size)]
        tags = [draw.choice(["NN", "VB", "DT"]) for _ in range(size)]
        docs.append(spacy.tokens.Doc(vocab, words=words, tags=tags, heads=heads, deps=labels))
    return docs


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A small pipeline with random weights."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spacy = pytest.importorskip("spacy")
        from spacy.training import Example

        nlp = spacy.blank("en", config={"training": {"seed": 0}})
        nlp.add_pipe(
            "tok2vec", config={"model": {"@architectures": "spacy.Tok2Vec.v2", "embed": EMBED, "encode": ENCODE}}
        )
        nlp.add_pipe("tagger", config={"model": {"@architectures": "spacy.Tagger.v2", "nO": None, "tok2vec": LISTENER}})
        nlp.add_pipe("parser", config={"model": STATE, "min_action_freq": 1})
        gold = random_trees(spacy, nlp.vocab, 60)
        examples = [Example(spacy.tokens.Doc(nlp.vocab, words=[t.text for t in doc]), doc) for doc in gold]
        spacy.util.fix_random_seed(0)
        nlp.initialize(lambda: examples)
        # spaCy starts its last layers at zero; with random weights every move and tag occurs.
        draw = np.random.default_rng(0)
        last = [nlp.get_pipe("parser").model.get_ref("upper"), nlp.get_pipe("tagger").model.layers[1].layers[0]]
        for layer in last:
            layer.set_param("W", draw.normal(size=layer.get_param("W").shape).astype(np.float32))
        folder = tmp_path_factory.mktemp("pipeline")
        nlp.to_disk(folder)
    return nlp, folder


def by_spacy(nlp: Any, texts: list[list[str]]) -> list[Parse]:
    from spacy.tokens import Doc

    docs = nlp.pipe([Doc(nlp.vocab, words=words) for words in texts])
    return [
        Parse(
            tuple(token.text for token in doc),
            tuple(token.tag_ for token in doc),
            tuple(token.head.i for token in doc),
            tuple(token.dep_ for token in doc),
        )
        for doc in docs
    ]


def test_parses_as_spacy_does(small: tuple[Any, Path]) -> None:
    nlp, folder = small
    draw = random.Random(1)
    texts = [
        [draw.choice([*WORDS, "zebra", "…", "£", "ß" * 120]) for _ in range(draw.randint(1, 30))] for _ in range(300)
    ]
    expected = by_spacy(nlp, texts)
    assert list(Parser(folder).parse(texts)) == expected
    assert len({label for parse in expected for label in parse.labels}) > 3  # the twin has something to disagree on
    assert len({parse.heads for parse in expected}) > 100


def test_the_way_texts_are_batched_changes_nothing(small: tuple[Any, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    parser = Parser(small[1])
    texts = [WORDS[k % 7 : k % 11 + 1] for k in range(40)] + [[]]
    whole = list(parser.parse(texts))
    monkeypatch.setattr("caplens.text.parse.BATCH", 5)
    assert list(parser.parse(texts)) == whole
    assert whole[-1] == Parse((), (), (), ())


def test_the_start_of_a_long_text_is_parsed(small: tuple[Any, Path]) -> None:
    (parsed,) = Parser(small[1]).parse([["dog"] * 5000])
    assert len(parsed.words) == LONGEST


@pytest.mark.shared
def test_the_real_pipeline_parses_captions_as_spacy_does(shared: Path) -> None:
    import json

    folder = find("en_core_web_sm")
    if folder is None:
        pytest.skip("the parser is not here: caplens weights fetch en_core_web_sm")
    spacy = pytest.importorskip("spacy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nlp = spacy.load(folder, exclude=["ner", "lemmatizer", "senter", "attribute_ruler"])
    tokens = json.loads((shared / "golden" / "coco_1k.tokens.json").read_text("utf-8"))
    texts = [text.split() for group in tokens["gts"][:250] for text in group]
    assert list(Parser(folder).parse(texts)) == by_spacy(nlp, texts)


def test_string_ids_and_symbols_are_spacys() -> None:
    strings = pytest.importorskip("spacy.strings")
    symbols = pytest.importorskip("spacy.symbols")
    for text in ("dog", "a", "t-shirts", "naïve", "x" * 50, "12345678"):
        assert _string_id(text) == strings.hash_string(text)
    assert {name: number for name, number in symbols.IDS.items() if name.islower()} == SYMBOLS


def test_shapes_cut_runs_at_four() -> None:
    assert [_shape(word) for word in ("McDonalds", "1990s", "--", "a" * 200)] == ["XxXxxxx", "ddddx", "--", "LONG"]


def test_a_folder_that_is_no_pipeline_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not a spaCy pipeline.*caplens weights fetch"):
        Parser(tmp_path)
