"""Texts that stand more than once among many millions, found in a bounded share of memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

AT_ONCE = 20_000_000
"""Texts held at a time, by eight bytes each."""
EXAMPLES = 3

Hashes = NDArray[np.uint64]
Parts = Callable[[], Iterable[list[str | None]]]


def hash_texts(texts: Iterable[str | None]) -> Hashes:
    """Return 64 bits for every text, the same on every machine; 0 for none."""
    made = (
        b"\0" * 8 if text is None else hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for text in texts
    )
    return np.frombuffer(b"".join(made), np.uint64)


def repeated_hashes(parts: Callable[[], Iterator[Hashes]], total: int) -> tuple[int, Hashes]:
    """Return how many values are repetitions of an earlier one, and the values that are repeated; 0 does not count.

    What is more than `AT_ONCE` is gone through several times, a share of the values each time.
    """
    shares = np.uint64(-(-max(1, total) // AT_ONCE))
    repetitions, found = 0, []
    for share in range(int(shares)):
        kept = [values[(values % shares == share) & (values != 0)] for values in parts()]
        values, counts = np.unique(np.concatenate([np.zeros(0, np.uint64), *kept]), return_counts=True)
        repetitions += int((counts - 1).sum())
        found.append(values[counts > 1])
    return repetitions, np.concatenate(found)


def repeated(parts: Parts, total: int) -> tuple[int, list[tuple[str, list[int]]]]:
    """Return how many texts repeat an earlier one, and the first few, each with the parts it stands in."""
    count, hashes = repeated_hashes(lambda: (hash_texts(texts) for texts in parts()), total)
    if not count:
        return 0, []
    wanted = hashes[:EXAMPLES]
    places: dict[str, list[int]] = {}
    for place, texts in enumerate(parts()):
        for row in np.flatnonzero(np.isin(hash_texts(texts), wanted)):
            places.setdefault(str(texts[row]), []).append(place)
    return count, list(places.items())[:EXAMPLES]
