"""The training loop, which all models share: steps, validation, early stopping, checkpoints, the curve.

    fitted = Trainer(task, optimizer, TrainingRun(folder, config), plan, scheduler=scheduler).fit()

What a model has of its own is a `Task`: the network, the loss of one step, and what is measured in between. A run that
was interrupted is started again with the same command and ends with the same weights: a checkpoint holds the network,
its best state so far, the optimizer's moments, the scheduler and the random generator.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ChainedScheduler, CosineAnnealingLR, LinearLR, LRScheduler

from caplens.core.errors import InputError
from caplens.core.progress import Progress, silent
from caplens.encoders.devices import CPU, Placement
from caplens.training.distributed import Processes
from caplens.training.run import TrainingRun


class Step(NamedTuple):
    """One step: the loss to minimize, and figures for the curve, each a mean over so many examples."""

    loss: Tensor
    figures: Mapping[str, Tensor | float]
    """Tensors stay where they are until the curve gets its next point: asking for a number waits for the device."""
    examples: int = 1


class Task(ABC):
    """A network with its data and its loss."""

    model: nn.Module
    """What is trained; its state is what a checkpoint holds."""
    generator: torch.Generator = torch.default_generator
    """Where its random draws come from, unless they follow from the number of the step. Draws are made on the CPU."""
    place: Placement = CPU
    """Where the model and its data are, and in which numbers the products are computed."""

    def placed(self, array: NDArray[Any]) -> Tensor:
        """Return an array as a tensor where the model is."""
        return torch.from_numpy(array).to(self.place.device)

    @abstractmethod
    def step(self, number: int) -> Step:
        """Compute the loss of step `number`, counted from 0; a run goes on only where it validated."""

    def validate(self) -> dict[str, float]:
        """Return what the network reaches on held-out data, without gradients."""
        return {}

    def constrain(self) -> None:  # noqa: B027 (most tasks have no bounds)
        """Bring parameters back into their bounds after an update."""


@dataclass(frozen=True)
class Plan:
    """How long to train, and which state to keep."""

    name: str
    """What the progress bar says."""
    steps: int
    validate_every: int
    """Steps between two validations, each with a point of the curve and a checkpoint; the last step has one too."""
    epochs: bool = False
    """Whether `validate_every` steps are one pass over the data; the curve then counts epochs."""
    monitor: str | None = None
    """The figure of validation whose best state is kept; None: the last state is."""
    higher_is_better: bool = False
    patience: float = math.inf
    """Stop after so many steps without a better value."""
    keep_untrained: bool = False
    """Whether the state before the first step may be the best."""
    clip_norm: float | None = None
    """Longest gradient."""
    schedule_every: int = 1
    """Steps between two steps of the scheduler."""


class Fitted(NamedTuple):
    """How a training ended."""

    steps: int
    best_step: int
    best: float
    """The monitored figure at the best step."""


@dataclass
class _State:
    best: float
    step: int = 0
    best_step: int = 0
    best_model: dict[str, Tensor] = field(default_factory=dict)


class Trainer:
    """Trains a task's model in place."""

    def __init__(
        self,
        task: Task,
        optimizer: Optimizer,
        run: TrainingRun,
        plan: Plan,
        *,
        scheduler: LRScheduler | None = None,
        progress: Progress = silent,
        processes: Processes | None = None,
    ) -> None:
        self.task, self.optimizer, self.scheduler = task, optimizer, scheduler
        self.run, self.plan = run, plan
        self.processes = processes or Processes()
        self.progress = progress if self.processes.first else silent
        self.parameters: list[nn.Parameter] = [
            parameter for group in optimizer.param_groups for parameter in group["params"]
        ]
        self._state = _State(best=-math.inf if plan.higher_is_better else math.inf)
        # Gradients in float16 would vanish: the loss is multiplied before and they are divided after.
        self._scaler = torch.amp.GradScaler(task.place.kind, enabled=task.place.dtype == "float16")

    def fit(self) -> Fitted:
        """Train to the end, from the run's checkpoint if there is one; the model is left in the state to keep."""
        plan, state = self.plan, self._state
        if not self._resume():
            state.best_model = self._copy_model()
            if plan.keep_untrained:
                self._keep_best(self._validate())
        self.progress(plan.name, state.step, plan.steps)
        while state.step < plan.steps and state.step - state.best_step < plan.patience:
            trained = self._train(min(state.step + plan.validate_every, plan.steps))
            validated = self._validate()
            self._keep_best(validated)
            if self.processes.first:
                counter = {"epoch": state.step // plan.validate_every} if plan.epochs else {"step": state.step}
                self.run.log(**counter, **trained, **validated)
                self._save()
        if plan.monitor is not None:
            self.task.model.load_state_dict(state.best_model)
        self.task.model.eval()
        if self.processes.first:
            self.run.draw_curve("epoch" if plan.epochs else "step")
        return Fitted(state.step, state.best_step, state.best)

    def _train(self, end: int) -> dict[str, float]:
        """Take the steps up to `end`; return the means of their figures."""
        sums: dict[str, Tensor | float] = {}
        counts: dict[str, int] = {}
        self.task.model.train()
        for number in range(self._state.step, end):
            with self.task.place.autocast():
                loss, figures, examples = self.task.step(number)
            self.optimizer.zero_grad()
            self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
            self.processes.average_gradients(self.parameters)
            self._scaler.unscale_(self.optimizer)
            if self.plan.clip_norm is not None:
                nn.utils.clip_grad_norm_(self.parameters, self.plan.clip_norm)
            self._scaler.step(self.optimizer)
            self._scaler.update()
            self.task.constrain()
            if self.scheduler is not None and (number + 1) % self.plan.schedule_every == 0:
                self.scheduler.step()
            for name, value in figures.items():
                sums[name] = sums.get(name, 0.0) + value * examples
                counts[name] = counts.get(name, 0) + examples
            self.progress(self.plan.name, number + 1, self.plan.steps)
        self._state.step = end
        return {name: float(total) / counts[name] for name, total in sums.items()}

    def _validate(self) -> dict[str, float]:
        self.task.model.eval()
        with torch.no_grad(), self.task.place.autocast():
            return self.task.validate()

    def _keep_best(self, validated: Mapping[str, float]) -> None:
        state, plan = self._state, self.plan
        if plan.monitor is None:
            state.best_step = state.step
            return
        value = validated[plan.monitor]
        if value > state.best if plan.higher_is_better else value < state.best:
            state.best, state.best_step, state.best_model = value, state.step, self._copy_model()

    def _copy_model(self) -> dict[str, Tensor]:
        """Return the state to come back to; none where the last one is kept."""
        if self.plan.monitor is None:
            return {}
        return {name: tensor.detach().clone() for name, tensor in self.task.model.state_dict().items()}

    def _save(self) -> None:
        state = self._state
        tensors = {f"model.{name}": tensor for name, tensor in self.task.model.state_dict().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in state.best_model.items()}
        tensors |= {"generator": self.task.generator.get_state(), **optimizer_tensors(self.optimizer)}
        values: dict[str, Any] = {"step": state.step, "best step": state.best_step, "best": state.best}
        values["scaler"] = self._scaler.state_dict()
        self.run.save(tensors, {**values, "scheduler": self.scheduler.state_dict() if self.scheduler else None})

    def _resume(self) -> bool:
        """Go back to the run's last checkpoint, if there is one."""
        saved = self.run.resume()
        if saved is None:
            return False
        tensors, values = saved
        state = self._state
        try:
            state.step, state.best_step, state.best = values["step"], values["best step"], values["best"]
            state.best_model = _under("best.", tensors)
            self.task.model.load_state_dict(_under("model.", tensors))
            self.task.generator.set_state(tensors["generator"])
            restore_optimizer(self.optimizer, tensors)
            self._scaler.load_state_dict(values["scaler"])
            if self.scheduler is not None:
                self.scheduler.load_state_dict(values["scheduler"])
                for group, rate in zip(self.optimizer.param_groups, self.scheduler.get_last_lr(), strict=True):
                    group["lr"] = rate
        except (KeyError, RuntimeError, ValueError) as error:
            raise InputError(
                f"this checkpoint does not belong to this training ({str(error).splitlines()[0]})",
                where=str(self.run.checkpoint),
                remedy="give another --output, or remove the folder to start afresh",
            ) from None
        return True


def warm_up_cosine(optimizer: Optimizer, warm_up: int, steps: int) -> LRScheduler:
    """Return rates that rise evenly for `warm_up` steps, times half a cosine wave that ends at zero after `steps`."""
    warm_up = max(1, warm_up)
    rise = LinearLR(optimizer, start_factor=1 / warm_up, end_factor=1.0, total_iters=warm_up - 1)
    return ChainedScheduler([rise, CosineAnnealingLR(optimizer, T_max=steps)])


def optimizer_tensors(optimizer: Optimizer, prefix: str = "optimizer.") -> dict[str, Tensor]:
    """Return the optimizer's moments and step counts, parameter by parameter, as named tensors."""
    state = optimizer.state_dict()["state"]
    return {f"{prefix}{index}.{name}": value for index, slots in state.items() for name, value in slots.items()}


def restore_optimizer(optimizer: Optimizer, tensors: Mapping[str, Tensor], prefix: str = "optimizer.") -> None:
    """Put back what `optimizer_tensors` took."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in _under(prefix, tensors).items():
        index, slot = name.split(".", 1)
        state.setdefault(int(index), {})[slot] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names begin so, without that beginning."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
