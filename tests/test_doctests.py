"""The examples in docstrings give what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import caplens
from caplens.core.errors import MissingData

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(caplens.__path__, "caplens.")
    if not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("caplens"):
            raise
        pytest.skip(f"needs the optional package {error.name}")
    except MissingData as error:
        pytest.skip(str(error))
    assert doctest.testmod(module).failed == 0
