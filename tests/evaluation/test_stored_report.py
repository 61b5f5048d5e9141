"""Reports written as json and read again say the same, and compare as the captions themselves do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from caplens.core.errors import InputError
from caplens.evaluation.compare import compare
from caplens.evaluation.evaluate import evaluate
from caplens.evaluation.results import Report
from caplens.evaluation.stored_report import compare_stored, report_of

REFERENCES = {
    str(row): [f"a {color} cat on a mat", f"the {color} cat"] for row, color in enumerate(["black", "red"] * 8)
}
SYSTEMS = {
    "old": dict.fromkeys(REFERENCES, "a dog runs on grass"),
    "new": {name: texts[0] for name, texts in REFERENCES.items()},
}
METRICS = ["bleu-4", "rouge-l", "cider-d"]


def stored(name: str, order: int = 1, **options: Any) -> Report:
    captions = dict(list(SYSTEMS[name].items())[::order])
    report = evaluate(captions, REFERENCES, metrics=METRICS, **options)
    return report_of(json.loads(json.dumps(report.to_dict())), name)


def test_a_report_survives_its_json() -> None:
    report = stored("new")
    fresh = evaluate(SYSTEMS["new"], REFERENCES, metrics=METRICS)
    assert report.to_dict() == fresh.to_dict()
    assert report.intervals() == fresh.intervals()


def test_stored_reports_compare_as_the_captions_do() -> None:
    found = compare_stored({"old": stored("old"), "new": stored("new", order=-1)})
    fresh = compare(SYSTEMS, REFERENCES, metrics=METRICS)
    assert found.to_dict() == fresh.to_dict()
    assert found["bleu-4"].systems[1].difference is not None
    assert found["bleu-4"].systems[1].difference.verdict == "better"


def test_several_captions_of_a_picture_count_as_one() -> None:
    groups, references = ["a", "a", "b", "b"], {"a": ["a cat on a mat"], "b": ["a red bus"]}
    systems = {"old": ["a cat", "a mat", "a bus", "a car"], "new": ["a cat on a mat", "a cat", "a red bus", "a bus"]}
    reports = {
        name: report_of(evaluate(texts, references, groups=groups, metrics=["rouge-l"]).to_dict(), name)
        for name, texts in systems.items()
    }
    assert compare_stored(reports).captions == 2


def test_numbers_that_do_not_compare_are_not_compared() -> None:
    found = compare_stored({"old": stored("old"), "new": stored("new", sigma=3.0)})
    assert [*found.metrics] == ["bleu-4", "rouge-l"]
    assert "sigma:3" in found.errors["cider-d"]


def test_other_pictures_and_other_files_are_refused() -> None:
    report = stored("new")
    fewer = evaluate({"0": "a cat"}, {"0": ["a cat"]}, metrics=METRICS)
    with pytest.raises(InputError, match="15 ids differ, such as '1'"):
        compare_stored({"new": report, "fewer": fewer})
    with pytest.raises(InputError, match=r"here\.json: is not what `caplens score --json` writes"):
        report_of({"ids": ["a"]}, "here.json")


def test_a_metric_that_is_not_installed_costs_itself_only() -> None:
    content = evaluate(["a cat"], [["a cat"]], metrics=["rouge-l"]).to_dict()
    content["metrics"]["mine"] = content["metrics"]["rouge-l"]
    report = report_of(content, "run")
    assert [*report.results] == ["rouge-l"]
    assert "no metric is called 'mine'" in report.errors["mine"]
