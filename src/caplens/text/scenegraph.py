"""What a caption claims, read off its dependency parse: objects, attributes of objects, relations between objects.

The parse has CLEAR labels (spaCy's). It becomes a graph of content words first: a preposition turns into part of a
label (sit -on-> bench), a copula hands its place to what it links, conjuncts share their governor, a pronoun stands for
its antecedent. The propositions are the ones SPICE counts (Anderson et al. 2016, after Schuster et al. 2015); the rules
that find them on these labels are caplens's own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from caplens.text.parse import Parse

Proposition = tuple[str, ...]
"""("dog",), ("dog", "brown") or ("dog", "mat", "sit on"): object; object, attribute; subject, object, relation."""


def word_set(words: str) -> frozenset[str]:
    """The words of a line."""
    return frozenset(words.split())


NOUNS = frozenset({"NN", "NNS", "NNP", "NNPS"})
PLURALS = frozenset({"NNS", "NNPS"})
RELATIVES = frozenset({"that", "which", "who"})
COPULAS = frozenset({"be", "is", "are", "was", "were", "been", "being", "am", "'s", "'re"})
SINGULAR_PRONOUNS = word_set("he him his himself she her hers herself it its itself i me my you your")
LINKED = frozenset({"attr", "acomp", "oprd"})
SUBJECTS = frozenset({"nsubj", "nsubjpass"})
OBJECTS = frozenset({"dobj", "dative"})
BEFORE_NOUN = frozenset({"compound", "amod", "nmod"})
SILENT = frozenset({"prep", "case", "det", "cc", "punct", "aux", "mark"})  # labels that carry no claim
# Prepositions of several words, which a parser takes apart.
PHRASES = frozenset(
    {
        ("across", "from"),
        ("ahead", "of"),
        ("along", "with"),
        ("apart", "from"),
        ("aside", "from"),
        ("away", "from"),
        ("close", "by"),
        ("close", "to"),
        ("far", "from"),
        ("in", "front", "of"),
        ("in", "place", "of"),
        ("inside", "of"),
        ("instead", "of"),
        ("near", "to"),
        ("next", "to"),
        ("off", "of"),
        ("on", "top", "of"),
        ("out", "of"),
        ("outside", "of"),
        ("such", "as"),
        ("together", "with"),
    }
)
# "a couple of dogs", "lots of dogs": the caption is about dogs.
AMOUNTS = word_set(
    "array assortment bit bunch couple dozen form handful heap kind lot mountain multitude number pair range series "
    "sort string ton total type variety version wave"
)
PLURAL_AMOUNTS = word_set("dozens heaps hundreds loads lots many pairs plenty several thousands tons")


class Lexicon(Protocol):
    """What the rules must know about words."""

    def lemma(self, word: str, tag: str) -> str:
        """The base form of a word with this Penn tag."""

    def is_compound(self, first: str, second: str) -> bool:
        """Whether two nouns together are the name of one thing: fire hydrant is, snow hill is not."""


def propositions(parse: Parse, lexicon: Lexicon) -> list[Proposition]:
    """Everything a parsed caption claims, objects last; claims may repeat."""
    return _Reader(_Graph(parse), lexicon).read()


class _Edge(NamedTuple):
    head: int
    label: str
    token: int


class _Graph:
    """Content words of a parse, and the labelled edges between them."""

    def __init__(self, parse: Parse) -> None:
        self.parse = parse
        self.cases: dict[int, str] = {}
        """The preposition of a word that a copula links: in "is on a bench", on for bench."""
        self.amounts: dict[int, int] = {}
        """Noun to its amount: people to lots in "lots of people"."""
        self.edges = list(self._content_edges())
        self._lift_amounts()
        self._skip_copulas()
        self._resolve_relatives()
        self._share_subjects()
        self._share_conjuncts()
        self._resolve_pronouns()

    def under(self, head: int) -> list[_Edge]:
        return [edge for edge in self.edges if edge.head == head]

    def _content_edges(self) -> Iterable[_Edge]:
        words, tags, heads, labels = self.parse
        for token, (head, label) in enumerate(zip(heads, labels, strict=True)):
            if head == token or label in SILENT:
                continue
            if label == "pobj":
                if token == head + 1 and words[head : head + 3] in PHRASES:
                    continue  # the front in "in front of"
                governor, phrase = self._preposition(head)
                if governor is not None:
                    passive = labels[head] == "agent" and "auxpass" in self._labels_under(governor)
                    yield _Edge(governor, "agent" if passive else f"prep {phrase}", token)
            elif label == "dative" and tags[token] in {"IN", "TO"}:
                continue  # to in "gives a bone to the dog"; the dog comes by itself
            else:
                if token < head and (label in BEFORE_NOUN or label == "nummod"):
                    # Noun phrases are flat: in "large city bus stop" everything describes the stop.
                    while labels[head] in BEFORE_NOUN and tags[head] in NOUNS and head < heads[head]:
                        head = heads[head]
                yield _Edge(head, label, token)

    def _labels_under(self, head: int) -> set[str]:
        return {label for label, above in zip(self.parse.labels, self.parse.heads, strict=True) if above == head}

    def _preposition(self, last: int) -> tuple[int | None, str]:
        """What a preposition that ends with this token belongs to, and its words."""
        words, _, heads, labels = self.parse
        start, above = last, heads[last]
        if above == last - 1:
            if last >= 2 and heads[above] == last - 2 and words[last - 2 : last + 1] in PHRASES:
                start = last - 2
            elif words[above : last + 1] in PHRASES:
                start = above
        governor = heads[start]
        if governor == start:
            return None, ""
        while labels[governor] in {"prep", "prt"} and heads[governor] != governor:
            governor = heads[governor]
        return governor, " ".join(words[start : last + 1])

    def _move(self, old: int, new: int, *, outgoing: bool) -> None:
        """Let one word take the place of another."""
        moved = (
            _Edge(
                new if outgoing and edge.head == old else edge.head,
                edge.label,
                new if edge.token == old else edge.token,
            )
            for edge in self.edges
        )
        self.edges = [edge for edge in moved if edge.head != edge.token]

    def _lift_amounts(self) -> None:
        words, tags, heads, _ = self.parse
        for edge in [edge for edge in self.edges if edge.label == "prep of" and tags[edge.token] in NOUNS]:
            amount, noun = edge.head, edge.token
            article = any(heads[token] == amount and words[token] in {"a", "an"} for token in range(amount))
            if words[amount] in PLURAL_AMOUNTS:
                self.amounts[noun] = amount
            elif not (article and words[amount] in AMOUNTS):
                continue
            self.edges = [
                other
                for other in self.edges
                if other != edge and not (other.head == amount and other.label == "amod" and other.token < amount)
            ]
            self._move(amount, noun, outgoing=False)

    def _skip_copulas(self) -> None:
        words, _, _, labels = self.parse
        for verb, word in enumerate(words):
            if word not in COPULAS or labels[verb] in {"aux", "auxpass", "case"}:
                continue
            below = self.under(verb)
            linked = [edge for edge in below if edge.label in LINKED]
            if any(edge.label == "expl" for edge in below):  # "there is a dog": the dog is the subject
                for edge in linked:
                    self.edges[self.edges.index(edge)] = edge._replace(label="nsubj")
                continue
            link = next(iter([*linked, *(edge for edge in below if edge.label.startswith("prep "))]), None)
            if link is None:
                continue
            self.edges.remove(link)
            if link.label.startswith("prep "):
                self.cases[link.token] = link.label[5:]
            self._move(verb, link.token, outgoing=True)
            self.edges.append(_Edge(link.token, "cop", verb))

    def _resolve_relatives(self) -> None:
        words, tags, _, _ = self.parse
        for clause in [edge for edge in self.edges if edge.label == "relcl"]:
            arguments = [e for e in self.under(clause.token) if e.label in SUBJECTS or e.label == "dobj"]
            for edge in arguments:
                if words[edge.token] in RELATIVES or tags[edge.token] in {"WDT", "WP"}:
                    self.edges[self.edges.index(edge)] = edge._replace(token=clause.head)
            if not arguments and tags[clause.token] in {"VBG", "VBN"}:
                self.edges.append(clause._replace(label="acl"))

    def _share_subjects(self) -> None:
        """In "smiles while riding a horse" and "jumps to catch a ball" both verbs have the subject of the first."""
        for above, label, verb in [*self.edges]:
            if label in {"xcomp", "advcl"} and not any(edge.label in SUBJECTS for edge in self.under(verb)):
                self.edges += [edge._replace(head=verb) for edge in self.under(above) if edge.label in SUBJECTS]

    def _share_conjuncts(self) -> None:
        tags = self.parse.tags
        joined = sorted((edge for edge in self.edges if edge.label == "conj"), key=lambda edge: edge.token)
        for first, _, second in joined:
            if tags[first] in NOUNS:  # "a man and a woman riding a horse": both ride
                self.edges += [edge._replace(head=first) for edge in self.under(second) if edge.label == "acl"]
            self.edges += [
                edge._replace(token=second)
                for edge in self.edges
                if edge.token == first and edge.label != "conj" and edge.head != second
            ]
            # "sits and reads a book": both have the subject.
            if tags[second][:1] in {"V", "J"} and not any(edge.label in SUBJECTS for edge in self.under(second)):
                self.edges += [edge._replace(head=second) for edge in self.under(first) if edge.label in SUBJECTS]

    def _resolve_pronouns(self) -> None:
        words, tags, _, _ = self.parse
        for token, tag in enumerate(tags):
            if token and tag.startswith("PRP") and any(edge.token == token for edge in self.edges):
                found = self._first_noun(singular=words[token] in SINGULAR_PRONOUNS)
                if found is not None and found < token:
                    self._move(token, found, outgoing=True)

    def _first_noun(self, singular: bool) -> int | None:
        """The noun nearest to the root, leftmost first (the start of Hobbs's search)."""
        tags = self.parse.tags
        below = {edge.token for edge in self.edges}
        roots = sorted({edge.head for edge in self.edges} - below)
        queue, seen = deque(roots[:1]), set[int]()
        while queue:
            token = queue.popleft()
            if token in seen:
                continue
            seen.add(token)
            if tags[token] in NOUNS and not (singular and tags[token] in PLURALS):
                return token
            queue.extend(sorted(edge.token for edge in self.under(token)))
        return None


class _Reader:
    """Reads the propositions off a graph."""

    def __init__(self, graph: _Graph, lexicon: Lexicon) -> None:
        self.graph, self.lexicon = graph, lexicon
        self.words, self.tags = graph.parse.words, graph.parse.tags
        self.lemmas = [lexicon.lemma(word, tag) for word, tag in zip(self.words, self.tags, strict=True)]
        self.found: list[Proposition] = []

    def claim(self, *tokens: int, relation: str = "") -> None:
        self.found.append((*(self.lemmas[token] for token in tokens), *([relation] if relation else [])))

    def read(self) -> list[Proposition]:
        edges, tags = self.graph.edges, self.tags
        for head in dict.fromkeys(edge.head for edge in edges):
            self._read_clause(head)
        describing: set[int] = set()
        for head, label, token in edges:
            if label in BEFORE_NOUN and token < head and tags[head] in NOUNS and tags[token] in NOUNS:
                describing.add(head)  # is claimed with its attribute
                if self.lexicon.is_compound(self.lemmas[token], self.lemmas[head]):
                    describing.add(token)  # the fire in "fire hydrant" is no object of its own
                self.claim(head, token)
            elif label == "nummod" and token < head and tags[head] in PLURALS:
                self.claim(head, token)
        for noun, amount in self.graph.amounts.items():
            if tags[noun] in PLURALS:
                self.claim(noun, amount)
        for token, tag in enumerate(tags):
            inner = token > 0 and self.words[token - 1 : token + 2] in PHRASES  # the front in "in front of"
            if tag in NOUNS and token not in describing and not inner:
                self.claim(token)
        return self.found

    def _read_clause(self, head: int) -> None:
        edges, tags = self.graph.under(head), self.tags
        subjects = [edge.token for edge in edges if edge.label in SUBJECTS and tags[edge.token] in NOUNS]
        agents = [edge.token for edge in edges if edge.label == "agent" and tags[edge.token] in NOUNS]
        if subjects and any(edge.label == "cop" for edge in edges):
            for subject in subjects:
                self.claim(subject, head, relation=self.graph.cases.get(head, ""))
        elif subjects:
            self._read_verb(subjects, head, alone=self.lemmas[head] != "be" and not agents)
            for agent in agents:  # "chased by a dog": the dog chases
                for subject in subjects:
                    self.claim(agent, subject, relation=self._predicate(head, ""))
        for _, label, token in edges:
            if label == "acl" and tags[token].startswith("V"):
                self._read_verb([head], token, alone=True)
            elif label == "amod":
                self.claim(head, token)
            elif label == "nsubj" and tags[head].startswith("J"):
                self.claim(token, head)
            elif label.startswith("prep ") and tags[head] in NOUNS:
                self.claim(head, token, relation=label[5:])
            elif label == "poss" and tags[head] in NOUNS and tags[token] in NOUNS:
                self.claim(token, head, relation="have")

    def _read_verb(self, subjects: list[int], verb: int, alone: bool) -> None:
        """Relations to the verb's objects; with `alone`, an attribute of the subject where there are none."""
        objects = [
            edge
            for edge in self.graph.under(verb)
            if self.tags[edge.token] in NOUNS and (edge.label in OBJECTS or edge.label.startswith("prep "))
        ]
        for subject in subjects:
            for edge in objects:
                self.claim(subject, edge.token, relation=self._predicate(verb, edge.label))
            if alone and not objects:
                self.claim(subject, verb)

    def _predicate(self, verb: int, label: str) -> str:
        """Verb, particle and preposition: sit down on."""
        particle = next((self.words[edge.token] for edge in self.graph.under(verb) if edge.label == "prt"), "")
        name = "" if self.lemmas[verb] == "be" else self.lemmas[verb]
        preposition = label[5:] if label.startswith("prep ") else ""
        return " ".join(filter(None, (name, particle, preposition))) or "be"
