"""Propositions read off hand-made parses."""

from __future__ import annotations

import pytest

from caplens.text.parse import Parse
from caplens.text.scenegraph import propositions

LEMMAS = {
    "dogs": "dog", "riding": "ride", "sits": "sit", "is": "be", "are": "be", "smiling": "smile", "reads": "read",
    "chased": "chase", "boats": "boat", "holds": "hold", "parked": "park", "men": "man", "giving": "give",
}  # fmt: skip


class Words:
    """A lexicon of a few words."""

    def lemma(self, word: str, tag: str) -> str:
        return LEMMAS.get(word, word)

    def is_compound(self, first: str, second: str) -> bool:
        return (first, second) == ("tennis", "court")


def parse(lines: str) -> Parse:
    """One token per word of the text: word/TAG/head/label, heads counted from 1, 0 for the root."""
    tokens = [token.rsplit("/", 3) for token in lines.split()]
    heads = [int(head) - 1 if int(head) else place for place, (_, _, head, _) in enumerate(tokens)]
    return Parse(
        tuple(token[0] for token in tokens),
        tuple(token[1] for token in tokens),
        tuple(heads),
        tuple(token[3] for token in tokens),
    )


CASES = [
    # a man riding a brown horse
    (
        "a/DT/2/det man/NN/0/ROOT riding/VBG/2/acl a/DT/6/det brown/JJ/6/amod horse/NN/3/dobj",
        {("man",), ("horse",), ("horse", "brown"), ("man", "horse", "ride")},
    ),
    # two dogs sits on top of a tennis court
    (
        "two/CD/2/nummod dogs/NNS/3/nsubj sits/VBZ/0/ROOT on/IN/3/prep top/NN/4/pobj of/IN/5/prep a/DT/9/det "
        "tennis/NN/9/compound court/NN/6/pobj",
        {("dog", "two"), ("dog",), ("court", "tennis"), ("dog", "court", "sit on top of")},
    ),
    # a man is on a bench
    (
        "a/DT/2/det man/NN/3/nsubj is/VBZ/0/ROOT on/IN/3/prep a/DT/6/det bench/NN/4/pobj",
        {("man",), ("bench",), ("man", "bench", "on")},
    ),
    # there is a dog on grass
    (
        "there/EX/2/expl is/VBZ/0/ROOT a/DT/4/det dog/NN/2/attr on/IN/2/prep grass/NN/5/pobj",
        {("dog",), ("grass",), ("dog", "grass", "on")},
    ),
    # the dog is happy
    ("the/DT/2/det dog/NN/3/nsubj is/VBZ/0/ROOT happy/JJ/3/acomp", {("dog",), ("dog", "happy")}),
    # a woman is smiling
    ("a/DT/2/det woman/NN/4/nsubj is/VBZ/4/aux smiling/VBG/0/ROOT", {("woman",), ("woman", "smile")}),
    # a man who sits down
    (
        "a/DT/2/det man/NN/0/ROOT who/WP/4/nsubj sits/VBZ/2/relcl down/RP/4/prt",
        {("man",), ("man", "sit")},
    ),
    # a man sits and reads a book
    (
        "a/DT/2/det man/NN/3/nsubj sits/VBZ/0/ROOT and/CC/3/cc reads/VBZ/3/conj a/DT/7/det book/NN/5/dobj",
        {("man",), ("man", "sit"), ("book",), ("man", "book", "read")},
    ),
    # a room with a chair and a table
    (
        "a/DT/2/det room/NN/0/ROOT with/IN/2/prep a/DT/5/det chair/NN/3/pobj and/CC/5/cc a/DT/8/det table/NN/5/conj",
        {("room",), ("chair",), ("table",), ("room", "chair", "with"), ("room", "table", "with")},
    ),
    # a large number of small boats
    (
        "a/DT/3/det large/JJ/3/amod number/NN/0/ROOT of/IN/3/prep small/JJ/6/amod boats/NNS/4/pobj",
        {("number",), ("boat",), ("boat", "small")},
    ),
    # a man holds his dog
    (
        "a/DT/2/det man/NN/3/nsubj holds/VBZ/0/ROOT his/PRP$/5/poss dog/NN/3/dobj",
        {("man",), ("dog",), ("man", "dog", "hold"), ("man", "dog", "have")},
    ),
    # a cat is chased by a dog
    (
        "a/DT/2/det cat/NN/4/nsubjpass is/VBZ/4/auxpass chased/VBN/0/ROOT by/IN/4/agent a/DT/7/det dog/NN/5/pobj",
        {("cat",), ("dog",), ("dog", "cat", "chase")},
    ),
    # a cat chased by a dog
    (
        "a/DT/2/det cat/NN/0/ROOT chased/VBN/2/acl by/IN/3/agent a/DT/6/det dog/NN/4/pobj",
        {("cat",), ("dog",), ("cat", "dog", "chase by")},
    ),
    # lots of dogs
    ("lots/NNS/0/ROOT of/IN/1/prep dogs/NNS/2/pobj", {("lots",), ("dog",), ("dog", "lots")}),
    # a dog smiling
    ("a/DT/2/det dog/NN/0/ROOT smiling/VBG/2/acl", {("dog",), ("dog", "smile")}),
    # a bench is covered in snow
    (
        "a/DT/2/det bench/NN/4/nsubjpass is/VBZ/4/auxpass covered/VBN/0/ROOT in/IN/4/prep snow/NN/5/pobj",
        {("bench",), ("snow",), ("bench", "snow", "covered in")},
    ),
    # a man is smiling while riding a horse
    (
        "a/DT/2/det man/NN/4/nsubj is/VBZ/4/aux smiling/VBG/0/ROOT while/IN/6/mark riding/VBG/4/advcl a/DT/8/det "
        "horse/NN/6/dobj",
        {("man",), ("man", "smile"), ("horse",), ("man", "horse", "ride")},
    ),
    # a man and a woman riding a horse
    (
        "a/DT/2/det man/NN/0/ROOT and/CC/2/cc a/DT/5/det woman/NN/2/conj riding/VBG/5/acl a/DT/8/det horse/NN/6/dobj",
        {("man",), ("woman",), ("horse",), ("man", "horse", "ride"), ("woman", "horse", "ride")},
    ),
    # public transit bus parked next to men
    (
        "public/JJ/2/amod transit/NN/3/compound bus/NN/0/ROOT parked/VBN/3/acl next/RB/4/advmod to/IN/5/prep "
        "men/NNS/6/pobj",
        {("bus", "public"), ("bus", "transit"), ("transit",), ("man",), ("bus", "man", "park next to")},
    ),
    # a man giving a dog to a woman
    (
        "a/DT/2/det man/NN/0/ROOT giving/VBG/2/acl a/DT/5/det dog/NN/3/dobj to/IN/3/dative a/DT/8/det woman/NN/6/pobj",
        {("man",), ("dog",), ("woman",), ("man", "dog", "give"), ("man", "woman", "give to")},
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "expected"), CASES, ids=[" ".join(t.split("/")[0] for t in c[0].split()) for c in CASES]
)
def test_what_a_caption_claims(lines: str, expected: set[tuple[str, ...]]) -> None:
    assert set(propositions(parse(lines), Words())) == expected


def test_nothing_claims_nothing() -> None:
    assert propositions(Parse((), (), (), ()), Words()) == []
