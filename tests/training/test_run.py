"""A training that is stopped anywhere and started again ends with the same weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from caplens.core.errors import InputError
from caplens.training.trainer import TrainingRun, optimizer_tensors, restore_optimizer

torch = pytest.importorskip("torch")


def train(folder: Path, stop_at: int | None = None, steps: int = 6) -> torch.Tensor:
    """A line fitted by Adam on noisy points drawn from a generator of its own."""
    run = TrainingRun(folder, {"steps": steps})
    weight = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=0.1)
    generator = torch.Generator().manual_seed(3)
    first = 0
    if (saved := run.resume()) is not None:
        tensors, values = saved
        first = values["step"]
        weight.data.copy_(tensors["weight"])
        generator.set_state(tensors["generator"])
        restore_optimizer(optimizer, tensors)
    for step in range(first, steps):
        if step == stop_at:
            run.log(step=step, loss=99.0)  # a point after the last checkpoint: must not survive
            return weight
        points = torch.randn(8, 2, generator=generator)
        loss = ((points @ weight - points.sum(dim=1)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.log(step=step, loss=loss.item())
        run.save(
            {"weight": weight, "generator": generator.get_state(), **optimizer_tensors(optimizer)}, {"step": step + 1}
        )
    run.finish()
    return weight.detach()


def test_resumed_training_is_the_same_training(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    whole = train(tmp_path / "whole")
    train(tmp_path / "parts", stop_at=3)
    assert torch.equal(whole, train(tmp_path / "parts"))
    assert (tmp_path / "whole/curve.jsonl").read_text() == (tmp_path / "parts/curve.jsonl").read_text()
    assert (tmp_path / "parts/curve.png").read_bytes()[1:4] == b"PNG"
    assert not list(tmp_path.rglob("*.part"))


def test_another_configuration_is_not_mixed_in(tmp_path: Path) -> None:
    train(tmp_path)
    with pytest.raises(InputError, match="another configuration"):
        train(tmp_path, steps=7)
