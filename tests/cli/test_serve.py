"""`caplens serve` and `caplens export` on the command line: what they refuse, and what they say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.schemas import check_output

from caplens.evaluation.evaluate import evaluate

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    folder.mkdir()
    for name, caption in (("one", "a cat"), ("two", "a dog")):
        evaluate([caption, "a bus"], [["a cat"], ["a bus"]], metrics=["rouge-l"]).to_json(folder / f"{name}.json")
    return folder


def test_an_export(run: Run, runs: Path, tmp_path: Path) -> None:
    found = check_output("export", run("export", runs, tmp_path / "site", "--json").stdout)
    assert (found["runs"], found["captions"], found["compared"]) == (2, 4, ["one", "two"])
    (runs / "broken.json").write_text('{"captions": 1, "ids": [', "utf-8")
    outcome = run("export", runs, tmp_path / "site")
    assert outcome.code == 2
    assert "wrote 2 runs, 4 captions, 0 pictures" in outcome.stdout
    assert "broken was left out: broken.json: is not json" in outcome.stderr


def test_what_it_lacks_is_said_with_the_command_that_gets_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("fastapi", "uvicorn"):
        monkeypatch.setitem(sys.modules, module, None)
    outcome = run("serve", "--state", tmp_path)
    assert outcome.code == 2
    assert "caplens serve needs fastapi and uvicorn: pip install 'caplens[serve]'" in outcome.stderr


def test_a_server_for_others_needs_a_token(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CAPLENS_TOKEN", raising=False)
    outcome = run("serve", "--host", "0.0.0.0", "--state", tmp_path)
    assert outcome.code == 2
    assert "on 0.0.0.0 everybody in reach could use this server" in outcome.stderr
    monkeypatch.setenv("CAPLENS_TOKEN", "short")
    assert "the token has 5 characters" in run("serve", "--state", tmp_path).stderr


def test_what_is_no_folder_and_no_free_port_is_said(run: Run, tmp_path: Path) -> None:
    assert "nowhere: is no folder" in run("serve", "nowhere", "--state", tmp_path).stderr
    assert "nowhere: is no folder" in run("export", tmp_path, tmp_path / "site", "--images", "nowhere").stderr
    outcome = run("serve", "--host", "192.0.2.1", "--token", "--state", tmp_path)  # an address that nobody has
    assert outcome.code == 2
    assert "cannot listen on 192.0.2.1" in outcome.stderr
