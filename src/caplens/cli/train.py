"""`caplens train`: make the weights of the learned metrics."""

from __future__ import annotations

import importlib
import pkgutil

import typer

from caplens.cli import _training


def _build() -> typer.Typer:
    """Every file of the folder `_training` becomes a sub-command; they import torch only when they run."""
    made = typer.Typer(help="Train a learned metric, an encoder or a captioner.", no_args_is_help=True)
    made.callback()(_every_training)
    for module in pkgutil.iter_modules(_training.__path__):
        training = importlib.import_module(f"{_training.__name__}.{module.name}")
        made.command(module.name.replace("_", "-"))(training.command)
    return made


def _every_training() -> None:
    """Train a learned metric, an encoder or a captioner."""


app = _build()
