"""Features for training: read from the cache for the same captions, references, pictures and makers, and only then."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caplens.core.captions import CaptionSet
from caplens.core.errors import CaplensWarning
from caplens.core.types import Floats
from caplens.storage.identity import Identity
from caplens.training.features import cached_features


class Counter:
    """Computes features and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, captions: CaptionSet) -> Floats:
        self.calls += 1
        return np.full((len(captions), 1), float(self.calls))


@pytest.fixture
def compute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counter:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    return Counter()


def test_the_same_is_computed_once(compute: Counter) -> None:
    captions = CaptionSet.of(["a"], [["b"]])
    for _ in range(3):
        assert cached_features(captions, Identity.of("x"), compute).tolist() == [[1.0]]
    assert compute.calls == 1


def test_anything_else_is_computed(compute: Counter, tmp_path: Path) -> None:
    picture = tmp_path / "0.jpg"
    picture.write_bytes(b"one")
    sets = [
        CaptionSet.of(["a"]),
        CaptionSet.of(["b"]),
        CaptionSet.of(["a"], [["b"]]),
        CaptionSet.of(["a"], images=[picture]),
    ]
    for captions in sets:
        cached_features(captions, Identity.of("x"), compute)
    assert compute.calls == 4
    cached_features(sets[0], Identity.of("y"), compute)
    picture.write_bytes(b"two")
    assert cached_features(sets[-1], Identity.of("x"), compute).tolist() == [[6.0]]


def test_what_has_no_lasting_identity_is_not_kept(compute: Counter, tmp_path: Path) -> None:
    captions = CaptionSet.of(["a"])
    for _ in range(2):
        cached_features(captions, Identity.of(lambda: 1), compute)
        cached_features(CaptionSet.of(["a"], images=["https://example.org/a.jpg"]), Identity.of("x"), compute)
    assert compute.calls == 4
    assert not list((tmp_path / "cache").rglob("*.npy"))


def test_a_damaged_or_read_only_cache_costs_time_only(
    compute: Counter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    captions = CaptionSet.of(["a"])
    cached_features(captions, Identity.of("x"), compute)
    for path in (tmp_path / "cache").rglob("*.npy"):
        path.write_bytes(b"broken")
    with pytest.warns(CaplensWarning, match="was damaged; it is made anew"):
        assert cached_features(captions, Identity.of("x"), compute).tolist() == [[2.0]]
    monkeypatch.setenv("CAPLENS_CACHE", str(next((tmp_path / "cache").rglob("*.npy"))))
    with pytest.warns(CaplensWarning, match="nothing can be kept in"):
        assert cached_features(captions, Identity.of("x"), compute).tolist() == [[3.0]]
