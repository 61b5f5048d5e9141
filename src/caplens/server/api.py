"""The API: /health and /v1."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from importlib.metadata import version
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from caplens.core.plain_json import json_text
from caplens.metrics import list_metrics
from caplens.server import tasks
from caplens.server.jobs import ENDED, TooMany
from caplens.server.media import small_copy
from caplens.server.models import (
    AnyJob,
    CheckRequest,
    CompareRequest,
    ExplainRequest,
    RatingRequest,
    ScoreRequest,
    SessionRequest,
    Strict,
    TryRequest,
    UndoRequest,
    as_json,
)
from caplens.server.network import refusal
from caplens.server.openapi import answer, answer_schema, errors
from caplens.server.run_index import Order, RunIndex, Show
from caplens.server.run_index import Query as Wanted
from caplens.server.state import State

router = APIRouter()
POSTED = (400, 408, 413, 415, 422)
"""What a request with a body may be refused with."""
OBJECT = {"type": "object"}
LIST = {"type": "array", "items": OBJECT}
VERSION = version("caplens")
EVERY = 0.25
"""Seconds between two looks at a job that somebody listens to."""
BEAT = 15.0
"""Seconds after which a listener hears something, so that nobody in between closes the line."""
LONGEST = 20.0
"""Seconds that somebody waits for a run to be read."""
RunId = Annotated[str, Path(pattern="^[0-9a-f]{12}$", description="As /v1/runs lists it.")]
JobId = Annotated[str, Path(pattern="^[A-Za-z0-9_-]{16}$")]
SessionName = Annotated[str, Path(min_length=1, max_length=80)]
Page = Annotated[int, Query(ge=0, le=10_000_000)]
Count = Annotated[int, Query(ge=1, le=200)]
Bound = Annotated[float | None, Query(allow_inf_nan=False)]


def _state(request: Request) -> State:
    state: State = request.app.state.caplens
    return state


def _json(value: Any, status: int = 200) -> Response:
    return Response(json_text(value), status, media_type="application/json")


@router.get("/health", responses=answer_schema(OBJECT), tags=["server"])
async def health(request: Request) -> Response:
    """Say that the server is up, and whether its models are loaded: until then answers take longer."""
    return _json({"status": "ok", "version": VERSION, "models": _state(request).engine.models})


@router.get("/v1/limits", responses=answer_schema(OBJECT), tags=["server"])
async def limits(request: Request) -> Response:
    """Say how much a request may ask for."""
    return _json(vars(_state(request).settings.limits))


@router.get("/v1/metrics", responses=answer("metrics"), tags=["captions"])
async def metrics(request: Request) -> Response:
    """Return the metrics: what `caplens metrics --json` prints."""
    return _json(list_metrics())


async def _at_once(request: Request, work: Callable[..., dict[str, Any]], asked: Strict, captions: int) -> Response:
    state = _state(request)
    if captions > state.settings.limits.captions:
        raise refusal(413, f"{captions} captions are too many to be answered at once: submit them to /v1/jobs")
    state.log(request, asked)
    return _json(await state.engine.run(partial(work, asked, state.settings), request.is_disconnected))


@router.post("/v1/score", responses=answer("score", *POSTED), tags=["captions"])
async def score(request: Request, asked: ScoreRequest) -> Response:
    """Score captions: what `caplens score --json` prints."""
    return await _at_once(request, tasks.score, asked, len(asked.candidates))


@router.post("/v1/explain", responses=answer("explain", *POSTED), tags=["captions"])
async def explain(request: Request, asked: ExplainRequest) -> Response:
    """Say which words are wrong and what is left out: what `caplens explain --json` prints."""
    return await _at_once(request, tasks.explain, asked, 1)


@router.post("/v1/check", responses=answer("check", *POSTED), tags=["captions"])
async def check(request: Request, asked: CheckRequest) -> Response:
    """Judge alt texts: what `caplens check --json` prints."""
    return await _at_once(request, tasks.check, asked, len(asked.texts))


@router.post("/v1/compare", responses=answer("compare", *POSTED), tags=["captions"])
async def compare(request: Request, asked: CompareRequest) -> Response:
    """Rank systems on the same pictures: what `caplens compare --json` prints."""
    return await _at_once(request, tasks.compare, asked, sum(map(len, asked.systems.values())))


@router.post("/v1/try", responses=answer_schema(OBJECT, *POSTED), tags=["captions"])
async def try_captions(request: Request, asked: TryRequest) -> Response:
    """Judge captions of one picture in every way at once, as the page does."""
    return await _at_once(request, tasks.try_captions, asked, len(asked.captions))


# Jobs


@router.post(
    "/v1/jobs",
    status_code=202,
    responses={202: {"description": "Accepted, and kept."}, **errors(*POSTED, 429)},
    tags=["jobs"],
)
async def submit(request: Request, asked: AnyJob) -> Response:
    """Submit long work; it is kept on disk before this is answered."""
    state = _state(request)
    state.log(request, asked)
    try:
        job = await asyncio.to_thread(state.jobs.submit, asked.kind, as_json(asked.request))
    except TooMany:
        raise refusal(429, "too many jobs wait already: come back later", retry_after="60") from None
    return _json(job, 202)


@router.get("/v1/jobs", responses=answer_schema(LIST), tags=["jobs"])
async def jobs(request: Request) -> Response:
    """List the latest jobs, the newest first."""
    return _json(await asyncio.to_thread(_state(request).jobs.list))


@router.get("/v1/jobs/{job}", responses=answer_schema(OBJECT, 404, 422), tags=["jobs"])
async def job_state(request: Request, job: JobId) -> Response:
    """Say how far a job is."""
    return _json(await _job(request, job))


@router.delete("/v1/jobs/{job}", responses=answer_schema(OBJECT, 404, 422), tags=["jobs"])
async def cancel(request: Request, job: JobId) -> Response:
    """Cancel a job; one that has ended stays as it is."""
    return _json(_there(await asyncio.to_thread(_state(request).jobs.cancel, job), "job"))


@router.get("/v1/jobs/{job}/result", responses=answer_schema(OBJECT, 404, 422), tags=["jobs"])
async def job_result(request: Request, job: JobId) -> Response:
    """Return the result of a job that is done: what the verb prints with `--json`."""
    found = await _job(request, job)
    if found["state"] != "done":
        raise refusal(404, f"the job is {found['state']}" + (f": {found['error']}" if found["error"] else ""))
    result = await asyncio.to_thread(_state(request).jobs.result, job)
    return Response(_there(result, "result"), media_type="application/json")


@router.get(
    "/v1/jobs/{job}/events",
    responses={
        200: {"description": "Server-sent events.", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
        **errors(404, 422),
    },
    tags=["jobs"],
)
async def events(request: Request, job: JobId) -> Response:
    """Follow a job: an event `progress` whenever something changed, and `end` when it has ended."""
    state = _state(request)
    await _job(request, job)
    if state.listeners >= state.settings.limits.listeners:
        raise refusal(503, "too many listen already", retry_after="5")
    return StreamingResponse(_events(state, job), media_type="text/event-stream", headers={"cache-control": "no-store"})


async def _events(state: State, job: str) -> AsyncIterator[str]:
    state.listeners += 1
    try:
        told, silent = None, 0.0
        while not state.closing:
            found = await asyncio.to_thread(state.jobs.get, job)
            if found is None:
                return
            ended = found["state"] in ENDED
            if found != told:
                yield f"event: {'end' if ended else 'progress'}\ndata: {json_text(found)}\n\n"
                told, silent = found, 0.0
            if ended:
                return
            await asyncio.sleep(EVERY)
            silent += EVERY
            if silent >= BEAT:
                yield ": still here\n\n"
                silent = 0.0
    finally:
        state.listeners -= 1


async def _job(request: Request, job: str) -> dict[str, Any]:
    found: dict[str, Any] = _there(await asyncio.to_thread(_state(request).jobs.get, job), "job")
    return found


def _there(value: Any, what: str) -> Any:
    if value is None:
        raise refusal(404, f"there is no such {what}")
    return value


# Runs


@router.get("/v1/runs", responses=answer_schema(LIST), tags=["runs"])
async def runs(request: Request) -> Response:
    """List the runs below the folder that the server was started with."""
    return _json(await asyncio.to_thread(_state(request).catalog.list))


@router.get("/v1/runs/{run}", responses=answer_schema(OBJECT, 404, 422), tags=["runs"])
async def run_summary(request: Request, run: RunId) -> Response:
    """Return the facts of one run: its metrics with their scores, intervals, signatures and histograms."""
    name, index = await _index(request, run)
    return _json({"id": run, "name": name, **await asyncio.to_thread(index.summary)})


@router.get("/v1/runs/{run}/captions", responses=answer_schema(OBJECT, 404, 422), tags=["runs"])
async def captions(
    request: Request,
    run: RunId,
    words: Annotated[str, Query(max_length=200)] = "",
    metric: Annotated[int | None, Query(ge=0, le=1000, description="The place of a metric in the run.")] = None,
    order: Order = "file",
    low: Bound = None,
    high: Bound = None,
    show: Show = "all",
    offset: Page = 0,
    limit: Count = 30,
) -> Response:
    """Return a page of the captions of a run: by words, score range and verdict, in any order."""
    _, index = await _index(request, run)
    query = Wanted(words, metric, order, low, high, show, offset, limit)
    return _json(await asyncio.to_thread(index.page, query))


@router.get(
    "/v1/runs/{run}/pictures/{row}",
    responses={200: {"description": "A small copy.", "content": {"image/jpeg": {}}}, **errors(404, 422)},
    tags=["runs"],
)
async def run_picture(
    request: Request,
    run: RunId,
    row: Annotated[int, Path(ge=0, le=2**53)],
    width: Annotated[int, Query(ge=16, le=1200)] = 360,
) -> Response:
    """Return a small copy of a caption's picture, if it is below a folder that was named at the start."""
    _, index = await _index(request, run)
    return await _picture(request, await asyncio.to_thread(index.media, row), width)


