"""The interfaces of other tools over caplens: change one import and keep the script. Importing it gives reports their
`log_to`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from caplens.evaluation.destinations import register_destination

if TYPE_CHECKING:
    from caplens.evaluation.results import Report

__all__ = ["evaluate", "inspect_ai", "lmms_eval", "loggers", "pycocoevalcap", "torchmetrics"]


def _register(name: str) -> None:
    def log(report: Report, prefix: str, step: int | None, **options: Any) -> Any:
        from caplens.compat import loggers  # few runs log anything: nothing of it is loaded before

        return getattr(loggers, f"log_to_{name}")(report, prefix, step, **options)

    register_destination(name, log)


for _name in ("wandb", "mlflow", "tensorboard"):
    _register(_name)
