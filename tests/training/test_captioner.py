"""The captioner learns twenty pictures by heart, and the reward rises when a metric teaches it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

import torch

from caplens.training.captioner import CaptionerConfig, Pictures, fit
from caplens.training.captioner_network import Captioner, FeatureSpec

SPEC = FeatureSpec("random", "none", 1)
CONFIG = CaptionerConfig(
    width=64,
    heads=4,
    refining_layers=1,
    dropout=0.0,
    least_count=1,
    longest=8,
    batch=20,
    cross_entropy_epochs=60,
    learning_rate=5e-3,
    self_critical_epochs=0,
)


@pytest.fixture(scope="module")
def pictures() -> Pictures:
    """Twenty pictures of random features, each with one caption of its own."""
    generator = torch.Generator().manual_seed(2)
    subjects, actions = ("dog", "cat", "girl", "horse", "bird"), ("runs", "sleeps", "jumps", "waits")
    return Pictures(
        ids=[str(number) for number in range(20)],
        features=torch.randn(20, 5, 12, generator=generator).half(),
        references=[[f"a {subject} {action} outside"] for subject in subjects for action in actions],
    )


@pytest.fixture(scope="module")
def learned(pictures: Pictures, tmp_path_factory: pytest.TempPathFactory) -> tuple[Captioner, Path]:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("learned")
    return fit(pictures, CONFIG, SPEC, folder), folder


def test_cross_entropy_learns_twenty_pictures_by_heart(learned: tuple[Captioner, Path], pictures: Pictures) -> None:
    captioner, folder = learned
    said = captioner.caption(pictures.features)
    assert sum(text == reference[0] for text, reference in zip(said, pictures.references, strict=True)) >= 19
    again = Captioner.load(folder / "captioner.safetensors")
    assert again.caption(pictures.features) == said


@pytest.mark.filterwarnings("ignore:.*have no words")  # some first samples end at once, which CIDEr-R remarks
@pytest.mark.parametrize(("metric", "baseline"), [("cider-d", "greedy"), ("cider-r", "leave-one-out")])
def test_the_reward_rises_in_the_self_critical_phase(
    metric: str, baseline: Literal["greedy", "leave-one-out"], pictures: Pictures, tmp_path: Path
) -> None:
    torch.set_num_threads(1)
    config = replace(
        CONFIG,
        cross_entropy_epochs=6,
        self_critical_epochs=25,
        self_critical_learning_rate=3e-3,
        baseline=baseline,
        reward=metric,
    )
    fit(pictures, config, SPEC, tmp_path)
    rewards = [json.loads(line).get("reward") for line in (tmp_path / "curve.jsonl").read_text().splitlines()][6:]
    assert np.mean(rewards[-5:]) > 1.2 * np.mean(rewards[:5])


def test_a_run_that_was_stopped_ends_the_same(
    pictures: Pictures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(CONFIG, cross_entropy_epochs=2, self_critical_epochs=2, dropout=0.2, reward="cider-d")
    whole = fit(pictures, config, SPEC, tmp_path / "whole")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("caplens.captioning.reward.Reward.leave_one_out", stop)  # Ctrl-C in the third epoch
        with pytest.raises(KeyboardInterrupt):
            fit(pictures, config, SPEC, tmp_path / "parts")
    resumed = fit(pictures, config, SPEC, tmp_path / "parts")
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, resumed.model.state_dict()[name]), name


@pytest.mark.parametrize("epochs", [0, 2])
def test_each_phase_has_its_rate(epochs: int, pictures: Pictures, tmp_path: Path) -> None:
    """Cross entropy slows down epoch by epoch; what follows learns at its own rate from its first epoch on."""
    seen: list[float] = []
    step = torch.optim.Adam.step

    def watched(self: torch.optim.Adam) -> None:
        seen.append(self.param_groups[0]["lr"])
        step(self)

    config = replace(CONFIG, cross_entropy_epochs=epochs, self_critical_epochs=2, self_critical_learning_rate=1e-4)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(torch.optim.Adam, "step", watched)
        fit(pictures, replace(config, reward="cider-d"), SPEC, tmp_path)
    assert seen == pytest.approx([5e-3, 2.5e-3][:epochs] + [1e-4] * 2)
