"""One failure costs one metric, picture or row: whatever a metric or a plug-in raises, the others are not lost."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Run, run
from tests.toys import Overlap, Picky

import caplens
from caplens.bench.base import RatingSet
from caplens.bench.custom_ratings import OwnRatings
from caplens.bench.data import DataFolders
from caplens.bench.run import run as run_bench
from caplens.core.captions import CaptionSet
from caplens.core.details import Details, LazyDetails
from caplens.core.errors import CaplensError, CaplensWarning, InputError, UnexpectedError
from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.evaluation import check as check_module
from caplens.evaluation import explain as explain_module
from caplens.metrics import known_metrics
from caplens.metrics.base import Metric, Statistics, register, registered

assert run  # the fixture
CAPTIONS = ["a cat on a mat", "a dog on a mat", "two birds"]
REFERENCES = [["a cat on a mat"], ["a dog in a house"], ["some birds"]]


class Failing(Picky):
    """Raises what its class says, where its class says."""

    name = "toy-failing"
    error: BaseException = TypeError("unsupported operand \x1b]0;title\x07")

    def statistics(self, work: Workspace) -> Statistics:
        raise self.error


class Unmakeable(Picky):
    name = "toy-unmakeable"

    def __init__(self) -> None:
        raise ZeroDivisionError("division by zero")


class Forgetful(Picky):
    name = "toy-forgetful"

    def __init__(self, depth: int = 1) -> None:
        """An option that is not kept: its identity cannot be told."""


class Short(Picky):
    name = "toy-short"

    def statistics(self, work: Workspace) -> Statistics:
        return Statistics(np.zeros((1, 1)))


class Flat(Picky):
    name = "toy-flat"

    def statistics(self, work: Workspace) -> Statistics:
        return Statistics(np.zeros(len(work.captions)))


class OneByOne(Picky):
    """Gives a corpus score, but only of one set at a time: its interval fails."""

    name = "toy-one-by-one"

    def corpus(self, sums: Floats, count: int) -> Floats:
        return np.array(float(sums[0]) / count if sums.ndim == 1 else [][0])


class Infinite(Picky):
    name = "toy-infinite"

    def statistics(self, work: Workspace) -> Statistics:
        return Statistics(np.array([[1.0], [np.inf], [np.nan]]))


class Hesitant(LazyDetails):
    def __len__(self) -> int:
        return 3

    def of(self, row: int) -> Details:
        if row == 1:
            raise KeyError("mat")
        return {"words": [{"text": "cat", "status": "right"}]}


class Muddled(Picky):
    """Details that cannot be worked out, or not be written, for one caption each."""

    name = "toy-muddled"

    def statistics(self, work: Workspace) -> Statistics:
        return Statistics(np.ones((3, 1)), details=Hesitant())


class Tangled(Picky):
    name = "toy-tangled"

    def statistics(self, work: Workspace) -> Statistics:
        endless: dict[str, Any] = {}
        endless["self"] = endless
        return Statistics(np.ones((3, 1)), details=[{"seen": object()}, endless, {"words": [{"text": "birds"}]}])


BROKEN: list[type[Metric]] = [Failing, Unmakeable, Forgetful, Short, Flat]


@pytest.fixture
def known() -> Iterator[None]:
    """All of them are known by name."""
    toys: list[type[Metric]] = [Overlap, OneByOne, Infinite, Muddled, Tangled, *BROKEN]
    for metric in toys:
        register(metric)
    known_metrics.cache_clear()
    yield
    for metric in toys:
        del registered()[metric.name]
    known_metrics.cache_clear()


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    rows = [
        {"id": str(row), "caption": caption, "references": references}
        for row, (caption, references) in enumerate(zip(CAPTIONS, REFERENCES, strict=True))
    ]
    path = tmp_path / "captions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_metric_costs_itself(broken: type[Metric]) -> None:
    report = caplens.evaluate(CAPTIONS, REFERENCES, metrics=["bleu-4", broken.name, "toy-overlap"])
    assert list(report.results) == ["bleu-4", "toy-overlap"]
    assert list(report.errors) == [broken.name]
    assert "CAPLENS_DEBUG=1" in report.errors[broken.name]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "not enough memory"),
        (OSError(28, "No space left on device", "/somewhere"), "/somewhere: No space left on device"),
        (RecursionError("maximum depth"), "RecursionError: maximum depth"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), "UnicodeDecodeError"),
        (InputError("bad", where="row 7"), "row 7: bad"),
    ],
)
def test_every_kind_of_exception_is_a_reason(error: Exception, message: str) -> None:
    failing = type("Other", (Failing,), {"error": error})()
    report = caplens.evaluate(CAPTIONS, REFERENCES, metrics=[failing, "bleu-4"])
    assert message in report.errors["toy-failing"]
    assert "bleu-4" in report.results
    with pytest.raises(CaplensError, match=message) as caught:
        caplens.evaluate(CAPTIONS, REFERENCES, metrics=[failing])
    assert error in (caught.value, caught.value.__cause__)


def test_an_interrupt_is_no_failure_of_a_metric() -> None:
    interrupted = type("Interrupted", (Failing,), {"error": KeyboardInterrupt()})()
    with pytest.raises(KeyboardInterrupt):
        caplens.evaluate(CAPTIONS, REFERENCES, metrics=[interrupted, "bleu-4"])


def test_strict_raises_the_first_with_its_cause() -> None:
    with pytest.raises(UnexpectedError) as caught:
        caplens.evaluate(CAPTIONS, REFERENCES, metrics=["bleu-4", Failing()], strict=True)
    assert isinstance(caught.value.__cause__, TypeError)


@pytest.mark.usefixtures("known")
def test_the_command_line_says_what_failed_and_writes_the_rest(run: Run, predictions: Path, tmp_path: Path) -> None:
    target, page = tmp_path / "out.json", tmp_path / "out.html"
    names = "bleu-4,toy-failing,toy-one-by-one,toy-muddled,toy-tangled,toy-infinite"
    outcome = run("score", predictions, "-m", names, "--json", target, "--html", page)
    assert outcome.code == 2
    assert "toy-failing was not computed: an error in caplens or in a plug-in (TypeError: unsupported" in outcome.stderr
    assert "\x1b" not in outcome.stderr
    assert "toy-one-by-one has no interval" in outcome.stderr
    assert "no score for 1: its score is not a finite number" in outcome.stderr
    written = json.loads(target.read_text())
    assert list(written["metrics"]) == [name for name in names.split(",") if name != "toy-failing"]
    assert written["metrics"]["toy-one-by-one"]["interval"] is None
    muddled, tangled = (written["metrics"][f"toy-{name}"]["details"] for name in ("muddled", "tangled"))
    assert [list(entry) for entry in muddled] == [["words"], ["note"], ["words"]]
    assert [list(entry) for entry in tangled] == [["note"], ["note"], ["words"]]
    assert written["metrics"]["toy-infinite"]["scores"] == [1.0, None, None]
    assert len(written["metrics"]["toy-infinite"]["failures"]) == 2
    assert written["metrics"]["toy-infinite"]["score"] == 1.0
    assert "cannot be drawn" in page.read_text("utf-8")
    assert "cannot be explained" in page.read_text("utf-8")


@pytest.mark.usefixtures("known")
def test_debug_shows_the_traceback(run: Run, predictions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPLENS_DEBUG", "1")
    outcome = run("score", predictions, "-m", "bleu-4,toy-failing")
    assert "Traceback (most recent call last)" in outcome.stderr
    assert "in statistics" in outcome.stderr
    assert "\x1b" not in outcome.stderr


@pytest.mark.usefixtures("known")
def test_an_error_of_our_own_has_an_exit_code_of_its_own(run: Run, predictions: Path) -> None:
    assert run("score", predictions, "-m", "toy-failing").code == 3


def test_a_plug_in_that_cannot_be_imported_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("mine", "caplens_no_such_module:Mine", "caplens.metrics")
    monkeypatch.setattr("caplens.metrics.entry_points", lambda group: [broken])
    known_metrics.cache_clear()
    with pytest.warns(CaplensWarning, match="caplens_no_such_module:Mine cannot be imported"):
        assert "bleu-4" in known_metrics()
    known_metrics.cache_clear()


@pytest.mark.usefixtures("known")
def test_compare_keeps_the_other_metrics() -> None:
    systems = {"a": CAPTIONS, "b": CAPTIONS[::-1]}
    metrics = ["bleu-4", "toy-failing", "toy-one-by-one", "toy-overlap"]
    found = caplens.compare(systems, REFERENCES, metrics=metrics)
    assert list(found.metrics) == ["bleu-4", "toy-overlap"]
    assert set(found.errors) == {"toy-failing", "toy-one-by-one"}
    with pytest.raises(UnexpectedError):
        caplens.compare(systems, REFERENCES, metrics=["toy-one-by-one"])


FULL_DISK = """
import resource, sys
import caplens
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
report = caplens.evaluate(["a dog"], [["a dog"]], metrics=["bleu-1", "wmd"], vectors=sys.argv[1])
print(list(report.results), report.errors)
"""


def test_a_disk_that_is_full_everywhere_costs_what_needs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("".join(f"word{number} 1 2 3\n" for number in range(99)))
    child = subprocess.run([sys.executable, "-c", FULL_DISK, str(vectors)], capture_output=True, text=True)
    assert child.stdout.startswith("['bleu-1'] {'wmd': "), child.stderr
    assert "File too large" in child.stdout


class Damaged(RatingSet):
    """A set whose files are there and make no sense."""

    name = title = "damaged"

    def load(self, data: DataFolders) -> Any:
        raise KeyError("ratings")


def test_bench_keeps_the_other_metrics_and_sets(predictions: Path, tmp_path: Path) -> None:
    ratings = tmp_path / "ratings.csv"
    ratings.write_text("id,rating\n0,3\n1,2\n2,1\n")
    own = OwnRatings(ratings, [predictions], None, None, None)
    report = run_bench(
        [Damaged.__new__(Damaged), own], [Failing(), Overlap()], DataFolders([]), resamples=10, permutations=0
    )
    assert list(report.missing) == ["damaged"]
    assert list(report.sets[0].skipped) == ["toy-failing"]
    assert list(report.sets[0].scored) == ["toy-overlap"]


def raising(*_: object, **__: object) -> Any:
    raise IndexError("list index out of range")


def test_check_and_explain_go_on_without_the_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    path = tmp_path / "picture.png"
    Image.new("RGB", (32, 32)).save(path)
    monkeypatch.setattr(check_module, "score_captions", raising)
    report = check_module.check(CaptionSet.of(["a cat", ""], images=[str(path), str(path)]))
    assert [row.verdict for row in report.rows][1] == "wrong"
    assert "IndexError" in report.notes[0]
    monkeypatch.setattr(explain_module, "score_captions", raising)
    explanation = explain_module.explain("a cat", str(path), ["a dog"])
    assert [view.name for view in explanation.views] == ["references"]
    assert "IndexError" in explanation.notes[0]


def test_one_text_whose_picture_breaks_the_check_costs_that_text(monkeypatch: pytest.MonkeyPatch) -> None:
    captions = CaptionSet.of(["a cat on a mat", "a dog on a rug"], images=["a.png", "b.png"])
    looked = caplens.evaluate(captions.candidates, metrics=[type("Seen", (Picky,), {"name": check_module.METRIC})()])
    monkeypatch.setattr(check_module, "_look", lambda *_: looked)
    monkeypatch.setattr(check_module, "_by_picture", lambda _, row, *__: ([], 0.1) if row else raising())
    report = check_module.check(captions)
    assert [row.verdict for row in report.rows] == ["doubtful", "fine"]
    assert "IndexError" in report.rows[0].findings[0].message
