"""A small share of the fuzzing that `make sanitize` does."""

from __future__ import annotations

from tests.fuzz import fuzz


def test_kernels_survive_any_text() -> None:
    fuzz(4000, seed=1)
