"""Fixtures for all tests: where the real data is, and what makes a test skip."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if SHARED.is_dir():
        return
    absent = pytest.mark.skip(reason="the real data (a folder named shared beside the repository) is not here")
    for item in items:
        if item.get_closest_marker("shared"):
            item.add_marker(absent)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Bytes name a test by their kind alone: a gzip header carries the second, and workers must collect the same."""
    return "bytes" if isinstance(val, bytes) else None


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the real data; tests that ask for it carry the mark `shared`."""
    return SHARED
