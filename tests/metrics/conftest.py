"""What tests of metrics that look at pictures share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Embeddings are kept in the test's own folder."""
    monkeypatch.setattr("caplens.storage.cache.cache_folder", lambda: tmp_path / "cache")


@pytest.fixture
def images(tmp_path: Path) -> list[str]:
    """Four picture files of coloured blots."""
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    paths = [tmp_path / f"{number}.png" for number in range(4)]
    for path in paths:
        image.fromarray(rng.integers(0, 255, (6, 5, 3), np.uint8)).resize((50, 60)).save(path)
    return [str(path) for path in paths]
