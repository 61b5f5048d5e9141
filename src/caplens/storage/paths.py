"""Where caplens keeps its files: data that was fetched, and a cache that may be deleted at any time."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def data_folder() -> Path:
    """Return the folder of downloaded weights and data: $CAPLENS_DATA, else the user's data folder."""
    chosen = os.environ.get("CAPLENS_DATA")
    return Path(chosen) if chosen else Path(platformdirs.user_data_dir("caplens", appauthor=False))


def cache_folder() -> Path:
    """Return the folder of what can be made again (indexes, embeddings): $CAPLENS_CACHE, else the user's cache."""
    chosen = os.environ.get("CAPLENS_CACHE")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("caplens", appauthor=False))
