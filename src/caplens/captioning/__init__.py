"""A small captioner to train on a metric and to caption pictures with; needs torch."""

from __future__ import annotations

from caplens.core.errors import MissingData


def need_torch() -> None:
    """Say what to install where torch is absent; everything else in this folder imports it."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MissingData("a captioner needs torch: pip install 'caplens[clip]'") from None
