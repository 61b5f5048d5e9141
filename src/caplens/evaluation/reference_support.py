"""Which words of a caption its references support, and what they say that it does not.

METEOR's alignment with every reference decides; then WordNet, where METEOR has no pair: a word whose usual sense is a
sense of the other, or a kind of it (a puppy is a dog). SPICE's scene graph adds which attributes went to the wrong
object. Each part is used where its data is on this machine; with none of it, equal words and equal stems are left.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from caplens.core.captions import CaptionSet
from caplens.core.details import RIGHT, AnyDetails, Details, LazyDetails, Missing, Status, Word, read_details
from caplens.metrics.meteor import MODULES, Meteor, aligner, prepare, words_of
from caplens.native._kernels import Synonyms, english_stem
from caplens.storage import weights
from caplens.text import words as caption_words
from caplens.text.language import looks_english
from caplens.text.lexicon import MOST_WORDS, open_wordnet
from caplens.text.ptb import tokenize
from caplens.text.stopwords import NEVER_WRONG
from caplens.text.wordnet import WORDNET

PERSONS = frozenset({"people", "persons", "folks", "someone", "somebody", "crowd"})
"""Words that WordNet does not count as persons."""
PARAPHRASE = MODULES.index("paraphrase")


class Relation(NamedTuple):
    """How a word is supported by another; `rank` orders relations, the closest first."""

    rank: int
    status: Status
    match: str
    note: str = ""
    loose: bool = False
    """A synonym in some sense, which may not be the one that is meant."""


@dataclass(frozen=True)
class Cut:
    """A text cut into words as they stand there, each with its METEOR tokens."""

    words: list[str]
    judged: list[bool]
    tokens: list[str]
    owner: list[int]
    """The word each token belongs to."""

    @property
    def line(self) -> str:
        return " ".join(self.tokens)

    def content(self) -> list[int]:
        """Places of tokens that say something, of judged words."""
        return [
            place
            for place, token in enumerate(self.tokens)
            if self.judged[self.owner[place]] and token not in NEVER_WRONG and any(map(str.isalnum, token))
        ]


class ReferenceMatcher:
    """Compares captions with their references, with the data that is on this machine."""

    def __init__(self) -> None:
        indexes = Meteor().indexes()
        self._kernel = aligner(indexes)
        synonyms = None if indexes.synonyms is None else Synonyms(indexes.synonyms)
        self._senses = functools.lru_cache(MOST_WORDS)(
            lambda token: frozenset(synonyms.synsets(token) if synonyms is not None else ())
        )
        folder = weights.find(WORDNET)
        self._wordnet = None if folder is None else open_wordnet(folder)
        self.relation = functools.lru_cache(maxsize=1 << 18)(self._relation)
        self.notes: list[str] = []
        """What is missing here, and what to do about it."""
        if not indexes.complete:
            self.notes.append(
                "METEOR's synonyms and paraphrases are not on this machine, so words that mean the same may count as "
                f"wrong: {weights.fetch_command('meteor')}"
            )
        if self._wordnet is None:
            self.notes.append(
                "WordNet is not on this machine, so a kind of the same thing (dog, animal) may count as wrong: "
                f"{weights.fetch_command(WORDNET)}"
            )
        if lack := caption_words.tagger_lacks():
            self.notes.append(f"no parser works here, so function words come from a list; {lack}")

    def explain(
        self,
        captions: Sequence[str],
        references: Sequence[Sequence[str]],
        graphs: Sequence[Details | None] | None = None,
    ) -> list[Details]:
        """One entry per caption; `graphs` are SPICE's details, if it ran.

        >>> [made] = ReferenceMatcher().explain(["two cats sleep"], [["a cat sleeping", "a cat and a dog"]])
        >>> [word["text"] for word in made["words"] if word.get("status") == "wrong"], made["missing"][0]["text"]
        (['two'], 'dog')
        """
        cuts = _cut([*captions, *(text for texts in references for text in texts)])
        return [
            self._explain(cuts[caption], [cuts[text] for text in texts], graph)
            for caption, texts, graph in zip(captions, references, graphs or [None] * len(captions), strict=True)
        ]

    def _explain(self, caption: Cut, references: list[Cut], graph: Details | None) -> Details:
        support: dict[int, Relation] = {}
        covered = [self._align(caption, reference, support) for reference in references]
        mentioned_tokens = {reference.tokens[position] for reference in references for position in reference.content()}
        every = {token for reference in references for token in reference.tokens}
        content = caption.content()
        for position in content:
            token = caption.tokens[position]
            # The alignment is one to one, so a word that is said twice may have found no partner.
            relation = self._closest(token, {token} & every or mentioned_tokens)
            if relation is not None and (position not in support or support[position] > relation):
                support[position] = relation
        words = _word_entries(caption, content, support)
        missing, total, mentioned = self._missing(caption, references, covered)
        judged = [word for word in words if "status" in word]
        details: Details = {"words": words, "missing": missing}
        if graph:
            _use_graph(details, graph)
        worth = {"wrong": 0.0, "partly": 0.5}
        right = sum(worth.get(word["status"], 1.0) for word in judged)
        precision = right / len(judged) if judged else None
        recall = mentioned / total if total else None
        details |= {"precision": precision, "recall": recall, "overall": _mean(precision, recall)}
        if not judged:
            details["note"] = "no word of the caption says something that could be compared"
        elif not all(map(_is_latin, caption.words)) or not looks_english(" ".join(caption.words)):
            details["note"] = "only English has synonyms and function words here: other words were compared as they are"
        return details

    def _align(self, caption: Cut, reference: Cut, support: dict[int, Relation]) -> set[int]:
        """Tokens of the reference that the caption covers; better support of the caption's tokens is put down."""
        mine, theirs = set(caption.content()), set(reference.content())
        covered: set[int] = set()
        for module, start, length, other, other_length in self._kernel.align(caption.line, reference.line):
            here = mine.intersection(range(start, start + length))
            there = theirs.intersection(range(other, other + other_length))
            if not here or (module and not there):  # a phrase of function words supports nothing
                continue
            if module == PARAPHRASE and not self._is_paraphrase(
                [caption.tokens[position] for position in here], [reference.tokens[position] for position in there]
            ):
                continue
            match = " ".join(reference.tokens[other : other + other_length])
            for position in here:
                if position not in support or support[position].rank > module:
                    support[position] = Relation(module, MODULES[module], match)
            covered |= there
        return covered

    def _is_paraphrase(self, mine: list[str], theirs: list[str]) -> bool:
        """Whether a paraphrase holds: the table has "a cat" for "the dog", so two single words must do so alone."""
        if len(mine) > 1 or len(theirs) > 1:
            return True
        # METEOR takes a single inexact match only where it costs no chunk, that is beside an exact one.
        alone = self._kernel.align(f"= {mine[0]}", f"= {theirs[0]}")
        return len(alone) > 1 or self.relation(mine[0], theirs[0]) is not None

    def _missing(self, caption: Cut, references: list[Cut], covered: list[set[int]]) -> tuple[list[Missing], int, int]:
        """What the references say and the caption does not, by how many say it; and how much they say and it covers."""
        own = {caption.tokens[position] for position in caption.content()}
        groups: list[tuple[set[str], set[int]]] = []
        total = mentioned = 0
        for number, (reference, places) in enumerate(zip(references, covered, strict=True)):
            content = dict.fromkeys(reference.tokens[position] for position in reference.content())
            aligned = {reference.tokens[position] for position in places}
            total += len(content)
            for token in content:
                if token in aligned or self._closest(token, own) is not None:
                    mentioned += 1
                    continue
                for tokens, numbers in groups:
                    if self._same(token, tokens):
                        tokens.add(token)
                        numbers.add(number)
                        break
                else:
                    groups.append(({token}, {number}))
        groups.sort(key=lambda group: -len(group[1]))
        count = len(references)
        missing: list[Missing] = []
        for tokens, numbers in groups:
            shown, *others = sorted(tokens, key=lambda token: (-_frequency(token, references), token))
            note = f"in {len(numbers)} of {count} reference{'' if count == 1 else 's'}"
            also = f", also as {', '.join(others)}" if others else ""
            missing.append({"text": shown, "score": len(numbers) / count, "note": note + also})
        return missing, total, mentioned

    def _closest(self, token: str, others: Iterable[str]) -> Relation | None:
        relations = (self.relation(token, other) for other in sorted(others))
        return min((relation for relation in relations if relation is not None), default=None)

    def _same(self, token: str, others: set[str]) -> bool:
        """Whether the token names what all of these name: of a synonym, most senses must be shared."""
        for other in others:
            relation = self.relation(token, other)
            if relation is None:
                return False
            if relation.loose and self._shared_senses(token, other) < 0.5:
                return False
        return True

    def _relation(self, token: str, other: str) -> Relation | None:
        """How one token of a reference supports one of the caption."""
        if token == other:
            return Relation(MODULES.index("exact"), "exact", other)
        if english_stem(token) == english_stem(other):
            return Relation(MODULES.index("stem"), "stem", other)
        if self._shared_senses(token, other):
            return Relation(MODULES.index("synonym"), "synonym", other, loose=True)
        if self._wordnet is None:
            return None
        token_word, other_word = ("person" if word in PERSONS else word for word in (token, other))
        first, second = self._wordnet.first(token_word), self._wordnet.first(other_word)
        if first is None or second is None:
            return None
        if first in self._wordnet.synsets(other_word) or second in self._wordnet.synsets(token_word):
            return Relation(MODULES.index("synonym"), "synonym", other)
        if second in self._wordnet.kinds(token_word):
            return Relation(len(MODULES), "partly", other, "more exact than the references")
        if first in self._wordnet.kinds(other_word):
            return Relation(len(MODULES), "partly", other, "more general than the references")
        return None

    def _shared_senses(self, token: str, other: str) -> float:
        """Share of METEOR's synonym sets that two words have in common; 0 without its data."""
        mine, theirs = self._senses(token), self._senses(other)
        return len(mine & theirs) / len(mine | theirs) if mine and theirs else 0.0


