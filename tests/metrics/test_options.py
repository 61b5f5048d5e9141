"""Options are checked where a metric is made: a message that names the option, never a traceback and never a score."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.battery import NAMES

from caplens import load_metric
from caplens.core.errors import InputError
from caplens.metrics import known_metrics

NOT_NUMBERS: list[Any] = ["zero", "abc", None, True, float("nan"), float("inf"), -float("inf"), [], 1j]
WRONG: dict[str, dict[str, list[Any]]] = {
    "cider-d": {"sigma": [0, 0.0, -1, *NOT_NUMBERS]},
    "cider-r": {"k_r": [-0.1, 1.1, *NOT_NUMBERS], "formula": ["printed", None, 1]},
    "mid": {"ridge": [-0.1, 0, *NOT_NUMBERS]},
    "sent-sim": {"against": ["farthest", None, 1, ["nearest"]]},
    "bert-score": {
        "layer": [-1, 1.5, "last", True, float("nan")],
        "idf": ["yes", 1, None],
        "part": ["g", None],
        "baseline": [1, True],
    },
    "spice": {
        "backend": ["cpp", None],
        "timeout": [0, -1, *NOT_NUMBERS],
        "memory": ["lots", "8 G", "", 8, None, "-Xmx"],
        "jar": [1],
    },
    "caplens-score": {"picture": ["no", 0, None], "weights": [None, 1]},
    "nneval": {"weights": [None, 1, ""]},
    "em-score": {"frames": ["some", "every-0", 3, None], "idf": ["corpus", None, True]},
    "wmd": {"vectors": [None, 1]},
    "meteor": {"data": [1, True, ["a"]]},
}
EVERYWHERE: dict[str, list[Any]] = {
    "tokenizer": ["words", None, 3, ""],
    "parser": [None, 3],
    "text_encoder": [None, 3],
    "encoder": [None, 3, ["embedded"]],
    "prompt": [3, ["a"]],
    "regions": [None, 3],
    "allow_pickle": ["yes", 1, None],
    "allow_urls": ["yes", 1, None],
}
CASES = [
    (name, option, value)
    for name in NAMES
    for option, values in {
        **{option: values for option, values in EVERYWHERE.items() if option in known_metrics()[name].options()},
        **WRONG.get(name, {}),
    }.items()
    for value in values
]


@pytest.mark.parametrize(("name", "option", "value"), CASES, ids=lambda value: str(value)[:20])
def test_a_value_that_cannot_be_used_is_refused_by_name(name: str, option: str, value: object) -> None:
    with pytest.raises(InputError, match=rf"option {option} is .*; it takes") as refused:
        load_metric(name, **{option: value})
    assert len(str(refused.value)) < 200


def test_idf_that_is_no_source_is_refused() -> None:
    for value in (None, 3, 0.5, True, [1, 2], ["a cat"], {"a": 1}):
        with pytest.raises(InputError, match="option idf is"):
            load_metric("cider-d", idf=value)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("cider-d", {"sigma": 3}),
        ("cider-d", {"idf": [["a cat"], ["a dog"]]}),
        ("cider-d", {"idf": {"x": ["a cat"]}}),
        ("cider-d", {"idf": Path("table.safetensors")}),
        ("cider-r", {"k_r": 0}),
        ("cider-r", {"k_r": 1, "tokenizer": str.split}),
        ("spice", {"memory": "512m", "timeout": 0.5}),
        ("bert-score", {"layer": 0, "baseline": Path("table.csv")}),
        ("em-score", {"frames": "every-3", "idf": "none"}),
        ("meteor", {"data": None}),
    ],
)
def test_values_that_can_be_used_are_kept(name: str, options: dict[str, Any]) -> None:
    metric = load_metric(name, **options)
    assert {option: getattr(metric, option) for option in options} == options
