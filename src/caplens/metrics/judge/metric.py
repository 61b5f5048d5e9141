"""CLAIR, FLEUR, G-VEval, and a judge with the user's own prompt: a language model says what a caption is worth.

Chan et al., EMNLP 2023 (CLAIR); Lee, Park and Kang, ACL 2024 (FLEUR); Tong et al., AAAI 2025 (G-VEval). The prompts are
worded anew after the papers' descriptions; those of the authors can be given as files. Scores are from 0 to 1 whatever
the scale of the prompt.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from caplens.core.captions import CaptionSet, Media, media_name
from caplens.core.errors import InputError, MissingData
from caplens.core.workspace import Workspace
from caplens.metrics import _options as options
from caplens.metrics.base import Metric, Need, Resources, Statistics, reference_counts, register
from caplens.metrics.judge.answers import Verdict, read_verdicts, smoothed_score
from caplens.metrics.judge.client import Answer, JudgeClient, Request, answer_key, check_url
from caplens.metrics.judge.content import as_jpeg, message_content
from caplens.metrics.judge.prompts import Prompt
from caplens.storage.identity import Identity
from caplens.vision.images import decode_image, read_media

if TYPE_CHECKING:
    from PIL.Image import Image

OF_A_VIDEO = "The pictures are frames of one video, in their order. What is said of the picture is meant of the video."
CRITERIA = ("accuracy", "completeness", "conciseness", "relevance")
"""G-VEval's, for videos (ACCR)."""
ALTERNATIVES = 20
"""So many tokens with their probabilities, the most that servers give."""


class _Sample(NamedTuple):
    """One answer: its scores from 0 to 1, one or one per criterion, the reason, and whether all were smoothed."""

    scores: list[float]
    reason: str
    smooth: bool


