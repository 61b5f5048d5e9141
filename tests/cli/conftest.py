"""Running the command line in this process, with small metrics registered beside the real ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from tests.toys import Blind, Overlap, Picky, Weightless

from caplens.cli import main
from caplens.metrics import known_metrics
from caplens.metrics.base import register, registered


@dataclass
class Outcome:
    """What a run of the command line left behind."""

    code: int
    stdout: str
    stderr: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line; the arguments may be paths."""

    def call(*arguments: object) -> Outcome:
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        shown = capsys.readouterr()
        code = stop.value.code or 0
        assert isinstance(code, int)
        return Outcome(code, shown.out, shown.err)

    return call


@pytest.fixture
def toys() -> Iterator[None]:
    """The metrics of tests/toys.py are known by name."""
    toys = (Overlap, Picky, Blind, Weightless)
    for metric in toys:
        register(metric)
    known_metrics.cache_clear()
    yield
    for metric in toys:
        del registered()[metric.name]
    known_metrics.cache_clear()
