"""Which metrics run: defaults, groups, aliases; the same in Python and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import caplens
from caplens import CaptionSet
from caplens.cli import main
from caplens.core.errors import CaplensWarning, MissingData
from caplens.metrics import GROUPS, default_metrics, expand_groups, known_metrics

TEXTS, REFERENCES, IMAGES = ["a cat"], [["a cat sits"]], ["cat.jpg"]


def test_groups_name_metrics_that_exist() -> None:
    assert {name for names in GROUPS.values() for name in names} <= set(known_metrics())


def test_defaults_look_at_everything_given() -> None:
    both = default_metrics(CaptionSet.of(TEXTS, REFERENCES, IMAGES))
    assert {"cider-r", "meteor", "clip-s", "infometic"} <= set(both)
    assert not {"clip-s", "infometic"} & set(default_metrics(CaptionSet.of(TEXTS, REFERENCES)))
    assert default_metrics(CaptionSet.of(TEXTS, images=IMAGES)) == ["clip-s", "pac-s", "infometic"]


def test_with_nothing_to_compare_the_message_says_what_to_add() -> None:
    with pytest.raises(MissingData, match=r"add references .* or pictures"):
        caplens.evaluate(TEXTS)


def test_a_group_leaves_out_what_cannot_run() -> None:
    captions = CaptionSet.of(TEXTS, REFERENCES)
    assert "clip-s" not in expand_groups(["all"], captions)
    assert {"cider-d", "length"} <= set(expand_groups(["all"], captions))
    assert expand_groups(["picture", "cider-d"], captions) == ["cider-d"]
    assert expand_groups(["clip-s"], captions) == ["clip-s"]  # asked for by name: the report says why not


def test_python_and_command_line_have_the_same_defaults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": "1", "caption": TEXTS[0], "references": REFERENCES[0]}]
    (tmp_path / "captions.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    with pytest.raises(SystemExit):
        main(["score", str(tmp_path / "captions.jsonl"), "--json"])
    shown = json.loads(capsys.readouterr().out)
    with pytest.warns(CaplensWarning, match="one image"):
        assert list(shown["metrics"]) == list(caplens.evaluate(TEXTS, REFERENCES).results)


def test_results_are_found_by_alias() -> None:
    report = caplens.evaluate(TEXTS * 2, [*REFERENCES, ["a dog"]], metrics="cider")
    assert report["cider"] is report["cider-d"]
    with pytest.raises(KeyError, match="was not computed"):
        report["rouge-l"]
