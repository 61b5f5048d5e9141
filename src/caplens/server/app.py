"""The application: pages, API, errors, and the guard in front of all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException

from caplens.core.errors import CaplensError, UnexpectedError, as_caplens_error
from caplens.core.plain_json import json_text
from caplens.server import openapi, pages
from caplens.server.api import router
from caplens.server.network import COOKIE, Guard, refusal, same_secret, session_of
from caplens.server.settings import Settings
from caplens.server.state import State

TYPES = {".css": "text/css", ".js": "text/javascript"}
DESCRIPTION = "Judge captions of images and videos. Answers are what the command line prints with `--json`."


def create_app(settings: Settings) -> Guard:
    """Return the application; what it holds begins to work when the server starts it."""
    state = State(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        state.start()
        yield
        state.close()

    app = FastAPI(
        title="caplens",
        version=version("caplens"),
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.state.caplens = state
    app.include_router(router)
    _add_pages(app, state)
    _add_errors(app)
    openapi.install(app)
    return Guard(app, settings)


def _add_pages(app: FastAPI, state: State) -> None:
    settings = state.settings

    def page(name: pages.PageName) -> None:
        text = pages.render(name)

        async def show() -> HTMLResponse:
            if name == "try":
                state.prepare()
            return HTMLResponse(text, headers={"cache-control": "no-cache"})

        app.add_api_route(f"/{'' if name == 'try' else name}", show, include_in_schema=False)

    for name in pages.PAGES:
        page(name)

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        try:
            data = pages.asset(name)
        except KeyError:
            raise refusal(404, "there is no such file") from None
        return Response(data, media_type=TYPES[name[name.rindex(".") :]], headers={"cache-control": "no-cache"})

    @app.post("/login", include_in_schema=False)
    async def login(request: Request) -> Response:
        try:
            given = await request.json()
        except ValueError:
            raise refusal(400, "this is not json") from None
        token = given.get("token") if isinstance(given, dict) else None
        if settings.token is None or not isinstance(token, str) or not same_secret(token, settings.token):
            raise refusal(401, "the token is wrong")
        answer = _error(200, "")
        answer.set_cookie(COOKIE, session_of(settings.token), httponly=True, samesite="strict", path="/")
        return answer


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> Response:
        return _error(error.status_code, str(error.detail), error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        problems = error.errors()
        broken = any(problem["type"] == "json_invalid" for problem in problems)
        return _error(400 if broken else 422, "; ".join(map(_problem, problems[:5])))

    @app.exception_handler(CaplensError)
    async def told(_: Request, error: CaplensError) -> Response:
        return _error(500 if isinstance(error, UnexpectedError) else 422, str(error))

    @app.exception_handler(Exception)
    async def unforeseen(_: Request, error: Exception) -> Response:
        return _error(500, str(as_caplens_error(error)))


def _problem(problem: Any) -> str:
    """
    >>> _problem({"loc": ("body", "captions", 0), "msg": "String should have at least 1 character"})
    'captions[0]: String should have at least 1 character'
    """
    _, *path = problem["loc"] or ("",)
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    return f"{place}: {problem['msg']}" if place else str(problem["msg"])


def _error(status: int, problem: str, headers: Any = None) -> Response:
    return Response(json_text({"error": problem}), status, headers, media_type="application/json")
