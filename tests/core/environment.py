"""Run the command line as if only some packages were installed: `python environment.py JOBS.json`.

JOBS.json: {"hidden": [top-level modules], "commands": {name: [arguments]}}. Prints {name: [exit code, stdout, stderr]};
a traceback is an exit code of its own.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import io
import json
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

TRACEBACK = 99


class Hiding(importlib.abc.MetaPathFinder):
    """A finder of modules that does not find some of them, nor what says that they are installed."""

    def __init__(self, finder: Any, hidden: frozenset[str]) -> None:
        self.finder, self.hidden = finder, hidden

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return None if name.partition(".")[0] in self.hidden else self.finder.find_spec(name, path, target)

    def find_distributions(self, *context: Any) -> Iterable[Any]:
        found = getattr(self.finder, "find_distributions", lambda *_: ())(*context)
        return (one for one in found if one.name.lower().replace("-", "_") not in self.hidden)

    def invalidate_caches(self) -> None:
        if hasattr(self.finder, "invalidate_caches"):
            self.finder.invalidate_caches()


def run(arguments: list[str]) -> tuple[int, str, str]:
    """Run one verb in this process."""
    from caplens.cli import main

    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as stop:
            code = stop.code or 0
        except BaseException:
            code = TRACEBACK
            traceback.print_exc()
    return code, out.getvalue(), err.getvalue()


def no_network(name: str, *_: object) -> Path:
    """Stand in for `weights.fetch`, which would download."""
    from caplens.storage import weights

    return weights.require(name, purpose="no network: this test")


def main() -> None:
    jobs = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    sys.meta_path[:] = [Hiding(finder, frozenset(jobs["hidden"])) for finder in sys.meta_path]
    from caplens.storage import weights

    weights.fetch = no_network  # type: ignore[assignment]
    print(json.dumps({name: run(arguments) for name, arguments in jobs["commands"].items()}))


if __name__ == "__main__":
    main()
