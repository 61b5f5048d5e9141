"""Read and write safetensors files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caplens.storage.atomic import write_atomically


def write_tensors(path: str | os.PathLike[str], tensors: Mapping[str, NDArray[Any]], about: Mapping[str, str]) -> None:
    """Write a safetensors file; the same content gives the same bytes, whose sum signatures show.

    The library itself lists `about` in another order every time.
    """
    from safetensors.numpy import save

    made = save({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, dict(about))
    end = 8 + int.from_bytes(made[:8], "little")
    header = json.dumps(json.loads(made[8:end]), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    header += b" " * (-len(header) % 8)
    write_atomically(path, len(header).to_bytes(8, "little") + header + made[end:])
