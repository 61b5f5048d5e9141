"""SPIDEr: the mean of CIDEr-D and SPICE.

S. Liu, Z. Zhu, N. Ye, S. Guadarrama, K. Murphy. Improved image captioning via policy gradient optimization of SPIDEr.
ICCV 2017.
"""

from __future__ import annotations

import os

from caplens.core.signature import Signature
from caplens.core.workspace import Workspace
from caplens.metrics.base import Metric, Resources, Statistics, register
from caplens.metrics.cider import CiderD
from caplens.metrics.spice import Spice
from caplens.text.idf import IdfSource


@register
class Spider(Metric):
    """CIDEr-D on its own scale (about 0 to 10) and SPICE (0 to 1), added and halved as published."""

    name = "spider"
    needs = frozenset({"references"})
    paper = "Liu et al. 2017, ICCV"
    summary = "mean of cider-d and spice"
    english_only = True

    def __init__(self, *, idf: IdfSource = "corpus", parser: str | os.PathLike[str] = "en_core_web_md") -> None:
        self._parts = (CiderD(idf=idf), Spice(parser=parser))
        self.idf, self.parser = idf, parser

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return tuple(
            (f"{metric.name}.{key}", value) for metric in self._parts for key, value in metric.signature_parts()
        )

    def resources(self) -> Resources:
        return {metric.name: metric.identity() for metric in self._parts}

    def statistics(self, work: Workspace) -> Statistics:
        cider, spice = (metric.result(work) for metric in self._parts)
        rows = (cider.statistics + spice.statistics) / 2
        return Statistics(rows, details=spice.details, facts={"images": Signature.parse(cider.signature)["images"]})
