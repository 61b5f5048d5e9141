"""METEOR's index files: whatever stands in them, the kernels refuse it or compute from it, and never crash."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.attack import index_files

from caplens.native._kernels import DamagedIndex, Meteor, ParaphraseBuilder, Synonyms, write_synonyms

LONGEST = 65_535  # words of a phrase


def test_damaged_files_are_refused_and_forged_ones_crash_nothing() -> None:
    """In a process of its own, which a crash would end."""
    program = [sys.executable, index_files.__file__, "300"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    damaged, forged = (json.loads(line) for line in done.stdout.splitlines())
    assert set(damaged["damaged"]) <= {"refused", "right"}
    assert damaged["damaged"]["refused"] > 250
    assert set(forged["forged"]) <= {"refused", "right", "different"}
    assert forged["forged"]["refused"] > 150


def test_the_forger_knows_the_checksum(tmp_path: Path) -> None:
    """Otherwise every forged file would be refused for its checksum alone."""
    for path in index_files.build(tmp_path):
        assert index_files.sealed(path.read_bytes()) == path.read_bytes()


def test_shortening_an_open_index_changes_nothing(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from tests.attack.index_files import PAIRS, build
from caplens.native._kernels import Meteor
paths = build(Path(sys.argv[1]))
kernel = Meteor([], *paths)
before = [kernel.align(*pair) for pair in PAIRS]
for path in paths:
    path.write_bytes(b"")
assert [kernel.align(*pair) for pair in PAIRS] == before
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_more_words_than_a_bit_set_has_bits_are_refused(tmp_path: Path) -> None:
    """The bit of word 65,536 lay outside the heap block of the set."""
    words = [f"w{number}" for number in range(65_537)]
    trie = [
        index_files.section([0], "<u2"),  # labels: the root alone
        index_files.section([1, 1], "<u4"),
        index_files.section([0, 0], "<u4"),
        index_files.section([], "<u2"),
    ]
    (tmp_path / "fits").write_bytes(index_files.paraphrase_index(words[:-1], *trie))
    assert Meteor([], None, tmp_path / "fits").align("w65535", "w65535") == [(0, 0, 1, 0, 1)]
    (tmp_path / "crafted").write_bytes(index_files.paraphrase_index(words, *trie))
    with pytest.raises(DamagedIndex, match="fit together"):
        Meteor([], None, tmp_path / "crafted")


TRIES = {  # labels, where children begin, where paraphrases begin, paraphrases
    "a child before its parent": ([0, 1], [1, 1, 2], [0, 0, 0], []),
    "a node that is its own child": ([0, 1], [0, 2, 2], [0, 0, 0], []),
    "children that do not end": ([0, 1], [1, 2, 9], [0, 0, 0], []),
    "labels that do not rise": ([0, 1, 1], [1, 3, 3, 3], [0, 0, 0, 0], []),
    "a paraphrase that goes on behind the end": ([0, 1], [1, 2, 2], [0, 0, 2], [9, 1]),
    "a paraphrase without words": ([0, 1], [1, 2, 2], [0, 0, 2], [0, 0]),
    "paraphrases that end before they begin": ([0, 1], [1, 2, 2], [0, 2, 0], []),
    "no nodes": ([], [0], [0], []),
}


@pytest.mark.parametrize("trie", TRIES.values(), ids=TRIES)
def test_a_crafted_trie_is_refused(trie: tuple[list[int], ...], tmp_path: Path) -> None:
    sections = [index_files.section(values, f"<u{width}") for values, width in zip(trie, (2, 4, 4, 2), strict=True)]
    path = tmp_path / "crafted"
    path.write_bytes(index_files.paraphrase_index(["a", "b"], *sections))
    with pytest.raises(DamagedIndex, match="fit together"):
        Meteor([], None, path)


def test_a_full_string_table_is_refused(tmp_path: Path) -> None:
    """A search for an unknown word ends at an empty slot: without one it never ended."""
    synonyms, _ = index_files.build(tmp_path)
    table = (
        index_files.section([1, 1], "<u4") + index_files.section([0, 1, 2], "<u4") + index_files.section([97, 98], "u1")
    )
    lists = index_files.section([0, 0, 0], "<u4") + index_files.section([], "<u4")
    header = synonyms.read_bytes()[: index_files.HEADER.size]
    synonyms.write_bytes(index_files.sealed(header + 2 * (table + lists)))
    with pytest.raises(DamagedIndex, match="fit together"):
        Synonyms(synonyms)


def test_files_that_are_no_index_say_what_they_are(tmp_path: Path) -> None:
    synonyms, paraphrases = index_files.build(tmp_path)
    with pytest.raises(DamagedIndex, match="kind or version"):
        Meteor([], paraphrases, synonyms)
    with pytest.raises(DamagedIndex, match="regular file"):
        Meteor([], tmp_path, None)
    with pytest.raises(FileNotFoundError):
        Meteor([], tmp_path / "absent", None)
    with pytest.raises(FileNotFoundError):
        write_synonyms(tmp_path / "no" / "folder", [], [], "")
    with pytest.raises(ValueError, match="printable"):
        write_synonyms(synonyms, [], [], "a source that is a sentence")


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    synonyms, _ = index_files.build(tmp_path)
    assert Meteor([], synonyms, None).align("hound", "dog") == [(2, 0, 1, 0, 1)]
    write_synonyms(synonyms, [("hound", [1]), ("dog", [2])], [], "other")
    assert Meteor([], synonyms, None).align("hound", "dog") == []


def test_phrases_are_as_long_as_their_length_can_say(tmp_path: Path) -> None:
    """A paraphrase of 65,536 words had the length 0."""
    builder = ParaphraseBuilder()
    with pytest.raises(RuntimeError, match=r"line 3 .* more than 65,535 words"):
        builder.feed(f"1\nbark\n{'woof ' * (LONGEST + 1)}\n".encode())
    builder = ParaphraseBuilder()
    builder.feed(f"1\nbark\n{'woof ' * LONGEST}\n1\n{'woof ' * LONGEST}\nbark\n".encode())
    builder.write(tmp_path / "long", "test")
    kernel = Meteor([], None, tmp_path / "long")
    assert kernel.align("bark", "woof woof") == []