class ReferenceSupport(LazyDetails):
    """What the references of a whole set support, worked out a portion at a time in the order it will be asked for.

    The scene graphs themselves are left out: they are SPICE's own details.
    """

    PORTION = 200

    def __init__(self, captions: CaptionSet, order: Sequence[int], graphs: Sequence[AnyDetails] | None) -> None:
        self._captions, self._graphs = captions, graphs
        self._order = list(dict.fromkeys(order))
        self._made: dict[int, Details] = {}
        self._support = ReferenceMatcher()

    def __len__(self) -> int:
        return len(self._captions)

    def of(self, row: int) -> Details:
        if row not in self._made:
            start = self._order.index(row)
            rows = self._order[start : start + self.PORTION]
            references = self._captions.references or []
            graphs = self._graphs
            explained = self._support.explain(
                [self._captions.candidates[number] for number in rows],
                [references[number] for number in rows],
                None if graphs is None else [read_details(graphs[number]) for number in rows],
            )
            for number, details in zip(rows, explained, strict=True):
                details.pop("tuples", None)
                details.pop("categories", None)
                self._made[number] = details
        return self._made[row]


def _cut(texts: Iterable[str]) -> dict[str, Cut]:
    distinct = list(dict.fromkeys(texts))
    tagged = caption_words.tag_words(distinct)
    forms = list(dict.fromkeys(word.text for words in tagged for word in words))
    english = dict(zip(forms, map(words_of, prepare(tokenize(forms))), strict=True))
    tokens = {form: english[form] if _is_latin(form) else _foreign_tokens(form) for form in forms}
    cuts = {}
    for text, words in zip(distinct, tagged, strict=True):
        owned = [(token, number) for number, word in enumerate(words) for token in tokens[word.text]]
        cuts[text] = Cut(
            words=[word.text for word in words],
            judged=[word.semantic and word.text.lower() not in NEVER_WRONG for word in words],
            tokens=[token for token, _ in owned],
            owner=[number for _, number in owned],
        )
    return cuts


