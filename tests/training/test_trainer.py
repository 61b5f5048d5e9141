"""The loop that all trainings share: resuming, the best state, patience, rates, and what a run's folder holds."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

from caplens.core.errors import CaplensWarning, InputError
from caplens.training.run import TrainingRun

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

import torch
from torch.optim.lr_scheduler import ExponentialLR

from caplens.training.trainer import Fitted, Plan, Step, Task, Trainer, warm_up_cosine


class Line(Task):
    """A line fitted to noisy points that a generator of its own draws; the validations follow a script."""

    def __init__(self, validations: list[float] | None = None, dies_at: int | None = None) -> None:
        torch.manual_seed(0)
        self.model: torch.nn.Linear = torch.nn.Linear(2, 1)
        self.generator = torch.Generator().manual_seed(3)
        self.validations, self.dies_at = validations, dies_at
        self.modes: set[tuple[str, bool, bool]] = set()

    def step(self, number: int) -> Step:
        if number == self.dies_at:
            raise KeyboardInterrupt
        self.modes.add(("step", self.model.training, torch.is_grad_enabled()))
        points = torch.randn(8, 2, generator=self.generator)
        loss = ((self.model(points)[:, 0] - points.sum(dim=1)) ** 2).mean()
        return Step(loss, {"loss": loss.item()}, 8)

    def validate(self) -> dict[str, float]:
        self.modes.add(("validate", self.model.training, torch.is_grad_enabled()))
        return {"score": self.validations.pop(0)} if self.validations else {}


def train(folder: Path, task: Line, plan: Plan, config: object = None) -> Fitted:
    optimizer = torch.optim.Adam(task.model.parameters(), lr=0.1)
    run = TrainingRun(folder, {"config": config})
    return Trainer(task, optimizer, run, plan, scheduler=ExponentialLR(optimizer, 0.9)).fit()


PLAN = Plan(name="a line", steps=6, validate_every=2)


@pytest.mark.parametrize("dies_at", [1, 2, 3, 4, 5])
def test_resumed_training_is_the_same_training(dies_at: int, tmp_path: Path) -> None:
    whole, parts = Line(), Line()
    train(tmp_path / "whole", whole, PLAN)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "parts", Line(dies_at=dies_at), PLAN)
    train(tmp_path / "parts", parts, PLAN)
    assert torch.equal(whole.model.weight, parts.model.weight)
    assert torch.equal(whole.model.bias, parts.model.bias)
    assert (tmp_path / "whole/curve.jsonl").read_text() == (tmp_path / "parts/curve.jsonl").read_text()
    assert (tmp_path / "parts/curve.png").read_bytes()[1:4] == b"PNG"
    assert not list(tmp_path.rglob("*.part"))
    assert whole.modes == {("step", True, True), ("validate", False, False)}


def test_a_point_after_the_last_checkpoint_does_not_survive(tmp_path: Path) -> None:
    train(tmp_path, Line(), PLAN)
    run = TrainingRun(tmp_path, {"config": None})
    points = run.points()
    run.log(step=7, loss=99.0)
    run.resume()
    assert run.points() == points
    assert [point["step"] for point in points] == [2, 4, 6]


def test_a_finished_training_is_not_trained_again(tmp_path: Path) -> None:
    whole, again = Line(), Line(dies_at=0)
    train(tmp_path, whole, PLAN)
    assert train(tmp_path, again, PLAN).steps == 6
    assert torch.equal(whole.model.weight, again.model.weight)


def test_no_more_steps_than_asked_for(tmp_path: Path) -> None:
    """Fewer steps than there are between two validations, or not a multiple of them: the last step is validated."""
    reports: list[tuple[int, int]] = []
    task = Line(validations=[1.0])
    plan = Plan(name="a line", steps=5, validate_every=100, monitor="score")
    optimizer = torch.optim.Adam(task.model.parameters())
    trainer = Trainer(
        task,
        optimizer,
        TrainingRun(tmp_path, {}),
        plan,
        progress=lambda name, done, total: reports.append((done, total)),
    )
    assert trainer.fit() == Fitted(steps=5, best_step=5, best=1.0)
    assert reports == [(done, 5) for done in range(6)]
    assert [json.loads(line)["step"] for line in (tmp_path / "curve.jsonl").read_text().splitlines()] == [5]


def test_the_best_state_is_kept_and_patience_ends_it(tmp_path: Path) -> None:
    plan = Plan(name="a line", steps=100, validate_every=2, monitor="score", patience=4)
    stopped, best = Line(validations=[3.0, 1.0, 2.0, 1.0, 0.5]), Line(validations=[3.0, 1.0])
    assert train(tmp_path / "stopped", stopped, plan) == Fitted(steps=8, best_step=4, best=1.0)
    train(tmp_path / "best", best, Plan(name="a line", steps=4, validate_every=2, monitor="score"))
    assert torch.equal(stopped.model.weight, best.model.weight)
    higher = Plan(name="a line", steps=100, validate_every=2, monitor="score", patience=4, higher_is_better=True)
    rising = Line(validations=[3.0, 1.0, 2.0, 4.0])
    assert train(tmp_path / "rising", rising, higher) == Fitted(steps=6, best_step=2, best=3.0)


def test_the_untrained_state_may_be_the_best(tmp_path: Path) -> None:
    plan = Plan(name="a line", steps=100, validate_every=2, monitor="score", patience=4, keep_untrained=True)
    task, untrained = Line(validations=[1.0, 2.0, 2.0]), Line()
    assert train(tmp_path, task, plan) == Fitted(steps=4, best_step=0, best=1.0)
    assert torch.equal(task.model.weight, untrained.model.weight)


def test_rates_rise_evenly_and_fall_as_a_cosine() -> None:
    for warm_up, steps in ((40, 2400), (1, 30), (0, 30), (7, 5)):
        optimizer = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=2e-3)
        scheduler = warm_up_cosine(optimizer, warm_up, steps)
        rates = []
        for _ in range(steps):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
        expected = [
            2e-3 * min(1.0, (step + 1) / max(1, warm_up)) * 0.5 * (1 + math.cos(math.pi * step / steps))
            for step in range(steps)
        ]
        assert rates == pytest.approx(expected, rel=1e-9)


def test_gradients_are_clipped(tmp_path: Path) -> None:
    task = Line()
    plan = Plan(name="a line", steps=1, validate_every=1, clip_norm=1e-3)
    before = task.model.weight.detach().clone()
    optimizer = torch.optim.SGD(task.model.parameters(), lr=1.0)
    Trainer(task, optimizer, TrainingRun(tmp_path, {}), plan).fit()
    assert 0 < (task.model.weight - before).norm() <= 1e-3


def test_another_configuration_is_not_mixed_in(tmp_path: Path) -> None:
    train(tmp_path, Line(), PLAN, config=1)
    with pytest.raises(InputError, match="another configuration"):
        train(tmp_path, Line(), PLAN, config=2)


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    TrainingRun(tmp_path, {"config": None}).save({"weight": torch.zeros(2)}, {"step": 3})
    with pytest.raises(InputError, match=r"does not belong to this training.*start afresh"):
        train(tmp_path, Line(), PLAN)


def test_without_matplotlib_the_training_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.warns(CaplensWarning, match=r"drawing curve\.png needs matplotlib.*pip install"):
        assert train(tmp_path, Line(), PLAN).steps == 6
    assert not (tmp_path / "curve.png").exists()
