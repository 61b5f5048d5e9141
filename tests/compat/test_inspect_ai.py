"""Inspect runs a task of its own mock model and reports the scores of one evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import caplens
from caplens.core.errors import InputError

inspect_ai = pytest.importorskip("inspect_ai")
from inspect_ai.dataset import Sample  # noqa: E402
from inspect_ai.model import ChatMessageUser, ContentImage, ContentText, ModelOutput, ModelUsage, get_model  # noqa: E402

from caplens.compat.inspect_ai import caption_scorer  # noqa: E402

CANDIDATES = ["a cat on a mat", "two dogs run", "a bird"]
TARGETS: list[str | list[str]] = [["a cat on the mat", "the cat"], "two dogs", ["one bird flies"]]
REFERENCES = [["a cat on the mat", "the cat"], ["two dogs"], ["one bird flies"]]


def run(folder: Path, samples: list[Any], scorers: list[Any]) -> Any:
    outputs = [ModelOutput.from_content("mockllm/model", text) for text in CANDIDATES]
    for output in outputs:
        output.usage = ModelUsage()  # else tokens are counted, with a table from the network
    model = get_model("mockllm/model", custom_outputs=outputs)
    task = inspect_ai.Task(dataset=samples, scorer=scorers)
    (log,) = inspect_ai.eval(task, model=model, log_dir=str(folder), display="none", max_samples=1)
    assert log.status == "success", log.error
    return log


@pytest.mark.filterwarnings("ignore::caplens.core.errors.CaplensWarning")
def test_a_task_reports_the_scores_of_one_evaluation(tmp_path: Path) -> None:
    samples = [Sample(input="Describe the picture.", target=target) for target in TARGETS]
    log = run(tmp_path, samples, [caption_scorer("cider-d", idf=TARGETS), caption_scorer("bleu-2")])
    report = caplens.evaluate(CANDIDATES, REFERENCES, metrics=["cider-d", "bleu-2"])
    figures = {score.name: score.metrics[score.name].value for score in log.results.scores}
    assert figures == {name: pytest.approx(report[name].score, abs=1e-12) for name in ("cider-d", "bleu-2")}
    for row, sample in enumerate(log.samples):
        assert sample.scores["cider-d"].value == pytest.approx(report["cider-d"].scores[row], abs=1e-12)
        assert sample.scores["bleu-2"].explanation.startswith("bleu-2|")
        assert sample.scores["bleu-2"].answer == CANDIDATES[row]


@pytest.mark.filterwarnings("ignore::caplens.core.errors.CaplensWarning")
def test_the_picture_is_that_of_the_conversation(tmp_path: Path) -> None:
    folder = Path(caplens.__file__).parent / "cli" / "examples" / "images"
    pictures = [folder / f"{name}.jpg" for name in ("cat", "horse", "coffee")]
    report = caplens.evaluate(CANDIDATES, images=pictures, metrics=["clip-s"], encoder="embedded")
    if report.errors:
        pytest.skip(report.errors["clip-s"])
    samples = [
        Sample(input=[ChatMessageUser(content=[ContentText(text="Describe."), ContentImage(image=str(picture))])])
        for picture in pictures
    ]
    log = run(tmp_path, samples, [caption_scorer("clip-s", encoder="embedded")])
    values = [sample.scores["clip-s"].value for sample in log.samples]
    assert values == pytest.approx(report["clip-s"].scores.tolist(), abs=1e-6)
    assert log.results.scores[0].metrics["clip-s"].value == pytest.approx(report["clip-s"].score, abs=1e-6)


def test_cider_asks_for_the_whole_set() -> None:
    with pytest.raises(InputError, match=r"weights words by a whole set; give its references: idf="):
        caption_scorer("cider-r")
