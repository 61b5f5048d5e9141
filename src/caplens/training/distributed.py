"""Training in several processes that torchrun started: each takes its share of a batch."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Processes:
    """The processes of one training; by default this one alone."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that writes files."""
        return self.rank == 0

    def share(self, rows: Tensor) -> Tensor:
        """Return the rows that this process works on."""
        return rows.tensor_split(self.count)[self.rank]

    def gather(self, rows: Tensor) -> Tensor:
        """Return every process's rows in order; gradients flow back to the process that computed them."""
        if self.count == 1:
            return rows
        from torch.distributed.nn.functional import all_gather

        return torch.cat(all_gather(rows))  # type: ignore[no-untyped-call]

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Give all processes the same gradients: each holds those through its own rows, counted once per process."""
        if self.count == 1:
            return
        from torch import distributed

        for parameter in parameters:
            if parameter.grad is not None:
                distributed.all_reduce(parameter.grad)
                parameter.grad /= self.count


def join_processes() -> Processes:
    """Join the processes that torchrun started; without torchrun there is one."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return Processes()
    from torch import distributed

    if not distributed.is_initialized():
        distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return Processes(distributed.get_rank(), distributed.get_world_size())
