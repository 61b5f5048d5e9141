"""METEOR's kernels against slow twins: the aligner written out path by path, the normalizer as substitutions."""

from __future__ import annotations

import gzip
import re
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caplens.core.progress import silent
from caplens.native._kernels import DamagedIndex, Meteor, Synonyms, english_stem, meteor_normalize
from caplens.text.meteor_data import JAR, TABLE, Indexes, build

Phrase = tuple[str, ...]
Match = tuple[int, int, int, int, int]  # module, start in the caption, length, start in the reference, length
FUNCTION = ["a", "the"]


@dataclass
class Data:
    """Small synonym sets and paraphrases."""

    synsets: dict[str, list[int]] = field(default_factory=dict)
    irregular: dict[str, list[str]] = field(default_factory=dict)  # base form to its irregular forms
    table: list[tuple[Phrase, Phrase]] = field(default_factory=list)

    def write(self, folder: Path) -> Indexes:
        with zipfile.ZipFile(folder / JAR, "w") as jar:
            jar.writestr(
                "synonym/english.synsets",
                "".join(f"{word}\n{' '.join(f'{n:08}' for n in sets)}\n" for word, sets in self.synsets.items()),
            )
            jar.writestr(
                "synonym/english.exceptions",
                "".join(f"{base}\n{' '.join(forms)}\n" for base, forms in self.irregular.items()),
            )
        with gzip.open(folder / TABLE, "wt", encoding="utf-8") as file:
            for source, target in self.table or [(("no",), ("never",))]:
                file.write(f"0.5\n{' '.join(source)}\n{' '.join(target)}\n")
        return build(folder, silent, own=True)

    def synsets_of(self, word: str) -> set[int]:
        found = set(self.synsets.get(word, []))
        bases = [base for base, forms in self.irregular.items() if word in forms]
        if not bases:
            rules = (
                "s: ses:s xes:x zes:z ches:ch shes:sh men:man ies:y es:e es: ed:e ed: ing:e ing: er: est: er:e est:e"
            )
            stripped = (
                word.removesuffix(old) + new
                for old, new in (rule.split(":") for rule in rules.split())
                if len(word) > 2 and not word.endswith("ss") and word.endswith(old)
            )
            bases = [base for base in stripped if base in self.synsets][:1]
        return found.union(*(self.synsets.get(base, []) for base in bases))


@dataclass
class NaivePath:
    """One alignment under way."""

    matches: tuple[Match, ...] = ()
    taken: frozenset[tuple[str, int]] = frozenset()
    words: int = 0
    chunks: int = 0
    distance: int = 0
    until: int = 0
    end: int | None = None


def naive_align(data: Data, caption: list[str], reference: list[str]) -> list[Match]:
    """Every match of every module, then every path of the beam, copied and sorted as METEOR does it."""
    found: dict[int, list[Match]] = {i: [] for i in range(len(reference))}

    def each_pair(module: int, same: Callable[[str, str], bool]) -> None:
        for i, word in enumerate(reference):
            found[i] += [(module, j, 1, i, 1) for j, other in enumerate(caption) if same(word, other)]

    each_pair(0, lambda a, b: a == b)
    if caption != reference:
        each_pair(1, lambda a, b: a != b and english_stem(a) == english_stem(b))
        each_pair(2, lambda a, b: a != b and bool(data.synsets_of(a) & data.synsets_of(b)))
        for source, target, flip in [(reference, caption, False), (caption, reference, True)]:
            for start in range(len(source)):
                for length in range(1, len(source) - start + 1):
                    phrase = tuple(source[start : start + length])
                    for _, wanted in (entry for entry in data.table if entry[0] == phrase):
                        for place in range(len(target) - len(wanted) + 1):
                            if tuple(target[place : place + len(wanted)]) != wanted:
                                continue
                            here, there = (start, length), (place, len(wanted))
                            match = (3, *here, *there) if flip else (3, *there, *here)
                            found[match[3]].append(match)

    def places(match: Match) -> frozenset[tuple[str, int]]:
        _, other, other_length, start, length = match
        caption_side = {("caption", place) for place in range(other, other + other_length)}
        return frozenset(caption_side | {("reference", place) for place in range(start, start + length)})

    everything = [match for matches in found.values() for match in matches]
    cover = Counter(place for match in everything for place in places(match))
    lonely = {
        match[3]: match
        for match in everything
        if len(found[match[3]]) == 1 and all(cover[place] == 1 for place in places(match))
    }

    def with_match(path: NaivePath, match: Match) -> NaivePath:
        module, other, other_length, start, length = match
        share = 1.0 if module == 0 else 0.5
        return replace(
            path,
            matches=(*path.matches, match),
            taken=path.taken | places(match),
            words=path.words + int(length * share) + int(other_length * share),
            chunks=path.chunks + (path.end is not None and path.end != other),
            until=start + length,
            end=other + other_length,
        )

    def rank(path: NaivePath) -> tuple[int, int, int]:
        return -path.words, path.chunks, path.distance

    paths = [NaivePath(taken=frozenset(place for match in lonely.values() for place in places(match)))]
    for i in range(len(reference)):
        following: list[NaivePath] = []
        for path in sorted(paths, key=rank)[:40]:
            if i < path.until:
                following.append(path)
            elif i in lonely:
                match = lonely[i]
                following.append(replace(with_match(path, match), distance=path.distance + abs(match[1] - match[3])))
            else:
                for match in found[i]:
                    if path.taken & places(match):
                        continue
                    following.append(with_match(path, match))
                    path = replace(path, distance=path.distance + abs(match[1] - match[3]))
                following.append(replace(path, chunks=path.chunks + (path.end is not None), end=None))
        paths = following
    paths = [replace(path, chunks=path.chunks + (path.end is not None)) for path in sorted(paths, key=rank)[:40]]
    return list(min(paths, key=rank).matches)


