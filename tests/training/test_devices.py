"""Trainings compute where they are told, in the numbers they are told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from tests.encoders.test_devices import Recorder
from tests.training.test_encoder import toy
from tests.training.test_pac import generated, projections
from typer.testing import CliRunner

from caplens.captioning.vocabulary import Vocabulary
from caplens.cli import build_app
from caplens.encoders.devices import Placement
from caplens.training.captioner import CaptionerConfig, CaptionerTask, Pictures
from caplens.training.captioner_network import AoANet, AoANetConfig, Captioner, FeatureSpec
from caplens.training.distributed import Processes
from caplens.training.encoder import EncoderConfig, EncoderTask
from caplens.training.infometic.config import InfoMeticConfig
from caplens.training.infometic.tensors import CaptionTensors, SplitTensors
from caplens.training.infometic.training import InfoMeticTask, new_network
from caplens.training.nneval import NNEvalConfig, NNEvalTask
from caplens.training.nneval import fit as fit_nneval
from caplens.training.pac import PacConfig, PacTask
from caplens.training.run import TrainingRun
from caplens.training.trainer import Task

META = Placement("meta")
"""A device that refuses to mix with any other, and has no values to be asked for."""


def pac(place: Placement) -> Task:
    return PacTask(projections(), toy(), toy(40, 1), generated(), 20.0, PacConfig(batch=16), Processes(), place)


def encoder(place: Placement) -> Task:
    return EncoderTask(toy(), toy(40, 1), EncoderConfig(batch=16, hidden=8, dimension=8), place)


def nneval(place: Placement) -> Task:
    features, labels = np.random.default_rng(0).random((40, 5)), np.arange(40, dtype=np.float32) % 2
    return NNEvalTask(features, labels, features, labels.astype(np.float64), NNEvalConfig(batch=8), place)


def captioner(place: Placement) -> Task:
    texts = [["a cat sits", "the cat"], ["a dog runs fast"]]
    vocabulary = Vocabulary.from_captions((text for pair in texts for text in pair), 1)
    model = AoANet(AoANetConfig(features=6, vocabulary=len(vocabulary), width=8, heads=2, refining_layers=1))
    pictures = Pictures(["1", "2"], torch.rand(2, 4, 6).half(), texts)
    made = Captioner(model, vocabulary, FeatureSpec("embedded", "x", 2))
    return CaptionerTask(made, pictures, CaptionerConfig(batch=2), Path("unused"), place)


def infometic(place: Placement) -> Task:
    """Four pictures of three regions, with two captions of five tokens each."""
    random, width = np.random.default_rng(0), 16

    def vectors(*shape: int) -> torch.Tensor:
        return torch.from_numpy(random.normal(size=(*shape, width)).astype(np.float32))

    words = torch.tensor([[32, 0, 1, 2, 32]] * 8)
    right = torch.zeros(8, 32, dtype=torch.bool)
    right[:, :2] = True
    captions = CaptionTensors(
        torch.from_numpy(random.integers(0, 30, (8, 5))),
        torch.ones(8, 5, dtype=torch.bool),
        words,
        right,
        torch.roll(right, 2, dims=1),
        vectors(8),
        vectors(8),
        torch.arange(8) // 2,
        np.arange(8),
    )
    split = SplitTensors(
        vectors(4, 5),
        torch.rand(4, 5, 4),
        torch.ones(4, 5, dtype=torch.bool),
        vectors(4),
        vectors(4),
        captions,
        captions,
        torch.ones(8, 5, dtype=torch.bool),
        [np.array([2 * picture, 2 * picture + 1]) for picture in range(4)],
        vectors(4),
        np.array([[other for other in range(4) if other != picture] for picture in range(4)]),
    )
    config = InfoMeticConfig(width=width, batch=4, group=2, fine_batch=4)
    network = new_network(None, width, config, 20.0)
    return InfoMeticTask(network, vectors(30).numpy(), split, split, config, 20.0, place)


TASKS = pytest.mark.parametrize("make", [pac, encoder, nneval, captioner, infometic])


@TASKS
def test_every_tensor_of_a_step_is_on_the_device(make) -> None:  # type: ignore[no-untyped-def]
    """On the meta device: a tensor left elsewhere, or a number that is asked for within a step, would raise."""
    task: Task = make(META)
    optimizer = torch.optim.Adam(parameter for parameter in task.model.parameters() if parameter.requires_grad)
    for number in range(4):  # InfoMetIC's fourth step is a fine one
        loss, figures, _ = task.step(number)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        assert loss.device.type == "meta"
        assert all(isinstance(value, torch.Tensor) for value in figures.values())
    assert {parameter.device.type for parameter in task.model.parameters()} == {"meta"}


@TASKS
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_products_are_in_the_type_that_was_asked_for(make, dtype: str) -> None:  # type: ignore[no-untyped-def]
    task: Task = make(Placement("cpu", dtype))
    with Recorder() as recorder, task.place.autocast():
        loss = task.step(0).loss
    types = {found for _, found in recorder.seen}
    assert torch.float64 not in types
    assert (torch.bfloat16 in types) == (dtype == "bfloat16")
    assert torch.isfinite(loss)
    assert {parameter.dtype for parameter in task.model.parameters()} == {torch.float32}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_training_in_any_type_learns_and_says_so(dtype: str, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    labels = np.arange(200, dtype=np.float32) % 2
    features = random.normal(size=(200, 4)) + labels[:, None]
    place, config = Placement("cpu", dtype), NNEvalConfig(epochs=5, learning_rate=0.01)
    run = TrainingRun(tmp_path, dict(place.parts))
    network = fit_nneval(features, labels, features, labels.astype(np.float64), run, config, place=place)
    assert float(network.about["kendall"]) > 0.5
    saved = json.loads((tmp_path / "config.json").read_text())
    assert saved.get("dtype") == (None if dtype == "float32" else dtype)


@pytest.mark.parametrize("verb", ["captioner", "encoder", "infometic", "nneval", "pac-s"])
def test_every_verb_that_trains_takes_a_device(verb: str) -> None:
    shown = CliRunner().invoke(build_app(), ["train", verb, "--help"], terminal_width=200).output
    assert all(option in shown for option in ("--device", "--dtype", "--batch-size"))