class JudgeMetric(Metric):
    """What all judges share.

    Args:
        model: the language model, as its server calls it.
        base_url: the server, such as `http://localhost:8000/v1`; a key, if it asks for one, is in the environment
            variable `CAPLENS_JUDGE_KEY`.
        prompt: a file with your own prompt, with `{caption}` and perhaps `{references}` in it; `None` is the
            metric's own.
        temperature: 0 for the likeliest answer; several samples need more.
        samples: how many answers are averaged.
        smoothing: whether the score is the mean over the probabilities of its digits; `None` is as in the paper.
        max_tokens: the longest answer.
        max_requests: a run that needs more is refused before it begins, and says how many it needs.
        concurrency: so many requests at a time.
        timeout: seconds that an answer may take.
        retries: how often a server that is busy or broken is asked again.
        allow_urls: whether pictures at http(s) addresses are fetched, to be sent along.
        frames: which frames of a video are sent along where captions have videos and no pictures: uniform-N or every-K.
    """

    only_when_named = True
    scale: ClassVar[tuple[float, float]] = (0.0, 100.0)
    smooths: ClassVar[bool] = False

    def __init__(
        self,
        *,
        model: str = "",
        base_url: str = "",
        prompt: str | os.PathLike[str] | None = None,
        temperature: float = 0.0,
        samples: int = 1,
        smoothing: bool | None = None,
        max_tokens: int = 512,
        max_requests: int = 1000,
        concurrency: int = 4,
        timeout: float = 120.0,
        retries: int = 4,
        allow_urls: bool = False,
        frames: str = "uniform-8",
    ) -> None:
        from caplens.vision.video import Sampling

        self.model = options.text("model", model)
        self.base_url = check_url(options.text("base_url", base_url)) if base_url else ""
        self.prompt = None if prompt is None else options.path("prompt", prompt, "file with a prompt")
        self.temperature = options.number("temperature", temperature, low=0.0)
        self.samples = options.whole_number("samples", samples, low=1)
        self.smoothing = None if smoothing is None else options.flag("smoothing", smoothing)
        self.max_tokens = options.whole_number("max_tokens", max_tokens, low=1)
        self.max_requests = options.whole_number("max_requests", max_requests, low=0)
        self.concurrency = options.whole_number("concurrency", concurrency, low=1)
        self.timeout = options.number("timeout", timeout, low=0.0, above=True)
        self.retries = options.whole_number("retries", retries, low=0)
        self.allow_urls = options.flag("allow_urls", allow_urls)
        self.frames = options.readable("frames", frames, Sampling.parse, "all, every-K or uniform-N")
        if self.samples > 1 and self.temperature == 0:
            raise InputError(
                "several samples at temperature 0 are all alike",
                remedy="give a temperature, such as 0.7, or one sample",
            )

    @property
    def label(self) -> str:
        return f"{self.name} by {self.model}" if self.model else self.name

    def own_prompt(self, captions: CaptionSet) -> Prompt:
        """Return the prompt that comes with the metric."""
        return Prompt.shipped(self.name)

    def asked_criteria(self, captions: CaptionSet) -> tuple[str, ...]:
        """Return what is scored apart, each with a number of its own; nothing where one number says it all."""
        return ()

    def looks(self, captions: CaptionSet) -> bool:
        """Say whether pictures, or frames of videos, are sent along."""
        return "image" in self.needs

    def check(self, captions: CaptionSet) -> None:
        super().check(captions)
        if not self.model or not self.base_url:
            raise MissingData(
                f"{self.name} asks a language model: name it and its server, with model= and base_url= "
                "(-o model=NAME -o base_url=http://localhost:8000/v1)"
            )
        if self._prompt(captions).wants_references and captions.references is None:
            raise MissingData(f"{self.name}: the prompt has a place for references and none were given")

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return (
            ("model", self.model),
            ("temperature", f"{self.temperature:g}"),
            ("samples", str(self.samples)),
            ("max_tokens", str(self.max_tokens)),
        )

    def resources(self) -> Resources:
        return {} if self.prompt is None else {"prompt": Prompt.read(self.prompt).label}

    def identity(self) -> Identity:
        # What a server failed to say today it may say tomorrow: answers are kept, results are not.
        return Identity(super().identity().text, lasting=False)

    def statistics(self, work: Workspace) -> Statistics:
        captions = work.captions
        prompt, criteria = self._prompt(captions), self.asked_criteria(captions)
        client = JudgeClient(
            self.base_url,
            timeout=self.timeout,
            retries=self.retries,
            concurrency=self.concurrency,
            readable=lambda text: read_verdicts(text, *self.scale, criteria) is not None,
        )
        failures: dict[int, str] = {}
        requests: dict[int, list[Request]] = {}
        pictures: dict[str, list[bytes]] = {}
        for row, caption in enumerate(captions.candidates):
            if not caption.strip():
                continue  # says nothing, and is worth nothing
            try:
                requests[row] = self._requests(prompt, captions, row, pictures)
            except InputError as error:
                if work.strict:
                    raise
                failures[row] = str(error)
        task = f"{self.name}: requests to {self.model}"
        answers = client.ask_all(
            [request for several in requests.values() for request in several],
            self.max_requests,
            lambda done, total: work.progress(task, done, total),
        )
        rows = np.zeros((len(captions), 1))
        details: list[dict[str, Any]] = [{} for _ in captions.candidates]
        unsmoothed = judged = 0
        for row, several in requests.items():
            try:
                samples = [self._score(answers.get(request.key), request, client, criteria) for request in several]
            except InputError as error:
                failures[row] = str(error)
                continue
            scores = [float(np.mean(sample.scores)) for sample in samples]
            rows[row] = np.mean(scores)
            details[row] = {"reason": samples[0].reason, **({"samples": scores} if len(scores) > 1 else {})}
            if criteria:
                means = np.mean([sample.scores for sample in samples], axis=0).tolist()
                details[row]["categories"] = dict(zip(map(str.capitalize, criteria), means, strict=True))
            judged += len(several)
            unsmoothed += sum(not sample.smooth for sample in samples)
        rows[list(failures)] = np.nan
        return Statistics(
            rows,
            details,
            self._notes(unsmoothed, judged),
            failures,
            self._facts(prompt, captions, unsmoothed, judged),
        )

    @property
    def _smooth(self) -> bool:
        return self.smooths if self.smoothing is None else self.smoothing

    def _prompt(self, captions: CaptionSet) -> Prompt:
        return self.own_prompt(captions) if self.prompt is None else Prompt.read(self.prompt)

    def _facts(self, prompt: Prompt, captions: CaptionSet, unsmoothed: int, judged: int) -> dict[str, str]:
        smoothed = "no" if not self._smooth or unsmoothed == judged else "some" if unsmoothed else "yes"
        facts = {"prompt": prompt.label, "smoothing": smoothed, "picture": "yes" if self.looks(captions) else "no"}
        if self.looks(captions) and captions.images is None:
            facts |= {"media": "video", "frames": self.frames}
        if prompt.wants_references:
            facts["references"] = reference_counts(captions.references or [])
        return facts

    def _notes(self, unsmoothed: int, judged: int) -> tuple[str, ...]:
        if not self._smooth or not unsmoothed:
            return ()
        return (
            f"the server gave no probabilities for {unsmoothed:,} of {judged:,} scores: these are not smoothed, but as "
            "coarse as the model writes them",
        )

    def _requests(
        self, prompt: Prompt, captions: CaptionSet, row: int, pictures: dict[str, list[bytes]]
    ) -> list[Request]:
        """The questions about one caption, one per sample; `pictures` has those that were made ready before."""
        references = captions.references[row] if captions.references is not None else []
        text = prompt.fill(captions.candidates[row], references)
        shown = self._pictures(captions, row, pictures) if self.looks(captions) else []
        if shown and captions.images is None:
            text = f"{OF_A_VIDEO}\n\n{text}"
        fixed: dict[str, Any] = {"model": self.model, "temperature": self.temperature, "max_tokens": self.max_tokens}
        if prompt.wants_json:
            fixed["response_format"] = {"type": "json_object"}
        if self._smooth:
            fixed |= {"logprobs": True, "top_logprobs": ALTERNATIVES}
        made = []
        for sample in range(self.samples):
            seeded = {**fixed, "seed": sample} if self.samples > 1 else fixed

            def body(seeded: dict[str, Any] = seeded) -> dict[str, Any]:
                return {**seeded, "messages": [{"role": "user", "content": message_content(text, shown)}]}

            content = {
                **seeded,
                "text": text,
                "picture": hashlib.sha256(b"".join(shown)).hexdigest() if shown else None,
            }
            key = answer_key(self.base_url, content)
            made.append(Request(key, body, len(text), bool(shown)))
        return made

    def _pictures(self, captions: CaptionSet, row: int, ready: dict[str, list[bytes]]) -> list[bytes]:
        """The picture, or frames of the video, as they are sent."""
        column = captions.videos if captions.images is None else captions.images
        media: Media | None = column[row] if column is not None else None
        if media is None:
            kind = "video" if captions.images is None and captions.videos is not None else "picture"
            raise InputError(f"a judge looks at the {kind}, and there is none", where=captions.where(row))
        name = media_name(media)
        if name not in ready:
            ready[name] = [as_jpeg(picture) for picture in self._decoded(media, name, captions.images is None)]
        return ready[name]

    def _decoded(self, media: Media, name: str, is_video: bool) -> Iterable[Image]:
        if not is_video:
            return [decode_image(read_media(media, allow_urls=self.allow_urls), name)]
        from caplens.vision.video import Sampling, open_video

        return open_video(media, allow_urls=self.allow_urls).frames(Sampling.parse(self.frames))

    def _score(self, answer: Answer | None, request: Request, client: JudgeClient, criteria: Sequence[str]) -> _Sample:
        """What one answer says; an `InputError` says why there is nothing."""
        if answer is None:
            raise InputError(client.failures.get(request.key, "no answer"))
        low, high = self.scale
        verdicts = read_verdicts(answer.text, low, high, criteria)
        if verdicts is None:
            said = " ".join(answer.text.split())[:80]
            wanted = f" for each of {', '.join(criteria)}" if criteria else ""
            raise InputError(f"the answer holds no score from {low:g} to {high:g}{wanted}: {said!r}")
        smoothed = [self._smoothed(answer, verdict) for verdict in verdicts]
        scores = [
            verdict.score if smooth is None else smooth for verdict, smooth in zip(verdicts, smoothed, strict=True)
        ]
        return _Sample([(score - low) / (high - low) for score in scores], verdicts[0].reason, None not in smoothed)

    def _smoothed(self, answer: Answer, verdict: Verdict) -> float | None:
        return smoothed_score(answer.text, answer.tokens, verdict, *self.scale) if self._smooth else None


