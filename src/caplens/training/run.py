"""The folder of one training: its configuration, its curve and the checkpoint it can go on from.

run = TrainingRun(folder, config)
saved = run.resume()                      # None at the first start
run.log(step=step, loss=loss)             # one line of curve.jsonl
run.save(tensors, {"step": step})         # replaces the checkpoint, all or nothing
run.draw_curve()                          # curve.png
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caplens.core.errors import CaplensWarning, InputError, MissingData
from caplens.core.optional import require
from caplens.storage.atomic import atomic_path, write_atomically

if TYPE_CHECKING:
    from torch import Tensor


class TrainingRun:
    """The folder of one training; it needs torch only to save and resume checkpoints."""

    def __init__(self, folder: str | os.PathLike[str], config: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        self.checkpoint = self.folder / "checkpoint.safetensors"
        self.curve = self.folder / "curve.jsonl"
        config_file = self.folder / "config.json"
        text = json.dumps(dict(config), indent=2, sort_keys=True, default=str) + "\n"
        if config_file.exists() and config_file.read_text(encoding="utf-8") != text:
            raise InputError(
                "this folder holds a training with another configuration",
                where=str(self.folder),
                remedy="give another --output, or remove the folder to start afresh",
            )
        write_atomically(config_file, text)

    def resume(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Return the last checkpoint's tensors and values, and cut the curve back to it; None if there is none."""
        if not self.checkpoint.exists():
            self.curve.unlink(missing_ok=True)
            return None
        from safetensors import safe_open

        with safe_open(self.checkpoint, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
            values = json.loads(file.metadata()["values"])
        lines = self.curve.read_text(encoding="utf-8").splitlines(keepends=True) if self.curve.exists() else []
        write_atomically(self.curve, "".join(lines[: values.pop("curve lines")]))
        return tensors, values

    def log(self, **values: float) -> None:
        """Add one point to the curve."""
        with self.curve.open("a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")

    def points(self) -> list[dict[str, float]]:
        """Return the curve so far."""
        if not self.curve.exists():
            return []
        return [json.loads(line) for line in self.curve.read_text(encoding="utf-8").splitlines()]

    def save(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Replace the checkpoint: tensors as safetensors, plain values beside them."""
        from safetensors.torch import save_file

        metadata = {"values": json.dumps({**values, "curve lines": len(self.points())})}
        with atomic_path(self.checkpoint) as temporary:
            copies = {name: tensor.detach().contiguous().clone() for name, tensor in tensors.items()}
            save_file(copies, temporary, metadata=metadata)

    def draw_curve(self, x: str = "step") -> None:
        """Draw the curve into `curve.png`, one panel per value."""
        points = self.points()
        names = list(dict.fromkeys(name for point in points for name in point if name != x))
        if not names:
            return
        try:
            new_figure = require("matplotlib.figure:Figure", purpose="drawing curve.png")
        except MissingData as missing:  # no reason to lose a training at its end
            warnings.warn(str(missing), CaplensWarning, stacklevel=2)
            return
        figure = new_figure(figsize=(6, 2.2 * len(names)), layout="constrained")
        for axes, name in zip(figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0], names, strict=True):
            drawn = [(point[x], point[name]) for point in points if name in point]
            axes.plot(*zip(*drawn, strict=True), marker=".", linewidth=1)
            axes.set_ylabel(name)
            axes.grid(alpha=0.3)
        axes.set_xlabel(x)
        with atomic_path(self.folder / "curve.png") as temporary:
            figure.savefig(temporary, format="png", dpi=120)
