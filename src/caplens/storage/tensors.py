"""Read and write safetensors files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caplens.core.errors import InputError
from caplens.storage.atomic import write_atomically


def read_tensors(path: str | os.PathLike[str], what: str) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Return the arrays of a safetensors file by name, and what the file says about them.

    A file that is not one, or has numbers that are not finite, is refused as not being `what` it should be.
    """
    from safetensors import SafetensorError, safe_open

    where = os.fspath(path)
    try:
        with safe_open(where, framework="numpy") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
            about = dict(file.metadata() or {})
    except FileNotFoundError:
        raise InputError("no such file", where=where) from None
    except (SafetensorError, OSError, TypeError, ValueError) as error:  # TypeError: a type that numpy has not
        raise InputError(f"not {what} ({error})", where=where) from None
    check_finite(tensors, what, where)
    return tensors, about


def map_tensors(path: str | os.PathLike[str], what: str) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Return the same as `read_tensors` for whole numbers, as views of the file: processes share its memory."""
    from safetensors import SafetensorError, safe_open

    where = os.fspath(path)
    try:
        with safe_open(where, framework="numpy") as file:  # the library checks the header
            about = dict(file.metadata() or {})
        data = np.memmap(where, np.uint8, "r")
        start = 8 + int.from_bytes(data[:8].tobytes(), "little")
        header = json.loads(data[8:start].tobytes())
        header.pop("__metadata__", None)
        tensors = {}
        for name, entry in header.items():
            first, end = (start + offset for offset in entry["data_offsets"])
            tensors[name] = np.asarray(data[first:end]).view(_WHOLE[entry["dtype"]]).reshape(entry["shape"])
        return tensors, about
    except FileNotFoundError:
        raise InputError("no such file", where=where) from None
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"not {what} ({error})", where=where) from None


_WHOLE = {"U8": np.uint8, "U32": np.uint32}


def check_finite(tensors: Mapping[str, NDArray[Any]], what: str, where: str) -> None:
    """Refuse weights with a number that is not finite: every score would be NaN."""
    for name, tensor in tensors.items():
        # The least and the largest are NaN where any number is; looking at each would take memory.
        if tensor.dtype.kind == "f" and tensor.size and not np.isfinite([tensor.min(), tensor.max()]).all():
            raise InputError(f"not {what}: {name} has numbers that are not finite", where=where)


def write_tensors(path: str | os.PathLike[str], tensors: Mapping[str, NDArray[Any]], about: Mapping[str, str]) -> None:
    """Write a safetensors file; the same content gives the same bytes, whose sum signatures show.

    The library itself lists `about` in another order every time.
    """
    from safetensors.numpy import save

    data = save({name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}, dict(about))
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.dumps(json.loads(data[8:end]), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    header += b" " * (-len(header) % 8)
    write_atomically(path, len(header).to_bytes(8, "little") + header + data[end:])
