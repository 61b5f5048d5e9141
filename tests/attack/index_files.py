"""Damage METEOR's index files and open them: `python tests/attack/index_files.py 3000`.

A damaged file (bytes flipped, cut off, added, moved) must be refused, or score as before if nothing changed. A forged
file has a right checksum over wrong numbers: it may be refused or score something, but nothing may read or write out of
bounds, which a sanitizer sees.
"""

from __future__ import annotations

import json
import random
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from caplens.native._kernels import Meteor, ParaphraseBuilder, Synonyms, write_synonyms

MASK = (1 << 64) - 1
MULTIPLIERS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F)
HEADER = struct.Struct("<8sQQ64s")  # kind, size, checksum, source

SYNSETS = [("dog", [3, 7]), ("hound", [7]), ("run", [1, 2]), ("sofa", [5]), ("couch", [5, 6]), ("man", [4])]
IRREGULAR = [("ran", [1, 2]), ("men", [4])]
PARAPHRASES = [
    ("a dog", "the hound"),
    ("a dog", "some dog"),
    ("sits on", "is sitting on"),
    ("sits on the sofa", "is on the couch"),
    ("man", "guy"),
]
PAIRS = [
    ("a dog sits on the sofa", "the hound is sitting on the couch"),
    ("two men ran", "a man runs"),
    ("some dog is on the couch", "a dog sits on the sofa"),
]


def scramble(one: int, other: int) -> int:
    product = one * other
    return (product & MASK) ^ (product >> 64)


def checksum(content: bytes) -> int:
    """What src/caplens/native/meteor_index.cpp computes over a file whose own checksum is zero."""
    lanes = list(MULTIPLIERS)
    for part in (content[: HEADER.size], content[HEADER.size :]):
        padded = part + struct.pack("<8Q", *[len(part) % 64 + 1] * 8)[len(part) % 64 :]
        for words in struct.iter_unpack("<8Q", padded):
            for lane, multiplier in enumerate(MULTIPLIERS):
                lanes[lane] = scramble(words[2 * lane] ^ multiplier, words[2 * lane + 1] ^ lanes[lane])
    left = scramble(lanes[0], lanes[1] ^ MULTIPLIERS[3]) ^ MULTIPLIERS[2]
    return scramble(left, scramble(lanes[2], lanes[3]) ^ MULTIPLIERS[1])


def sealed(content: bytes) -> bytes:
    """The content under a header with its right size and checksum."""
    kind, _, _, source = HEADER.unpack_from(content)
    content = HEADER.pack(kind, len(content), 0, source) + content[HEADER.size :]
    return HEADER.pack(kind, len(content), checksum(content), source) + content[HEADER.size :]


def section(values: object, dtype: str) -> bytes:
    array = np.asarray(values, dtype)
    data = array.tobytes()
    return struct.pack("<Q", array.size) + data + bytes(-len(data) % 8)


def string_table(words: list[str]) -> bytes:
    """Slots, offsets and text of some words, as meteor_build.cpp lays them out."""
    slots = [0] * (1 << (2 * len(words) + 1).bit_length())
    for number, word in enumerate(words):
        place = 0xCBF29CE484222325
        for byte in word.encode():
            place = (place ^ byte) * 0x100000001B3 & MASK
        place = (place ^ place >> 32) % len(slots)
        while slots[place]:
            place = (place + 1) % len(slots)
        slots[place] = number + 1
    encoded = [word.encode() for word in words]
    offsets = np.cumsum([0, *map(len, encoded)])
    return section(slots, "<u4") + section(offsets, "<u4") + section(list(b"".join(encoded)), "u1")


def paraphrase_index(words: list[str], *trie: bytes) -> bytes:
    return sealed(HEADER.pack(b"clpar-02", 0, 0, b"forged") + string_table(words) + b"".join(trie))


def build(folder: Path) -> tuple[Path, Path]:
    """Two small sound indexes."""
    synonyms, paraphrases = folder / "synonyms", folder / "paraphrases"
    write_synonyms(synonyms, SYNSETS, IRREGULAR, "attack")
    builder = ParaphraseBuilder()
    for phrase, paraphrase in PARAPHRASES:
        builder.feed(f"0.5\n{phrase}\n{paraphrase}\n".encode())
    builder.write(paraphrases, "attack")
    return synonyms, paraphrases


def score(synonyms: Path, paraphrases: Path) -> bytes:
    """Everything that is looked up, as bytes."""
    kernel = Meteor(["a", "the"], synonyms, paraphrases)
    rows, best, _ = kernel.score([caption for caption, _ in PAIRS], [[reference] for _, reference in PAIRS])
    matches = [kernel.align(*pair) for pair in PAIRS]
    index = Synonyms(synonyms)
    sets = [index.synsets(word) for word, _ in [*SYNSETS, *IRREGULAR, ("runs", []), ("unknown", [])]]
    return rows.tobytes() + best.tobytes() + repr((matches, sets)).encode()


def damaged(draw: random.Random, sound: bytes) -> bytes:
    """The file after an accident."""
    content = bytearray(sound)
    place = draw.randrange(len(content))
    match draw.randrange(6):
        case 0:
            content[place] ^= 1 << draw.randrange(8)
        case 1:
            for at in range(place, min(len(content), place + draw.randrange(1, 64))):
                content[at] = draw.randrange(256)
        case 2:
            del content[place:]
        case 3:
            content += bytes(draw.randrange(256) for _ in range(draw.randrange(1, 32)))
        case 4:
            length = draw.randrange(1, 64)
            content[place : place + length] = bytes(length)
        case _:
            other = draw.randrange(len(content))
            content[place : place + 16], content[other : other + 16] = (
                content[other : other + 16],
                content[place : place + 16],
            )
    return bytes(content)


def forged(draw: random.Random, sound: bytes) -> bytes:
    """The file with numbers that lead elsewhere, under a right checksum."""
    content = bytearray(sound)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        width = draw.choice([2, 4, 4, 8])
        place = draw.randrange(HEADER.size // 8, len(content) // 8) * 8 + draw.randrange(0, 8, width)
        old = int.from_bytes(content[place : place + width], "little")
        wrong = [0, 1, old + 1, old - 1, 2 * old, len(content), 1 << 15, (1 << 32) - 1, -1, draw.getrandbits(63)]
        content[place : place + width] = (draw.choice(wrong) % (1 << 8 * width)).to_bytes(width, "little")
    return sealed(bytes(content))


def outcomes(count: int, change: Callable[[random.Random, bytes], bytes], seed: int) -> Counter[str]:
    """How so many changed files were taken."""
    draw = random.Random(seed)
    taken: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        sound = build(Path(name))
        right, contents = score(*sound), [path.read_bytes() for path in sound]
        for number in range(count):
            which, paths = draw.randrange(2), list(sound)
            # A name of its own: of the file opened last the kernel keeps what it read.
            paths[which] = Path(name, f"changed-{number}")
            paths[which].write_bytes(change(draw, contents[which]))
            try:
                taken["right" if score(*paths) == right else "different"] += 1
            except RuntimeError as error:
                taken["refused" if type(error).__name__ == "DamagedIndex" else repr(error)] += 1
            paths[which].unlink()
    return taken


def report(count: int, seed: int = 0) -> Iterator[tuple[str, dict[str, int]]]:
    yield "damaged", dict(outcomes(count, damaged, seed))
    yield "forged", dict(outcomes(count, forged, seed))


if __name__ == "__main__":
    for kind, taken in report(int(sys.argv[1]) if len(sys.argv) > 1 else 3000):
        print(json.dumps({kind: taken}), flush=True)