def _is_latin(word: str) -> bool:
    return not any(letter.isalpha() and letter >= "\u0250" for letter in word)


def _foreign_tokens(word: str) -> list[str]:
    """METEOR takes other scripts apart; here a word stays whole, and is letters only where none separates words.

    >>> _foreign_tokens("Кошка"), _foreign_tokens("猫が")
    (['кошка'], ['猫', 'が'])
    """
    spaceless = any("\u3040" <= letter <= "\u9fff" for letter in word)
    return list(word) if spaceless else [word.lower()]


def _word_entries(caption: Cut, content: list[int], support: dict[int, Relation]) -> list[Word]:
    entries: list[Word] = [{"text": word} for word in caption.words]
    by_word: dict[int, list[Relation | None]] = {}
    for position in content:
        by_word.setdefault(caption.owner[position], []).append(support.get(position))
    for position, relations in by_word.items():
        known = [relation for relation in relations if relation is not None]
        entry = entries[position]
        if not known:
            entry["status"] = "wrong"
            continue
        worst = max(known)
        entry["status"] = worst.status if len(known) == len(relations) else "partly"
        if entry["status"] != "exact":
            entry["match"] = worst.match
        if worst.note:
            entry["note"] = worst.note
    return entries


def _use_graph(details: Details, graph: Details) -> None:
    """Take over SPICE's tuples, what they support, and which attributes are said of something else."""
    tuples = graph.get("tuples", [])
    details["tuples"] = tuples
    details["categories"] = graph.get("categories", {})
    right = {tuple(entry["text"]) for entry in tuples if entry.get("status") in RIGHT}
    known = {word for text in right if len(text) == 1 for word in text[0].split("/")}
    elsewhere = {
        word: entry["text"][0]
        for entry in tuples
        if len(entry["text"]) == 2 and tuple(entry["text"]) not in right and (entry["text"][0],) in right
        for word in entry["text"][1].split("/")
    }
    for word in details["words"]:
        text, status = word["text"].lower(), word.get("status")
        if status == "wrong" and text in known:
            word["status"] = "synonym"
        elif status in RIGHT and text in elsewhere:
            word["status"] = "partly"
            word["note"] = f"said, but not of “{elsewhere[text]}”"


def _frequency(token: str, references: list[Cut]) -> int:
    return sum(token in reference.tokens for reference in references)


def _mean(precision: float | None, recall: float | None) -> float | None:
    """Harmonic mean; None where one of the two cannot be said."""
    if precision is None or recall is None:
        return None
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
