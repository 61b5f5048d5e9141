"""The command line as a whole: verbs, exit codes, json on standard output."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.cli.conftest import Run
from typer.main import get_command

from caplens.cli import ORDER, build_app


def test_every_verb_file_is_a_command_with_help_and_json(run: Run) -> None:
    def walk(command: Any, path: list[str]) -> list[list[str]]:
        below = getattr(command, "commands", None)
        return [path] if below is None else [leaf for name in below for leaf in walk(below[name], [*path, name])]

    verbs = walk(get_command(build_app()), [])
    assert {"score", "compare", "metrics", "doctor"} <= {verb[0] for verb in verbs}
    for verb in verbs:
        shown = run(*verb, "--help")
        assert shown.code == 0
        assert "--json" in shown.stdout, f"{verb} has no --json"


def test_help_lists_the_verbs_in_the_order_of_use(run: Run) -> None:
    shown = run("--help").stdout
    listed = [name for name in ORDER if f"\n  {name} " in shown]
    places = [shown.index(f"\n  {name} ") for name in listed]
    assert {"metrics", "doctor"} <= set(listed)
    assert places == sorted(places)


def test_metrics_as_json_is_the_only_thing_on_stdout(run: Run) -> None:
    shown = run("metrics", "--json")
    assert shown.code == 0
    assert isinstance(json.loads(shown.stdout), list)


def test_a_misspelt_metric_exits_with_2_and_a_hint(run: Run) -> None:
    shown = run("metrics", "zzz")
    assert shown.code == 2
    assert shown.stdout == ""
    assert "no metric is called 'zzz'" in shown.stderr


def test_a_misspelt_verb_exits_with_2(run: Run) -> None:
    assert run("scroe").code == 2


def test_an_unwritable_file_exits_with_2_and_names_it(run: Run) -> None:
    shown = run("metrics", "--json", "/proc/nothing/out.json")
    assert shown.code == 2
    assert "/proc/nothing" in shown.stderr


def test_doctor_finds_this_installation_whole(run: Run) -> None:
    shown = run("doctor", "--json", "-")
    answer = json.loads(shown.stdout)
    assert (shown.code, answer["ok"]) == (0, True)
    found = {entry["what"]: entry["state"] for entry in answer["findings"]}
    assert found["native kernels"] == "ok"
    assert found["numpy"] == "ok"


def test_interruption_exits_with_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> list[dict[str, object]]:
        raise KeyboardInterrupt

    monkeypatch.setattr("caplens.metrics.list_metrics", interrupted)
    assert run("metrics").code == 130
