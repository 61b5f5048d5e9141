"""The command line as a whole: verbs, exit codes, json on standard output."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import pytest
from tests.cli.conftest import Run
from typer.main import get_command

from caplens.cli import ORDER, build_app
from caplens.metrics import known_metrics


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
        assert f"Example: caplens {' '.join(verb)}" in shown.stdout, f"{verb} has no example"
        assert not re.search(r"<[a-z]", shown.stdout), f"{verb} shows types of Python"
        assert "left out.  [required]" not in shown.stdout


def test_examples_of_the_help_are_commands_that_parse() -> None:
    """Every option in an example is one that the verb has."""

    def walk(command: Any, path: list[str]) -> None:
        for name, below in getattr(command, "commands", {}).items():
            walk(below, [*path, name])
        found = re.search(r"Example: (caplens .*?)(?:\n\n|\Z)", command.help or "", re.S)
        if found is not None:
            words = shlex.split(found[1])
            assert words[1 : 1 + len(path)] == path
            options = {option for parameter in command.params for option in parameter.opts}
            assert {word for word in words if word.startswith("-")} <= options

    walk(get_command(build_app()), [])


@pytest.mark.parametrize("terminal", [False, True])
def test_every_option_has_a_meaning_and_a_word_for_its_value(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)

    def walk(command: Any) -> None:
        for below in getattr(command, "commands", {}).values():
            walk(below)
        for parameter in command.params:
            assert parameter.help, f"{command.name} {parameter.name}"
            flag = getattr(parameter, "is_flag", False) or parameter.name == "help"
            assert flag or parameter.metavar, f"{command.name} {parameter.name}"

    walk(get_command(build_app()))


def test_a_metric_is_shown_with_the_meaning_and_default_of_every_option(run: Run) -> None:
    shown = run("metrics", "cider-r").stdout
    assert re.search(r"^k_r +0\.8 +weight of the repetition penalty", shown, re.M)
    assert "`" not in shown
    for name in known_metrics():
        options = json.loads(run("metrics", name, "--json").stdout)["options"]
        assert all(option["meaning"] for option in options), name


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
    shown = run("metrics")
    assert (shown.code, shown.stderr) == (130, "caplens: interrupted\n")
