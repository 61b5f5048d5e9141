"""Caption metrics for torchmetrics: any metric of caplens as a `torchmetrics.Metric`.

>>> metric = CaptionMetric("rouge-l")
>>> metric.update(["a cat on a mat"], [["a cat on the mat"]])
>>> metric.update(["two dogs"], [["two dogs", "a pair of dogs"]])
>>> metric.compute().item()
0.9

The one state, `rows`, holds the captions themselves with their references, as bytes of json lines, and is concatenated
over processes. Nothing smaller would do: BLEU adds up counts, but CIDEr's idf looks at the references of all processes.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from caplens.compat._collected import collect, judge
from caplens.core.captions import CaptionSet, Media
from caplens.core.errors import InputError
from caplens.core.optional import require
from caplens.core.plain_json import json_text
from caplens.core.types import Floats
from caplens.metrics import load_metric
from caplens.metrics.base import Metric, Result
from caplens.vision.images import read_media

if TYPE_CHECKING:
    from torch import Tensor

_PURPOSE = "caplens.compat.torchmetrics"
torchmetrics = require("torchmetrics", "torch", purpose=_PURPOSE)
torch = require("torch", purpose=_PURPOSE)


class CaptionMetric(torchmetrics.Metric):  # type: ignore[misc,name-defined]
    """Any caplens metric, by name; captions are collected by `update` and judged together by `compute`.

    Args:
        metric: a name of `caplens metrics`, or a metric.
        options: the metric's own, such as ``k_r=0.5``, and those of `torchmetrics.Metric`, such as ``sync_on_compute``.
    """

    is_differentiable = False
    full_state_update = False
    rows: list[Tensor]

    def __init__(self, metric: str | Metric, **options: Any) -> None:
        theirs = {name: options.pop(name) for name in list(options) if name in _TORCHMETRICS_OPTIONS}
        super().__init__(**theirs)
        self.metric = metric if isinstance(metric, Metric) else load_metric(metric, **options)
        self.add_state("rows", default=[], dist_reduce_fx="cat")

    @property
    def higher_is_better(self) -> bool:
        return self.metric.higher_is_better

    def update(
        self,
        preds: Sequence[str],
        target: Sequence[Sequence[str]] | Sequence[str] | None = None,
        images: Sequence[Media] | None = None,
    ) -> None:
        """Add a batch: captions, references (a list, or one string, per caption), pictures."""
        columns: dict[str, Sequence[Any] | None] = {"preds": preds, "target": target, "images": images}
        for name, column in columns.items():
            if isinstance(column, str):
                raise InputError(f"{name} is one string", remedy=f"put it into a list: {name}=[{column!r:.40}]")
            if column is not None and len(column) != len(preds):
                raise InputError(f"{len(column)} {name} for {len(preds)} preds", remedy="give one per caption")
        # Checked here, so that a message stands where the mistake is, not at the end of an epoch.
        references = None if target is None else [[texts] if isinstance(texts, str) else [*texts] for texts in target]
        batch = CaptionSet.of(list(preds), references, images, source="update")
        lines = [
            json_text(
                {
                    "caption": caption,
                    "references": batch.references[row] if batch.references else None,
                    "image": _packed(batch.images[row]) if batch.images else None,
                }
            )
            for row, caption in enumerate(batch.candidates)
        ]
        data = "".join(line + "\n" for line in lines).encode()
        self.rows.append(self._bytes(data))

    def sync(self, *arguments: Any, **options: Any) -> None:
        """Bring the captions of all processes together."""
        if not self.rows:  # torchmetrics would send an empty tensor of floats, which does not fit the others' bytes
            self.rows.append(self._bytes(b""))
        super().sync(*arguments, **options)

    def _bytes(self, data: bytes) -> Tensor:
        held: Tensor = torch.from_numpy(np.frombuffer(data, np.uint8).copy()).to(self.device)
        return held

    def compute(self) -> Tensor:
        """The score of all captions so far, of all processes."""
        # Apple's GPUs have no float64.
        kind = torch.float32 if self.device.type == "mps" else torch.float64
        score: Tensor = torch.tensor(self._result().score, dtype=kind, device=self.device)
        return score

    def result(self) -> Result:
        """Score, scores per caption and signature of all captions so far; those of process 0 stand first."""
        with self.sync_context(dist_sync_fn=self.dist_sync_fn, should_sync=self._to_sync):
            return self._result()

    @property
    def scores(self) -> Floats:
        """One score per caption, in the order of the updates."""
        return self.result().scores

    def _result(self) -> Result:
        held = self.rows if isinstance(self.rows, list) else [self.rows]  # synced, it is one tensor
        # As bytes again: `set_dtype` turns states into floats, which hold them exactly.
        data = b"".join(part.to("cpu", torch.uint8).numpy().tobytes() for part in held)
        return judge(self.metric, [collect(**json.loads(line)) for line in data.splitlines()])


_TORCHMETRICS_OPTIONS = (
    *("compute_on_cpu", "dist_sync_on_step", "process_group", "dist_sync_fn", "distributed_available_fn"),
    *("sync_on_compute", "compute_with_cache"),
)


def _packed(picture: Media | None) -> str | None:
    """A picture as text: its path, or its bytes if it has none."""
    if picture is None or isinstance(picture, str | os.PathLike):
        return None if picture is None else os.fspath(picture)
    return f"data:;base64,{base64.b64encode(read_media(picture)).decode()}"


class BleuScore(CaptionMetric):
    """BLEU as coco-caption computes it."""

    def __init__(self, n_gram: int = 4, **options: Any) -> None:
        super().__init__(f"bleu-{n_gram}", **options)


class RougeL(CaptionMetric):
    """ROUGE-L as coco-caption computes it."""

    def __init__(self, **options: Any) -> None:
        super().__init__("rouge-l", **options)


class CiderD(CaptionMetric):
    """CIDEr-D, which coco-caption prints as CIDEr."""

    def __init__(self, **options: Any) -> None:
        super().__init__("cider-d", **options)


class CiderR(CaptionMetric):
    """CIDEr-R."""

    def __init__(self, **options: Any) -> None:
        super().__init__("cider-r", **options)
