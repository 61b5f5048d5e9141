"""Settings of a training: its defaults, changed by a toml file, changed by `-o key=value`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from caplens.core.errors import InputError

Config = TypeVar("Config")


def read_config(
    path: str | os.PathLike[str] | None, kind: type[Config], options: Mapping[str, Any] | None = None
) -> Config:
    """Return the settings with what the file, then `options`, change.

    A misspelled name, a value of another type and a word that is not among the choices are refused.
    """
    changes = _checked(_read(path), kind, os.fspath(path)) if path is not None else {}
    return kind(**{**changes, **_checked(options or {}, kind, "--option")})


def _read(path: str | os.PathLike[str]) -> dict[str, Any]:
    where = os.fspath(path)
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise InputError("no such file", where=where) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not a toml file ({error})", where=where) from None


def _checked(given: Mapping[str, Any], kind: type[Config], where: str) -> dict[str, Any]:
    defaults = {field.name: getattr(kind(), field.name) for field in fields(kind)}  # type: ignore[arg-type]
    hints = get_type_hints(kind)
    checked: dict[str, Any] = {}
    for name, value in given.items():
        if name not in defaults:
            raise InputError(f"there is no setting {name!r}", where=where, remedy=f"there are: {', '.join(defaults)}")
        value_type = type(defaults[name])
        if value_type is float and type(value) is int:
            value = float(value)
        if type(value) is not value_type:
            raise InputError(f"{name} is {value!r}, which is no {value_type.__name__}", where=where)
        choices = get_args(hints[name]) if get_origin(hints[name]) is Literal else (value,)
        if value not in choices:
            raise InputError(f"{name} is {value!r}", where=where, remedy=f"choose from {', '.join(choices)}")
        checked[name] = value
    return checked