letters = st.sampled_from("abcdef")
VOCABULARY = ["a", "the", "run", "runs", "running", "ran", "dog", "dogs", "puppy", "big"]
sentences = st.lists(st.sampled_from(VOCABULARY), max_size=9)
phrases = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=3).map(tuple)
tables = st.lists(st.tuples(phrases, phrases), max_size=12, unique=True)
synsets = st.dictionaries(st.sampled_from(VOCABULARY), st.lists(st.integers(0, 5), min_size=1, max_size=3), max_size=6)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tables, synsets, st.lists(st.tuples(sentences, sentences), min_size=1, max_size=10))
def test_the_aligner_does_what_its_slow_twin_does(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    table: list[tuple[Phrase, Phrase]],
    sets: dict[str, list[int]],
    pairs: list[tuple[list[str], list[str]]],
) -> None:
    folder = tmp_path_factory.mktemp("meteor")
    monkeypatch.setenv("CAPLENS_CACHE", str(folder))
    monkeypatch.setenv("CAPLENS_DATA", str(folder))
    data = Data(sets, {"run": ["ran"]}, table)
    indexes = data.write(folder)
    kernel = Meteor(FUNCTION, indexes.synonyms, indexes.paraphrases)
    for caption, reference in pairs:
        assert kernel.align(" ".join(caption), " ".join(reference)) == naive_align(data, caption, reference)


@settings(max_examples=8, deadline=None)
@given(st.lists(letters, min_size=60, max_size=70), st.lists(letters, max_size=70))
def test_the_twins_agree_on_more_words_than_a_machine_word_has_bits(caption: list[str], reference: list[str]) -> None:
    kernel = Meteor(FUNCTION, None, None)
    assert kernel.align(" ".join(caption), " ".join(reference)) == naive_align(Data(), caption, reference)


def naive_normalize(line: str) -> list[str]:
    """METEOR's substitutions one after the other, on lower-case text without abbreviations of its list."""
    letter = "a-zA-ZÀ-ÖØ-öø-žЀ-ԧᴀ-ᵿꙀ-ꙮ꙾-ꚗ"
    line = re.sub(rf"([^0-9{letter}\s.'`,\-‘’])", r" \1 ", f" {line} ")
    line = re.sub(r"\.\.+", lambda dots: " " + "\0" * len(dots[0]) + " ", line)
    for left, right in [("[^0-9]", "[^0-9]"), ("[0-9]", "[^0-9]"), ("[^0-9]", "[0-9]")]:
        line = re.sub(f"({left}),({right})", r"\1 , \2", line)
    line = re.sub("[`‘’]", "'", line)
    line = re.sub("[“”]|''", ' " ', line)
    line = line.replace("–", "-").replace("--", "-")
    line = re.sub(f"([.0-9{letter}])-([0-9{letter}])", r"\1 \2", line)
    for left, right in [
        (f"[^{letter}]", f"[^{letter}]"),
        (f"[^0-9{letter}]", f"[{letter}]"),
        (f"[{letter}]", f"[^{letter}]"),
    ]:
        line = re.sub(f"({left})'({right})", r"\1 ' \2", line)
    line = re.sub(f"([{letter}])'([{letter}])", r"\1 '\2", line)
    line = re.sub("([0-9])'(s)", r"\1 '\2", line)
    words = line.split(" ")
    words = [word for word in words if word]
    for place, word in enumerate(words):
        before = word[:-1]
        if len(word) < 2 or not word.endswith("."):
            continue
        if "." in before and re.search(f"[{letter}]", before):
            words[place] = word.replace(".", "")
        elif before in {"v", "vs"} or re.match("[a-z]", " ".join(words[place + 1 : place + 2])):
            continue
        else:
            words[place] = before + " ."
    return " ".join(words).replace("\0", ".").split(" ") if words else []


