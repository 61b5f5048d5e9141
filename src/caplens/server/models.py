"""What the API is asked. What it answers is what `--json` prints, described by the same schema (`openapi.py`)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from caplens.server.settings import Limits

LIMITS = Limits()
Text = Annotated[str, StringConstraints(max_length=LIMITS.text_characters)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
References = Annotated[list[Text], Field(max_length=LIMITS.references)]
MetricName = Annotated[str, StringConstraints(min_length=1, max_length=60, pattern=r"^[A-Za-z0-9_-]+$")]

CAPTION, REFERENCE = "a dog runs over the wet sand", "a brown dog is running on a beach"


class Strict(BaseModel):
    """A request: what it does not know is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Media(Strict):
    """A picture or a video: its bytes, a file below a folder that the server was started with, or an address."""

    data: Annotated[str | None, Field(description="The file's bytes in base64.")] = None
    path: Annotated[
        str | None, Field(max_length=1000, description="A file below a folder that was named at the start.")
    ] = None
    url: Annotated[str | None, Field(max_length=2000, description="An http(s) address; only with --allow-urls.")] = None
    name: Annotated[str | None, Field(max_length=200, description="What to call it in messages.")] = None

    @model_validator(mode="after")
    def _one_of_three(self) -> Media:
        if sum(given is not None for given in (self.data, self.path, self.url)) != 1:
            raise ValueError("give one of data, path and url")
        return self


class ExplainRequest(Strict):
    """One caption, and its picture or references or both."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"caption": CAPTION, "references": [REFERENCE]}]})

    caption: Annotated[Text, Field(min_length=1)]
    image: Media | None = None
    references: References = []


class CheckRequest(Strict):
    """Alt texts, with their pictures if there are any."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"texts": [CAPTION, "IMG_2041.jpg"]}]})

    texts: Annotated[list[Text], Field(min_length=1, max_length=LIMITS.job_captions)]
    images: list[Media | None] | None = None


class ScoreRequest(Strict):
    """Captions to score, with what they are held against."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"candidates": [CAPTION], "references": [[REFERENCE]], "metrics": ["rouge-l", "meteor"]}]
        }
    )

    candidates: Annotated[list[Text], Field(min_length=1, max_length=LIMITS.job_captions)]
    references: list[References] | None = None
    images: list[Media | None] | None = None
    videos: list[Media | None] | None = None
    ids: list[Name] | None = None
    metrics: Annotated[
        list[MetricName] | None, Field(min_length=1, max_length=100, description="By default the quick ones that fit.")
    ] = None


class CompareRequest(Strict):
    """Two or more systems on the same pictures; the first is the baseline."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "systems": {"old": ["a dog", "a man"], "new": [CAPTION, "a man cooks"]},
                    "references": [[REFERENCE], ["a man is cooking"]],
                    "metrics": ["rouge-l"],
                }
            ]
        }
    )

    systems: Annotated[
        dict[Name, Annotated[list[Text], Field(min_length=1, max_length=LIMITS.job_captions)]],
        Field(min_length=2, max_length=LIMITS.systems),
    ]
    references: list[References] | None = None
    images: list[Media | None] | None = None
    metrics: Annotated[list[MetricName] | None, Field(min_length=1, max_length=100)] = None
    resamples: Annotated[int | None, Field(ge=1, le=10_000)] = None
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 12345


class TryRequest(Strict):
    """What the page asks: one picture or video, one or several captions of it, and perhaps references."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"captions": [CAPTION], "references": [REFERENCE]}]})

    captions: Annotated[list[Annotated[Text, Field(min_length=1)]], Field(min_length=1, max_length=8)]
    image: Media | None = None
    video: Media | None = None
    references: References = []


class CompareRunsRequest(Strict):
    """Runs to compare, by what `/v1/runs` calls them; the first is the baseline."""

    runs: Annotated[list[Name], Field(min_length=2, max_length=LIMITS.systems)]


class BenchRequest(Strict):
    """Which metric agrees with the ratings that were collected?"""

    session: Name
    metrics: Annotated[list[MetricName] | None, Field(min_length=1, max_length=100)] = None


class ScoreJob(Strict):
    """A long `/v1/score`."""

    kind: Literal["score"]
    request: ScoreRequest


class CheckJob(Strict):
    """A long `/v1/check`."""

    kind: Literal["check"]
    request: CheckRequest


class CompareJob(Strict):
    """A long `/v1/compare`."""

    kind: Literal["compare"]
    request: CompareRequest


class CompareRunsJob(Strict):
    """Runs, ranked and tested."""

    kind: Literal["compare-runs"]
    request: CompareRunsRequest


class BenchJob(Strict):
    """Metrics against collected ratings."""

    kind: Literal["bench"]
    request: BenchRequest


AnyJob = Annotated[ScoreJob | CheckJob | CompareJob | CompareRunsJob | BenchJob, Field(discriminator="kind")]


class SessionRequest(Strict):
    """Captions of a run for people to rate, or pairs of two runs for them to choose from."""

    name: Annotated[str, StringConstraints(pattern=r"^[\w][\w .-]{0,79}$")]
    runs: Annotated[list[Name], Field(min_length=1, max_length=2)]
    count: Annotated[int, Field(ge=1, le=10_000, description="Drawn at random where the runs have more.")] = 100
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 1


class RatingRequest(Strict):
    """One judgment: 1 to 5 for a caption; 1 (left), 2 (right) or 0 (alike) for a pair."""

    rater: Annotated[str, StringConstraints(min_length=1, max_length=80, strip_whitespace=True)]
    item: Annotated[int, Field(ge=0, le=10_000)]
    value: Annotated[int, Field(ge=0, le=5)]


class UndoRequest(Strict):
    """Take back the latest judgment of a rater."""

    rater: Annotated[str, StringConstraints(min_length=1, max_length=80, strip_whitespace=True)]


def as_json(model: BaseModel) -> dict[str, Any]:
    """Return a request as it was sent, without what was left out."""
    return model.model_dump(mode="json", exclude_none=True)