@register
class Clair(JudgeMetric):
    """How likely the caption and those of people are about one picture, says a language model that sees neither."""

    name = "clair"
    needs = frozenset({"references"})
    paper = "Chan et al., EMNLP 2023 (CLAIR)"
    summary = "a language model says how likely caption and references describe the same picture"


@register
class Fleur(JudgeMetric):
    """How well the caption describes the picture, says a multimodal model; smoothed by its digits' probabilities."""

    name = "fleur"
    needs = frozenset({"image", "video"})
    paper = "Lee, Park and Kang, ACL 2024 (FLEUR)"
    summary = "a multimodal model rates the caption against the picture; score smoothing"
    scale = (0.0, 1.0)
    smooths = True


@register
class GVEval(JudgeMetric):
    """What the caption is worth after a chain of thought, against references, the picture or video, or both.

    Args:
        criteria: whether accuracy, completeness, conciseness and relevance get a number each (ACCR), whose mean is the
            score; `None` is as in the paper: where videos are given.
    """

    name = "g-veval"
    needs = frozenset()
    optional_inputs: ClassVar[frozenset[Need]] = frozenset({"references", "image", "video"})
    paper = "Tong et al., AAAI 2025 (G-VEval)"
    summary = "a model reasons in steps about caption, references and picture, whatever is given; smoothed"
    smooths = True

    def __init__(self, *, criteria: bool | None = None, **shared: Any) -> None:
        super().__init__(**shared)
        self.criteria = None if criteria is None else options.flag("criteria", criteria)

    def looks(self, captions: CaptionSet) -> bool:
        return captions.images is not None or captions.videos is not None

    def asked_criteria(self, captions: CaptionSet) -> tuple[str, ...]:
        # Whoever brings a prompt says whether it asks for four numbers.
        is_video = captions.videos is not None and captions.images is None and self.prompt is None
        return CRITERIA if (is_video if self.criteria is None else self.criteria) else ()

    def own_prompt(self, captions: CaptionSet) -> Prompt:
        kind = "g-veval-criteria" if self.asked_criteria(captions) else "g-veval"
        if not self.looks(captions):
            return Prompt.shipped(f"{kind}-references")
        return Prompt.shipped(f"{kind}-picture" if captions.references is None else f"{kind}-both")

    def check(self, captions: CaptionSet) -> None:
        if not self.looks(captions) and captions.references is None:
            raise MissingData("g-veval needs references, pictures or videos: pass references=, images= or videos=")
        super().check(captions)


@register
class Judge(JudgeMetric):
    """What your own prompt asks for.

    Args:
        low: the lowest score that the prompt allows; it becomes 0.
        high: the highest; it becomes 1.
        picture: whether pictures are sent along where captions have them.
    """

    name = "judge"
    needs = frozenset()
    optional_inputs: ClassVar[frozenset[Need]] = frozenset({"references", "image", "video"})
    paper = ""
    summary = "a language model answers your own prompt (prompt=FILE), with or without the picture"

    def __init__(self, *, low: float = 0.0, high: float = 100.0, picture: bool = True, **shared: Any) -> None:
        super().__init__(**shared)
        self.low = options.number("low", low)
        self.high = options.number("high", high, low=self.low, above=True)
        self.picture = options.flag("picture", picture)
        self.scale = (self.low, self.high)  # type: ignore[misc]  # the prompt's own

    def looks(self, captions: CaptionSet) -> bool:
        return self.picture and (captions.images is not None or captions.videos is not None)

    def own_prompt(self, captions: CaptionSet) -> Prompt:
        raise MissingData("judge asks what your own prompt asks: give prompt=FILE (-o prompt=FILE)")

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        return (*super().signature_parts(), ("low", f"{self.low:g}"), ("high", f"{self.high:g}"))