PIECES = """
a b dog 's ' '' `` - -- – t-shirt a-b-c x--y . .. ... u.s. u.s 1,000 1,0 a,b,c , 3.5 12 é ñ. “ ” ‘ ’ $ 5's 5't ( 😀 # &
rock'n'roll o'clock 1990's .5 5. a.b. ...a « ß Ω б ½ x, ,y -a a- v. vs.
"""
pieces = st.sampled_from(PIECES.split())


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(pieces, st.sampled_from(["", " "])), max_size=8))
def test_the_normalizer_does_what_its_slow_twin_does(parts: list[tuple[str, str]]) -> None:
    line = "".join(piece + space for piece, space in parts)
    assert meteor_normalize([line])[0].split() == naive_normalize(line)


def test_plain_lines_come_back_as_they_are() -> None:
    line = "a dog on the grass 2"
    assert meteor_normalize([line])[0] is line


@pytest.mark.parametrize(
    ("line", "normal"),
    [
        ("a man 's t-shirt", "a man ' s t shirt"),
        ("the u.s. flag ... half", "the us flag ... half"),
        ("Mr. Smith met Dr. Jones.", "Mr. Smith met Dr. Jones ."),
        ("room No. 5 and No. six", "room No. 5 and No. six"),
        ("No. Six", "No . Six"),
        ("a-b-c", "a b-c"),
        ("\u00a0dog\u2003runs", "dog runs"),
    ],
)
def test_known_lines(line: str, normal: str) -> None:
    assert " ".join(meteor_normalize([line])[0].split()) == normal


def test_half_a_character_is_replaced() -> None:
    assert meteor_normalize(["a\ud83db"])[0].split() == ["a", "\ufffd", "b"]


# word: stem, as METEOR's jar gives them
STEMS = """
running:run runs:run dogs:dog puppies:puppi ties:tie dies:die skies:sky sky:sky cries:cri by:by say:say skiing:ski
hopping:hop hoping:hope failing:fail filing:file rated:rate conflated:conflat troubled:troubl sized:size agreed:agre
feed:feed proceed:proceed inning:inning outing:outing generously:generous generic:generic communal:communal
arsenal:arsenal happily:happili nationalization:nation rational:ration electrical:electr hopefulness:hope
replacement:replac adoption:adopt activate:activ roll:roll controlling:control gas:gas this:this kiwis:kiwi
yellow:yellow boyish:boyish sayings:say beautifully:beauti only:onli early:earli analogi:analog
's:'s dog's:dog men:men children:children
"""


@pytest.mark.parametrize("pair", STEMS.split())
def test_known_stems(pair: str) -> None:
    word, stemmed = pair.split(":")
    assert english_stem(word) == stemmed


def test_words_that_java_hashes_alike_are_one_word_to_meteor() -> None:
    assert Meteor([], None, None).align("aa", "bB") == [(0, 0, 1, 0, 1)]


def test_synsets_come_from_the_word_its_irregular_base_or_a_stripped_suffix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path))
    monkeypatch.setenv("CAPLENS_DATA", str(tmp_path))
    data = Data({"run": [1, 2], "dog": [3], "man": [4], "saw": [5], "see": [6]}, {"run": ["ran"], "see": ["saw"]})
    synonyms = data.write(tmp_path).synonyms
    assert synonyms is not None
    index = Synonyms(synonyms)
    sets = {word: index.synsets(word) for word in ["run", "ran", "runs", "dogs", "men", "saw", "cat", "dogss", ""]}
    assert sets["run"] == sets["ran"] == sets["runs"] == [1, 2]
    assert (sets["dogs"], sets["men"], sets["saw"]) == ([3], [4], [5, 6])
    assert sets["cat"] == sets["dogss"] == sets[""] == []


def test_a_damaged_index_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path))
    monkeypatch.setenv("CAPLENS_DATA", str(tmp_path))
    indexes = Data({"dog": [1]}, table=[(("dog",), ("puppy",))]).write(tmp_path)
    assert indexes.synonyms is not None
    assert indexes.paraphrases is not None
    whole = indexes.paraphrases.read_bytes()
    for broken in (b"", whole[:40], whole[:-8], b"x" + whole[1:]):
        indexes.paraphrases.write_bytes(broken)
        with pytest.raises(DamagedIndex, match="the index"):
            Meteor(FUNCTION, indexes.synonyms, indexes.paraphrases)
