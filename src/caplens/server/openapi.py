"""The OpenAPI document: requests by their models, answers by the very schema that `--json` follows."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

ERROR = {
    "type": "object",
    "properties": {"error": {"type": "string", "description": "What was wrong, where, and what to do."}},
    "required": ["error"],
}
_STATUSES = {
    400: "The request is not json.",
    404: "There is no such thing.",
    408: "The request did not arrive in time.",
    413: "Too much was sent.",
    415: "Send application/json.",
    422: "The request cannot be answered as it is.",
    429: "Too many jobs wait.",
    503: "The server is busy; Retry-After says when to come back.",
}


@cache
def output_schema() -> dict[str, Any]:
    """Return the definitions of what verbs print with `--json`."""
    text = (files("caplens") / "cli" / "output.schema.json").read_text("utf-8")
    definitions: dict[str, Any] = json.loads(text.replace("#/$defs/", "#/components/schemas/output-"))["$defs"]
    return {f"output-{name}": definition for name, definition in definitions.items()}


def answer(name: str, *statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the `responses` of a route that answers what a verb prints with `--json`."""
    return answer_schema({"$ref": f"#/components/schemas/output-{name}"}, *statuses)


def answer_schema(schema: dict[str, Any], *statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the `responses` of a route that answers this."""
    return {200: {"description": "Done.", "content": {"application/json": {"schema": schema}}}, **errors(*statuses)}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the `responses` of refusals; every route may answer 503."""
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {status: {"description": _STATUSES[status], "content": content} for status in (*statuses, 503)}


def install(app: FastAPI) -> None:
    """Make the document carry the schema of `--json`, and our one form of errors."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
            schemas = made.setdefault("components", {}).setdefault("schemas", {})
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)
            schemas.update(output_schema(), Error=ERROR)
            made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            made["security"] = [{}, {"token": []}]
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]
