"""Checks of metrics' options, made where a metric is made: each returns the value or says what the option takes."""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

from caplens.core.errors import InputError
from caplens.text.idf import IdfSource, IdfTable
from caplens.text.named_tokenizers import FOR_LANGUAGE, NAMES, NamedTokenizer, tokenizer_for
from caplens.text.ngrams import Tokenizer

if TYPE_CHECKING:
    from caplens.encoders.base import Encoder

Choice = TypeVar("Choice", bound=str)


def number(option: str, value: object, *, low: float = -math.inf, high: float = math.inf, above: bool = False) -> float:
    """Return a finite number from `low` to `high`; `above` leaves `low` itself out."""
    if isinstance(value, Real) and not isinstance(value, bool):
        given = float(value)
        if math.isfinite(given) and low <= given <= high and not (above and given == low):
            return given
    bounds = {
        (False, False): "a number",
        (True, False): f"a number above {low:g}" if above else f"a number from {low:g} on",
        (False, True): f"a number up to {high:g}",
        (True, True): f"a number from {low:g} to {high:g}",
    }
    raise _wrong(option, value, bounds[math.isfinite(low), math.isfinite(high)])


def whole_number(option: str, value: object, *, low: int) -> int:
    """Return a whole number from `low` on."""
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= low:
        return int(value)
    raise _wrong(option, value, f"a whole number from {low} on")


def flag(option: str, value: object) -> bool:
    """Return True or False."""
    if isinstance(value, bool):
        return value
    raise _wrong(option, value, "true or false")


def text(option: str, value: object) -> str:
    """Return a text."""
    if isinstance(value, str):
        return value
    raise _wrong(option, value, "a text")


def matching(option: str, value: object, pattern: str, takes: str) -> str:
    """Return a text that looks like the pattern."""
    if isinstance(value, str) and re.fullmatch(pattern, value):
        return value
    raise _wrong(option, value, takes)


def readable(option: str, value: object, read: Callable[[str], object], takes: str) -> str:
    """Return a text that `read` understands."""
    if isinstance(value, str):
        with contextlib.suppress(InputError):
            read(value)
            return value
    raise _wrong(option, value, takes)


def encoder(value: Any) -> str | Encoder:
    """Return an image-text encoder, or the name of one."""
    if isinstance(value, str) and value:
        return value
    from caplens.encoders.base import Encoder

    if isinstance(value, Encoder):
        return value
    raise _wrong("encoder", value, "auto, embedded, a CLIP backbone such as ViT-B-32, or an Encoder")


def placement(device: Any, dtype: Any, batch_size: Any) -> tuple[str, str, int | None]:
    """Return where and how an encoder computes, as far as words can be checked."""
    from caplens.encoders.devices import check_device

    check_device(device, dtype, batch_size)
    return device, dtype, batch_size


def path(option: str, value: object, or_a: str = "path") -> str | os.PathLike[str]:
    """Return a path or a name; `or_a` says what the option takes, for the message."""
    if isinstance(value, str | os.PathLike) and os.fspath(value):
        return value
    raise _wrong(option, value, f"a {or_a}")


def choice(option: str, value: Choice, choices: Sequence[Choice]) -> Choice:
    """Return one of the choices."""
    if isinstance(value, str) and value in choices:
        return value
    raise _wrong(option, value, " or ".join(filter(None, [", ".join(choices[:-1]), choices[-1]])))


def tokenizer(value: Any) -> Tokenizer:
    """Return how text becomes words: a name, a callable, or the code of a language for what is taken there."""
    if callable(value) or value in ("ptb", "whitespace"):
        kept: Tokenizer = value
        return kept
    if value in NAMES:
        return NamedTokenizer(value)
    if isinstance(value, str) and value in FOR_LANGUAGE:
        return tokenizer_for(value)
    raise _wrong("tokenizer", value, f"ptb, whitespace, {', '.join(NAMES)}, a language such as pt or ja, or a callable")


def idf_source(value: Any) -> IdfSource:
    """Return where idf comes from: "corpus", a path, a table, or lists of references."""
    lists = value.values() if isinstance(value, Mapping) else value
    if isinstance(value, str | os.PathLike | IdfTable) or (
        isinstance(lists, Iterable) and all(isinstance(texts, list | tuple) and _are_texts(texts) for texts in lists)
    ):
        kept: IdfSource = value
        return kept
    raise _wrong("idf", value, "corpus, a table or caption file, or a list of references for each image")


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _wrong(option: str, value: object, takes: str) -> InputError:
    shown = "none" if value is None else repr(value) if isinstance(value, str) else f"{value}"
    return InputError(f"the option {option} is {shown[:60]}", remedy=f"it takes {takes}")