@router.get("/v1/differences", responses=answer_schema(OBJECT, 404, 422), tags=["runs"])
async def differences(
    request: Request,
    first: Annotated[str, Query(pattern="^[0-9a-f]{12}$")],
    second: Annotated[str, Query(pattern="^[0-9a-f]{12}$")],
    metric: Annotated[str, Query(max_length=60)],
    view: Annotated[str, Query(pattern="^(differ|first|second)$")] = "differ",
    offset: Page = 0,
    limit: Count = 20,
) -> Response:
    """Return where two runs differ most in a metric, caption by caption."""
    (_, one), (_, two) = await _index(request, first), await _index(request, second)
    return _json(await asyncio.to_thread(one.differences, two, metric, view, offset, limit))


async def _index(request: Request, run: str) -> tuple[str, RunIndex]:
    catalog = _state(request).catalog
    try:
        found = await asyncio.to_thread(catalog.find, run)
    except KeyError:
        raise refusal(404, "there is no such run") from None
    try:
        return found.name, await asyncio.wait_for(_state(request).index(found), LONGEST)
    except TimeoutError:
        raise refusal(503, "the run is still being read: come back in a moment", retry_after="2") from None


async def _picture(request: Request, media: str | None, width: int) -> Response:
    state = _state(request)
    path = None if media is None else await asyncio.to_thread(state.settings.find_media, media)
    if path is None:
        raise refusal(404, "there is no such picture below a folder of this server")
    data = await asyncio.to_thread(small_copy, path, width)
    return Response(data, media_type="image/jpeg", headers={"cache-control": "private, max-age=3600"})


