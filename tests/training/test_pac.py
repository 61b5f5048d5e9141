"""Positive-augmented learning: the loss of eq. 3, early stopping, resuming, several processes, CLIP's projections."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch")

import torch
from tests.training.test_encoder import nothing, toy

from caplens.training import pac
from caplens.training.contrastive import recall, symmetric_loss
from caplens.training.distributed import Processes
from caplens.training.pac import Generated, PacConfig, PacTask, clip_projections, fit
from caplens.training.run import TrainingRun

CONFIG = PacConfig(batch=24, patience=40, validate_every=10, steps=60, learning_rate=1e-2)


def projections(seed: int = 0) -> dict[str, torch.nn.Linear]:
    torch.manual_seed(seed)
    return {"image": torch.nn.Linear(20, 6, bias=False), "text": torch.nn.Linear(12, 6, bias=False)}


def generated() -> Generated:
    other = toy()
    pictures = other.pictures + np.float32(0.3)
    pictures[::3] = np.nan  # held back by the safety checker
    return Generated(pictures, other.texts[1::2].copy())


def test_the_loss_is_equation_3() -> None:
    heads, train, new = projections(), toy(), generated()
    rows, captions = torch.arange(9), torch.arange(9) * 2
    loss = PacTask(heads, train, toy(40, 1), new, 20.0, CONFIG, Processes()).loss(rows, captions)
    v = heads["image"](torch.from_numpy(train.pictures)[rows])
    t = heads["text"](torch.from_numpy(train.texts)[captions])
    present = [row for row in range(9) if row % 3]
    expected = (
        symmetric_loss(v, t, 20.0)
        + 0.05 * symmetric_loss(heads["image"](torch.from_numpy(new.pictures)[present]), t[present], 20.0)
        + 0.1 * symmetric_loss(v, heads["text"](torch.from_numpy(new.captions)[rows]), 20.0)
    )
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)


def test_it_learns_and_keeps_the_best(tmp_path: Path) -> None:
    heads, val = projections(), toy(40, seed=1)
    config = replace(CONFIG, steps=400, patience=200)
    result = fit(heads, toy(), val, generated(), 20.0, config, TrainingRun(tmp_path, {}), nothing)
    with torch.no_grad():
        pictures = heads["image"](torch.from_numpy(val.pictures)).numpy()
        captions = heads["text"](torch.from_numpy(val.ordered_texts)).numpy()
        again = PacTask(heads, toy(), val, Generated(), 20.0, config, Processes()).validate()
    assert recall(pictures, captions, val.owner)[0] > 0.4  # chance is 0.025
    assert again["validation_loss"] == pytest.approx(result["validation loss"])


def test_it_stops_when_nothing_gets_better(tmp_path: Path) -> None:
    config = replace(CONFIG, learning_rate=0.0, steps=1000)
    heads = projections()
    before = {name: value.clone() for name, value in heads["image"].state_dict().items()}
    result = fit(heads, toy(), toy(40, 1), Generated(), 20.0, config, TrainingRun(tmp_path, {}), nothing)
    assert (result["steps"], result["best step"]) == (40, 0)
    assert all(torch.equal(before[name], value) for name, value in heads["image"].state_dict().items())


class _Killed(Exception):
    pass


def test_an_interrupted_run_ends_with_the_same_weights(tmp_path: Path) -> None:
    def stop(task: str, done: int, total: int) -> None:
        if done == 37:
            raise _Killed

    whole, part, resumed = projections(), projections(), projections()
    fit(whole, toy(), toy(40, 1), generated(), 20.0, CONFIG, TrainingRun(tmp_path / "whole", {}), nothing)
    with pytest.raises(_Killed):
        fit(part, toy(), toy(40, 1), generated(), 20.0, CONFIG, TrainingRun(tmp_path / "part", {}), stop)
    fit(resumed, toy(), toy(40, 1), generated(), 20.0, CONFIG, TrainingRun(tmp_path / "part", {}), nothing)
    assert torch.equal(whole["image"].weight, resumed["image"].weight)
    assert torch.equal(whole["text"].weight, resumed["text"].weight)


def learn(data: Path, output: Path) -> None:
    """`caplens train pac-s` over a small random CLIP; every third positive is missing."""
    from tests.encoders.random_clip import random_encoder

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pac, "load_clip", lambda *_, **__: random_encoder())
        pac.train(
            data,
            data / "captions.json",
            [],
            output,
            replace(CONFIG, batch=16, steps=20),
            encoder="ViT-B-32",
            new_captions="retrieved",
            new_images=str(data / "drawn"),
            features=data / "features",
        )


def test_torchrun_with_two_processes_learns_what_one_learns(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from safetensors.torch import load_file
    from tests.encoders.random_clip import random_encoder

    rng = np.random.default_rng(0)
    table, drawn = {}, []
    (tmp_path / "drawn").mkdir()
    for number in range(40):
        name = f"{number}.png"
        picture = Image.fromarray(rng.integers(0, 255, (20, 20, 3), np.uint8))
        picture.save(tmp_path / name)
        picture.rotate(90).save(tmp_path / "drawn" / name)
        table[name] = {"split": "train" if number < 30 else "val", "captions": [f"the cat {number}", f"dog {number}"]}
        drawn.append({"key": f"dog {number}", "image": name if number % 3 else ""})
    (tmp_path / "captions.json").write_text(json.dumps(table))
    (tmp_path / "drawn" / "pictures.jsonl").write_text("\n".join(json.dumps(entry) for entry in drawn))
    learn(tmp_path, tmp_path / "alone")
    program = tmp_path / "program.py"
    program.write_text(
        "import sys; from pathlib import Path; from tests.training.test_pac import learn\n"
        "learn(Path(sys.argv[1]), Path(sys.argv[2]))\n"
    )
    root = Path(__file__).resolve().parents[2]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    # Behind what is there: whoever tests a source tree finds it so.
    paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(root)]))
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    subprocess.run([*torchrun, program, tmp_path, tmp_path / "both"], env=environment, check=True, timeout=300)
    alone, both = (load_file(tmp_path / run / "pac.safetensors") for run in ("alone", "both"))
    untouched = random_encoder().model.text_projection.weight.T
    assert not torch.allclose(alone["text_projection"], untouched, atol=1e-2)
    for name, value in alone.items():
        torch.testing.assert_close(both[name], value, atol=1e-4, rtol=1e-3)


def test_clips_projections_are_copies() -> None:
    pytest.importorskip("transformers")
    from tests.encoders.random_clip import random_encoder

    encoder = random_encoder()
    copies = clip_projections(encoder)
    assert torch.equal(copies["image"].weight, encoder.model.visual_projection.weight)
    with torch.no_grad():
        copies["image"].weight.zero_()
    assert encoder.model.visual_projection.weight.abs().sum() > 0
