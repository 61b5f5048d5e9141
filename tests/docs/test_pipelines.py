"""The examples of the guide for other people's pipelines, run as they are printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import caplens

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "scale.md"
ROWS = [
    {"id": "1", "caption": "a cat sits", "references": ["a cat", "the cat sits"]},
    {"id": "2", "caption": "a dog", "references": ["two dogs run"]},
    {"id": "3", "caption": "", "references": ["a bird"]},
]


def scored_by_example(title: str, data: Any) -> Any:
    """What the example under this title makes of some data."""
    (example,) = re.findall(rf"```python\n# {title}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    names = {"caplens": caplens, "data": data}
    exec(example, names)
    return names["scored"]


def check(scored: list[dict[str, Any]]) -> None:
    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    expected = caplens.score_batch(columns, "rouge-l,length")
    assert [row["id"] for row in scored] == columns["id"]
    for name, column in expected.items():
        assert [row[name] for row in scored] == column.tolist()


def test_datasets() -> None:
    datasets = pytest.importorskip("datasets")
    check(scored_by_example("Hugging Face datasets", datasets.Dataset.from_list(ROWS)).to_list())


def test_ray_data() -> None:
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    ray.init(num_cpus=2, object_store_memory=80_000_000, include_dashboard=False, log_to_driver=False)
    try:
        check(scored_by_example("Ray Data", ray.data.from_items(ROWS)).take_all())
    finally:
        ray.shutdown()


def test_spark() -> None:
    # Not among the packages for development: 490 MB for one example.
    sql = pytest.importorskip("pyspark.sql", reason="Spark needs Java and pip install pyspark")
    session = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        rows = session.createDataFrame(ROWS, "id string, caption string, references array<string>")
        check([row.asDict() for row in scored_by_example("Spark", rows).collect()])
    finally:
        session.stop()
