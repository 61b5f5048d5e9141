"""What all verbs of `caplens train` share: settings, options, progress from the first second, and what they say."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.schemas import check_output

from caplens.cli import train
from caplens.core.progress import Progress

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

VERBS = ("captioner", "composite", "encoder", "infometic", "nneval", "pac-s")
MODULES = {verb: f"caplens.training.{verb.partition('-')[0]}" for verb in VERBS}
FIGURES: dict[str, dict[str, Any]] = {
    "captioner": {"val": {"cider-r": 0.5}},
    "composite": {"feature weights": {"meaning": 0.5}, "held_out_right_order": "0.9"},
    "encoder": {"val": {"text to image R@1": 0.396}, "test": {"text to image R@1": 0.4}},
    "infometic": {"steps": 20, "best step": 20, "loss": 1.5, "replaced word lowest": 0.8, "words right at β": 0.9},
    "nneval": {"kendall": "0.41", "epoch": "7"},
    "pac-s": {"steps": 2000, "best step": 500, "validation loss": 2.5},
}


@pytest.fixture
def arguments(tmp_path: Path) -> dict[str, list[object]]:
    """What every verb has to be given."""
    (tmp_path / "captions.json").write_text('{"a": ["a cat"]}')
    (tmp_path / "rated.jsonl").write_text('{"caption": "a", "references": ["b"], "rating": 3}')
    captions = tmp_path / "captions.json"
    pictures = ["--images", tmp_path, "--captions", captions]
    given = {
        "composite": ["--human", captions, "--background", captions],
        "nneval": ["--human", captions, "--machine", captions, "--validation", tmp_path / "rated.jsonl"],
    }
    return {verb: [*given.get(verb, pictures), "--output", tmp_path / "run"] for verb in VERBS}


@pytest.mark.parametrize("verb", VERBS)
def test_every_training_takes_the_same_options(verb: str, run: Run) -> None:
    shown = run("train", verb, "--help").stdout
    options = re.findall(r"^ +(-[^ ]*(?:, --[^ ]+)?) ([A-Z.a-z=]+)", shown, re.MULTILINE)
    assert {("--output", "DIR"), ("--config", "FILE.toml"), ("-o, --option", "KEY=VALUE")} <= set(options)
    assert ("--json", "FILE") in options
    assert f"Example: caplens train {verb} " in shown
    assert "<" not in shown


@pytest.mark.parametrize("verb", VERBS)
def test_settings_reach_the_training_and_its_end_says_where_the_weights_are(
    verb: str, run: Run, arguments: dict[str, list[object]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`-o` comes after the file; progress is shown before anything is loaded."""
    events: list[str] = []
    configs: list[Any] = []

    @contextmanager
    def bars() -> Iterator[Progress]:
        yield lambda task, done, total: events.append(f"{task} {done}/{total}")

    def load(*packages: str, purpose: str) -> None:
        events.append("load")

    def stand_in(*given: Any, progress: Progress, **options: Any) -> dict[str, Any]:
        configs.append(next(value for value in given if type(value).__name__.endswith("Config")))
        return {"weights": "run/x.safetensors", **FIGURES[verb]}

    monkeypatch.setattr(train, "progress_bar", bars)
    monkeypatch.setattr(train, "require", load)
    monkeypatch.setattr(importlib.import_module(MODULES[verb]), "train", stand_in)
    (tmp_path / "settings.toml").write_text("seed = 5\n")
    shown = run("train", verb, *arguments[verb], "--config", tmp_path / "settings.toml")
    assert shown.code == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[-1] == "weights: run/x.safetensors"
    assert len(lines) > 1
    run("train", verb, *arguments[verb], "--config", tmp_path / "settings.toml", "-o", "seed=6")
    assert [config.seed for config in configs] == [5, 6]
    assert events == ["getting ready 0/1", "load", "getting ready 1/1"] * 2
    result = check_output("train", run("train", verb, *arguments[verb], "--json").stdout)
    assert result == {"weights": "run/x.safetensors", **FIGURES[verb]}


@pytest.mark.parametrize("verb", VERBS)
def test_a_misspelled_setting_is_refused(verb: str, run: Run, arguments: dict[str, list[object]]) -> None:
    shown = run("train", verb, *arguments[verb], "-o", "sed=6")
    assert shown.code == 2
    assert "--option: there is no setting 'sed'; there are: " in shown.stderr
