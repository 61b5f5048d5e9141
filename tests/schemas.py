"""What `--json` prints, held against the schema that ships with caplens."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import pytest


@cache
def schema() -> dict[str, Any]:
    """The schema of all verbs."""
    found: dict[str, Any] = json.loads((files("caplens.cli") / "output.schema.json").read_text("utf-8"))
    return found


def check_output(name: str, printed: str) -> Any:
    """Parse what a verb printed and check it; `name` is the verb's, with hyphens."""
    jsonschema = pytest.importorskip("jsonschema")
    value = json.loads(printed)
    jsonschema.Draft202012Validator({**schema(), "$ref": f"#/$defs/{name}"}).validate(value)
    return value