# Ratings


@router.get("/v1/sessions", responses=answer_schema(LIST), tags=["ratings"])
async def sessions(request: Request) -> Response:
    """List the rating sessions, with how far everybody is and how far they agree (Krippendorff's α)."""
    return _json(await asyncio.to_thread(_state(request).sessions.list))


@router.post(
    "/v1/sessions",
    status_code=201,
    responses={201: {"description": "Made."}, **errors(*POSTED, 404)},
    tags=["ratings"],
)
async def new_session(request: Request, asked: SessionRequest) -> Response:
    """Begin a session: captions of one run to be rated 1 to 5, or pairs of two to choose from."""
    state = _state(request)
    try:
        session = await asyncio.to_thread(
            state.sessions.create, asked.name, asked.runs, asked.count, asked.seed, state.catalog
        )
    except KeyError:
        raise refusal(404, "there is no such run") from None
    return _json(session.summary(), 201)


@router.get("/v1/sessions/{session}", responses=answer_schema(OBJECT, 404, 422), tags=["ratings"])
async def session_summary(request: Request, session: SessionName) -> Response:
    """Say how far a session is."""
    return _json((await _session(request, session)).summary())


@router.get("/v1/sessions/{session}/next", responses=answer_schema(OBJECT, 404, 422), tags=["ratings"])
async def next_item(
    request: Request, session: SessionName, rater: Annotated[str, Query(min_length=1, max_length=80)]
) -> Response:
    """Return what a rater has not judged yet, in their own random order, blind."""
    return _json((await _session(request, session)).next(rater.strip()))


@router.post("/v1/sessions/{session}/ratings", responses=answer_schema(OBJECT, *POSTED, 404), tags=["ratings"])
async def rate(request: Request, session: SessionName, asked: RatingRequest) -> Response:
    """Keep a judgment, and return what comes next; once this is answered, the judgment is on disk."""
    found = await _session(request, session)
    return _json(await asyncio.to_thread(found.rate, asked.rater, asked.item, asked.value))


@router.post("/v1/sessions/{session}/undo", responses=answer_schema(OBJECT, *POSTED, 404), tags=["ratings"])
async def undo(request: Request, session: SessionName, asked: UndoRequest) -> Response:
    """Take back a rater's latest judgment."""
    return _json(await asyncio.to_thread((await _session(request, session)).undo, asked.rater))


@router.get(
    "/v1/sessions/{session}/ratings.csv",
    responses={200: {"description": "A csv.", "content": {"text/csv": {}}}, **errors(404, 422)},
    tags=["ratings"],
)
async def ratings_csv(request: Request, session: SessionName) -> Response:
    """Return the judgments as `caplens bench --ratings` takes them."""
    found = await _session(request, session)
    headers = {"content-disposition": 'attachment; filename="ratings.csv"'}
    return Response(found.to_csv(), media_type="text/csv; charset=utf-8", headers=headers)


@router.get(
    "/v1/sessions/{session}/pictures/{item}",
    responses={200: {"description": "A small copy.", "content": {"image/jpeg": {}}}, **errors(404, 422)},
    tags=["ratings"],
)
async def session_picture(
    request: Request, session: SessionName, item: Annotated[int, Path(ge=0, le=2**53)]
) -> Response:
    """Return a small copy of the picture of an item."""
    found = await _session(request, session)
    if item >= len(found.items):
        raise refusal(404, "there is no such item")
    return await _picture(request, found.items[item].media, 1000)


async def _session(request: Request, name: str) -> Any:
    try:
        return await asyncio.to_thread(_state(request).sessions.get, name)
    except KeyError:
        raise refusal(404, "there is no such session") from None
