"""Schemathesis over the OpenAPI document: no request that it can think of makes the server fail or contradict it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("schemathesis")
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.server.conftest import Running

from caplens.server.api import router

CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
SETTINGS = settings(
    max_examples=8, deadline=None, derandomize=True, database=None, suppress_health_check=[*HealthCheck]
)
# What follows a job streams until it ends; it is followed in test_api.py.
OPERATIONS = [
    (method, route.path)  # type: ignore[attr-defined]
    for route in router.routes
    for method in sorted(route.methods)  # type: ignore[attr-defined]
    if not route.path.endswith("/events")  # type: ignore[attr-defined]
]


@pytest.fixture(scope="module")
def document(server: Running) -> Any:
    return schemathesis.openapi.from_url(f"{server.address}/openapi.json")


@pytest.mark.parametrize(
    ("method", "path", "mode"),
    [(*operation, GenerationMode.POSITIVE) for operation in OPERATIONS]
    + [(*operation, GenerationMode.NEGATIVE) for operation in OPERATIONS if operation[0] == "POST"],
)
def test_the_document_holds(document: Any, method: str, path: str, mode: GenerationMode) -> None:
    @given(case=document[path][method].as_strategy(generation_mode=mode))
    @SETTINGS
    def holds(case: Any) -> None:
        answer = case.call(timeout=120)
        if answer.status_code != 503:  # busy, as announced
            case.validate_response(answer, checks=CHECKS)

    holds()
