"""The jar that coco-caption tokenizes with, and the texts it is held against."""

from __future__ import annotations

import gzip
import importlib.util
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from hypothesis import strategies as st

PUNCTUATION = frozenset(["''", "'", "``", "`", "-LRB-", "-RRB-", "-LCB-", "-RCB-", *".?!,:-;", "--", "..."])
# A line behind each caption keeps captions apart, written in the caption's own style (docs/research/tokenizer.md).
GUARD = "zqxj"
CHUNK = 100_000


def jar() -> Path | None:
    """Where the jar is, if it and Java are here."""
    package = importlib.util.find_spec("pycocoevalcap")
    if shutil.which("java") is None or package is None or not package.submodule_search_locations:
        return None
    return Path(package.submodule_search_locations[0]) / "tokenizer" / "stanford-corenlp-3.4.1.jar"


def run_jar(text: str) -> list[str]:
    """The jar's output lines, run as pycocoevalcap runs it."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(text.encode())
        file.flush()
        command = ["java", "-XX:+UseSerialGC", "-cp", str(jar()), "edu.stanford.nlp.process.PTBTokenizer"]
        command += ["-preserveLines", "-lowerCase", file.name]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.decode().split("\n")


def kept(line: str) -> str:
    """What coco-caption makes of one line of output."""
    return " ".join(word for word in line.rstrip().split(" ") if word not in PUNCTUATION)


def guard(caption: str) -> str:
    letter = re.search("[A-Za-z]", caption)
    return f"A {GUARD}" if letter and letter.group().isupper() else GUARD


def expected(captions: Sequence[str]) -> list[str]:
    """The jar's tokens of each caption by itself; the lines of one caption are put together."""
    results: list[str] = []
    for at in range(0, len(captions), CHUNK):
        part = [caption.replace("\n", " ") for caption in captions[at : at + CHUNK]]
        lines: list[str] = []
        for line in run_jar("".join(f"{caption}\n{guard(caption)}\n" for caption in part)):
            if line in (GUARD, f"a {GUARD}"):
                results.append(" ".join(filter(None, map(kept, lines))))
                lines = []
            else:
                lines.append(line)
    assert len(results) == len(captions)
    return results


def in_file_order(captions: Sequence[str]) -> list[str]:
    """The jar's tokens of captions that are the lines of one file, as pycocoevalcap runs it."""
    return [kept(line) for line in run_jar("\n".join(caption.replace("\n", " ") for caption in captions))]


def strings(value: object) -> Iterator[str]:
    """All strings inside parsed json."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)


def captions_in(folder: Path) -> list[str]:
    """Every distinct string in the data files below a folder: all captions, and names of images among them."""
    found: set[str] = set()
    for path in sorted(folder.rglob("*")):
        text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else ""
        if path.suffix in (".json", ".jsonl") or path.name.endswith(".token.txt"):
            text = path.read_text()
        if path.suffix == ".txt":
            found.update(line.split("\t")[1] for line in text.splitlines())
        elif text:
            try:
                found.update(strings(json.loads(text)))
            except json.JSONDecodeError:
                found.update(s for line in text.splitlines() for s in strings(json.loads(line)))
    return sorted(found)


# Contractions, abbreviations, addresses, numbers, currency, quotes, entities, tags, faces, scripts, odd characters.
PIECES: list[str] = json.loads(Path(__file__).with_name("ptb_pieces.json").read_text())
GLUE = st.sampled_from([" ", " ", " ", "", "", "-", ".", ",", "'", "’", "/", "\u00a0", "  ", ". ", "&", ":", "_"])
ALPHABETS = (
    "aB1.-'/ ",
    "nt'’do ",
    "0123456789-./:, ()+",
    "<>=\"' ab/!?-",
    "&;#amptlgqo1 ",
    "USus.-no ",
    ":;=()<>-^_x~'DP{}|\\ ",
)

piece = st.one_of(
    st.sampled_from(PIECES),
    st.sampled_from(PIECES).map(str.upper),
    st.sampled_from(ALPHABETS).flatmap(lambda alphabet: st.text(alphabet, max_size=12)),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=6),
)
# Random nasty captions: a few pieces glued together, or the same over and over to a line of a thousand words.
nasty = st.lists(st.tuples(piece, GLUE), max_size=8).map(lambda pairs: "".join(map("".join, pairs)))
long_line = st.lists(piece, min_size=20, max_size=20).map(lambda pieces: " ".join(pieces * 50))
