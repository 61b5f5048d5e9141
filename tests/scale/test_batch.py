"""A batch of somebody else's pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caplens
from caplens.core.errors import InputError
from caplens.text.idf import build_idf


def test_a_batch_scores_as_the_whole_does(rows: list[dict[str, Any]], whole: Path) -> None:
    table = build_idf([row["references"] for row in rows])
    alone = caplens.evaluate(caplens.read(whole), metrics=["rouge-l", "cider-d"])
    columns = {name: [row[name] for row in rows[:10]] for name in rows[0]}
    for batch in (columns, {name: np.array(column, dtype=object) for name, column in columns.items()}):
        scores = caplens.score_batch(batch, ["rouge-l", "cider-d"], idf=table)
        for name in ("rouge-l", "cider-d"):
            assert scores[name].tobytes() == alone[name].scores[:10].tobytes()


def test_a_data_frame_is_a_batch(rows: list[dict[str, Any]]) -> None:
    pandas = pytest.importorskip("pandas")
    scores = caplens.score_batch(pandas.DataFrame(rows[:3]), "length,rouge-l")
    assert list(scores) == ["length", "rouge-l"]
    assert scores["length"].tolist() == [float(len(row["caption"].split())) for row in rows[:3]]


def test_idf_over_one_batch_would_be_wrong(rows: list[dict[str, Any]]) -> None:
    batch = {"caption": ["a cat"], "references": [["a cat"]]}
    with pytest.raises(InputError, match="cider-d cannot score a batch alone"):
        caplens.score_batch(batch, "cider-d")
    with pytest.raises(InputError, match="caption_column"):
        caplens.score_batch({"words": ["a cat"]}, "length")
    assert caplens.score_batch({"words": ["a cat"]}, "length", caption_column="words")["length"].tolist() == [2.0]
