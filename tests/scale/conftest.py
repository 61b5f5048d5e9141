"""Captions as one file and as shards of it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

WORDS = list("abcdefghijklmnopqrst")


def make_rows(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Captions with two to four references that share many of their words."""
    draw = random.Random(seed)

    def text() -> str:
        return " ".join(draw.choice(WORDS) for _ in range(draw.randint(4, 11)))

    return [
        {"id": f"row-{number}", "caption": text(), "references": [text() for _ in range(draw.randint(2, 4))]}
        for number in range(count)
    ]


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_shards(folder: Path, rows: list[dict[str, Any]], shards: int) -> Path:
    size = -(-len(rows) // shards)
    for number in range(shards):
        write_lines(folder / f"part-{number:03d}.jsonl", rows[number * size : (number + 1) * size])
    return folder


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    return make_rows(120)


@pytest.fixture
def whole(tmp_path: Path, rows: list[dict[str, Any]]) -> Path:
    """All rows in one file."""
    return write_lines(tmp_path / "whole.jsonl", rows)


@pytest.fixture
def folder(tmp_path: Path, rows: list[dict[str, Any]]) -> Path:
    """The same rows in five shards."""
    return write_shards(tmp_path / "data", rows, 5)
