"""What one evaluation computes once and all its metrics share."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from caplens.core.captions import CaptionSet
from caplens.core.progress import Progress, silent

T = TypeVar("T")


@dataclass
class Workspace:
    """One evaluation: its captions, and the tokens, features and results that its metrics share."""

    captions: CaptionSet
    progress: Progress = silent
    strict: bool = False
    """Raise at the first unusable picture or video instead of scoring it NaN with a reason."""
    quiet: bool = False
    """Leave notes to whoever reads the results: no Python warnings."""
    details: bool = True
    """Keep what metrics say about single captions; without it numbers only, which take less memory."""
    _computed: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def get_or_compute(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the value computed under this key, computing it now if it is the first time."""
        if key not in self._computed:
            self._computed[key] = compute()
        return cast(T, self._computed[key])
