"""Schemathesis over the OpenAPI document: no request that it can think of makes the server fail or contradict it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("schemathesis")
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.server.conftest import Running

CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


@pytest.fixture(scope="module")
def document(server: Running) -> Any:
    return schemathesis.openapi.from_url(f"{server.address}/openapi.json")


schema = schemathesis.pytest.from_fixture("document")


# What follows a job streams until it ends; it is followed in test_api.py.
@schema.exclude(path_regex="/events$").parametrize()
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=QUIET)
def test_the_document_holds(case: Any) -> None:
    case.call_and_validate(checks=CHECKS)
