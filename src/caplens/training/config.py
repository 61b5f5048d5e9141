"""Settings of a training from a toml file."""

from __future__ import annotations

import os
import tomllib
from dataclasses import fields
from typing import TypeVar

from caplens.core.errors import InputError

Config = TypeVar("Config")


def read_config(path: str | os.PathLike[str] | None, kind: type[Config]) -> Config:
    """The settings with what the file changes; a misspelt name or a value of another type is refused."""
    if path is None:
        return kind()
    where = os.fspath(path)
    try:
        with open(path, "rb") as file:
            given = tomllib.load(file)
    except FileNotFoundError:
        raise InputError("no such file", where=where) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not a toml file ({error})", where=where) from None
    usual = {field.name: getattr(kind(), field.name) for field in fields(kind)}  # type: ignore[arg-type]
    for name, value in given.items():
        if name not in usual:
            raise InputError(f"there is no setting {name!r}", where=where, remedy=f"there are: {', '.join(usual)}")
        if isinstance(usual[name], float) and type(value) is int:
            given[name] = float(value)
        elif type(value) is not type(usual[name]) and usual[name] is not None:
            wanted = type(usual[name]).__name__
            raise InputError(f"{name} is {value!r}, which is no {wanted}", where=where)
    return kind(**given)
