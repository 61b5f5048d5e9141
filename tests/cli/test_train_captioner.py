"""`caplens train captioner` on a few real pictures: features, both phases, going on, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.schemas import check_output

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from caplens.captioning.captioner import Captioner
from caplens.core.errors import MissingData
from caplens.encoders.load import load_encoder

EXAMPLES = Path(__file__).parents[2] / "examples"
SETTINGS = """
width = 16
heads = 2
refining_layers = 1
grid = 2
least_count = 1
longest = 8
cross_entropy_epochs = 2
self_critical_epochs = 1
"""


@pytest.fixture
def arguments(tmp_path: Path) -> list[object]:
    try:
        load_encoder("embedded")
    except MissingData as missing:
        pytest.skip(str(missing))
    rows = [json.loads(line) for line in (EXAMPLES / "captions.jsonl").read_text().splitlines()][:4]
    table = {
        Path(row["image"]).name: {"split": "train" if number < 3 else "val", "captions": row["references"]}
        for number, row in enumerate(rows)
    }
    (tmp_path / "captions.json").write_text(json.dumps(table))
    (tmp_path / "settings.toml").write_text(SETTINGS)
    return [
        "train",
        "captioner",
        "--images",
        EXAMPLES / "images",
        "--captions",
        tmp_path / "captions.json",
        "--config",
        tmp_path / "settings.toml",
        "--features",
        tmp_path / "features",
    ]


def test_it_trains_and_the_same_command_trains_the_same(run: Run, arguments: list[object], tmp_path: Path) -> None:
    first = run(*arguments, "--output", tmp_path / "one", "-o", "reward=cider-d", "--json")
    assert first.code == 0, first.stderr
    reached = check_output("train", first.stdout)
    assert reached["training pictures"] == 3
    assert set(reached["val"]) == {"cider-r", "cider-d", "rouge-l", "bleu-4"}
    curve = [json.loads(line) for line in (tmp_path / "one" / "curve.jsonl").read_text().splitlines()]
    assert [set(point) for point in curve] == [{"epoch", "cross_entropy"}] * 2 + [{"epoch", "reward"}]
    assert (tmp_path / "one" / "curve.png").stat().st_size > 1000
    assert reached.pop("weights") == str(tmp_path / "one" / "captioner.safetensors")
    again = json.loads(run(*arguments, "--output", tmp_path / "two", "-o", "reward=cider-d", "--json").stdout)
    assert again.pop("weights") == str(tmp_path / "two" / "captioner.safetensors")
    assert again == reached
    weights = [(tmp_path / name / "captioner.safetensors").read_bytes() for name in ("one", "two")]
    assert weights[0] == weights[1]
    further = run(*arguments, "--output", tmp_path / "three", "--weights", tmp_path / "one" / "captioner.safetensors")
    assert further.code == 0, further.stderr
    assert further.stdout.splitlines()[-1] == f"weights: {tmp_path / 'three' / 'captioner.safetensors'}"
    assert further.stdout.startswith("val: cider-r ")
    assert Captioner.load(tmp_path / "three" / "captioner.safetensors").network.config.width == 16


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["-o", "reward=cider-x"], "cider-x"),
        (["-o", "baseline=mean"], "choose from greedy, leave-one-out"),
        (["--encoder", "RN99"], "no encoder is called 'RN99'"),
        (["--weights", "nowhere.safetensors"], "there is no captioner here"),
    ],
)
def test_what_it_refuses(run: Run, arguments: list[object], tmp_path: Path, more: list[str], reason: str) -> None:
    shown = run(*arguments, "--output", tmp_path / "one", *more)
    assert shown.code == 2
    assert reason in shown.stderr


def test_a_broken_picture_is_named(run: Run, arguments: list[object], tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    names = list(json.loads((tmp_path / "captions.json").read_text()))
    (pictures / names[0]).write_bytes(b"no picture")
    given = [pictures if argument == EXAMPLES / "images" else argument for argument in arguments]
    shown = run(*given, "--output", tmp_path / "one")
    assert shown.code == 2
    assert names[0] in shown.stderr
