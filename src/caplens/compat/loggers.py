"""Tools that a team follows its runs in: Weights & Biases, MLflow, TensorBoard. The work behind `report.log_to`.

Each gets the corpus scores as numbers, their signatures, a table of the captions with their scores, and the page.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from caplens.core.optional import require
from caplens.core.tables import Table
from caplens.evaluation.results import Report
from caplens.storage.atomic import write_atomically


def log_to_wandb(report: Report, prefix: str, step: int | None, **options: Any) -> Any:
    """Log to the wandb run under way, or to one of its own, made with the options of `wandb.init`; return the run."""
    wandb = require("wandb", purpose="logging to Weights & Biases")
    with nullcontext(wandb.run) if wandb.run is not None else wandb.init(**options) as run:
        with _page(report, prefix) as page:
            html = wandb.Html(page.read_text("utf-8"), inject=False)
        table = wandb.Table(columns=list(_columns(report)), data=_rows(report))
        run.log({**_scores(report, prefix), f"{prefix}captions": table, f"{prefix}page": html}, step=step)
        run.config.update({"caplens": {**run.config.get("caplens", {}), **_signatures(report, prefix)}}, True)
    return run


def log_to_mlflow(report: Report, prefix: str, step: int | None, **options: Any) -> Any:
    """Log to the MLflow run under way, or to one of its own, made with the options of `start_run`; return the run."""
    mlflow = require("mlflow", purpose="logging to MLflow")
    active = mlflow.active_run()
    with nullcontext(active) if active is not None else mlflow.start_run(**options) as run:
        mlflow.log_metrics(_scores(report, prefix), step)
        # Tags: a parameter is set once in a run, and captions are judged after every epoch.
        mlflow.set_tags({f"signature.{name}": text for name, text in _signatures(report, prefix).items()})
        folder = "/".join(["caplens", *([prefix.strip("/")] if prefix else []), *([] if step is None else [str(step)])])
        with _page(report, prefix) as page:
            mlflow.log_artifact(str(page), folder)
        mlflow.log_text(_table(report).to_csv(), f"{folder}/captions.csv")
    return run


def log_to_tensorboard(report: Report, prefix: str, step: int | None, folder: str | os.PathLike[str] = "runs") -> Path:
    """Log to an event file in a folder, with the page beside it; return the page's path. Neither torch nor
    tensorflow is needed."""
    purpose = "logging to TensorBoard"
    writer = require("tensorboard.summary.writer.event_file_writer:EventFileWriter", purpose=purpose)(str(folder))
    event = require("tensorboard.compat.proto.event_pb2:Event", purpose=purpose)
    scalar = require("tensorboard.plugins.scalar.summary:scalar_pb", purpose=purpose)
    text = require("tensorboard.plugins.text.summary:text_pb", purpose=purpose)
    signatures = Table(("score", "signature"), list(_signatures(report, prefix).items()))
    summaries = [
        *(scalar(name, score) for name, score in _scores(report, prefix).items()),
        text(f"{prefix}captions", _table(report).to_markdown()),
        text(f"{prefix}signatures", signatures.to_markdown()),
    ]
    for summary in summaries:
        writer.add_event(event(wall_time=time.time(), step=step or 0, summary=summary))
    writer.close()
    name = "-".join(["captions", *([prefix.strip("/").replace("/", "-")] if prefix else []), str(step or 0)])
    target = Path(folder) / f"{name}.html"
    with _page(report, prefix) as page:
        write_atomically(target, page.read_text("utf-8"))
    return target


def _scores(report: Report, prefix: str) -> dict[str, float]:
    """The corpus scores; one that is not a number is left out, since no tool can draw it."""
    return {f"{prefix}{result.name}": result.score for result in report if not math.isnan(result.score)}


def _signatures(report: Report, prefix: str) -> dict[str, str]:
    return {f"{prefix}{result.name}": result.signature for result in report}


def _columns(report: Report) -> tuple[str, ...]:
    return ("id", "caption", *report.results)


def _rows(report: Report) -> list[list[Any]]:
    """One row per caption: id, text, the score by each metric (None where there is none)."""
    scores = [[None if math.isnan(score) else score for score in result.scores.tolist()] for result in report]
    return [list(row) for row in zip(report.captions.ids, report.captions.candidates, *scores, strict=True)]


def _table(report: Report) -> Table:
    cells = [
        [cell if isinstance(cell, str) else "" if cell is None else f"{cell:.6g}" for cell in row]
        for row in _rows(report)
    ]
    return Table(_columns(report), cells, tuple(report.results))


@contextmanager
def _page(report: Report, prefix: str) -> Iterator[Path]:
    """The report's page, for as long as it takes to copy it."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "captions.html"
        report.to_html(page, title=prefix.strip("/") or "captions")
        yield page
