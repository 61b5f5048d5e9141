"""safetensors files: read back as written, and refused where a number is not one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caplens.core.errors import InputError
from caplens.storage.tensors import read_tensors, write_tensors


def test_what_is_written_is_read_back_and_has_the_same_bytes_every_time(tmp_path: Path) -> None:
    tensors = {
        "b": np.arange(6.0).reshape(2, 3),
        "a": np.array([1, 2], np.uint8),
        "turned": np.arange(6.0).reshape(2, 3).T,
        "one number": np.array(0.5),
        "empty": np.zeros((0, 2)),
    }
    about = {"kind": "test", "b": "2", "c": "é"}
    for name in ("one", "two"):
        write_tensors(tmp_path / name, tensors, about)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    read, said = read_tensors(tmp_path / "one", "a test")
    assert said == about
    assert read.keys() == tensors.keys()
    assert all(np.array_equal(read[name], tensors[name]) for name in tensors)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_numbers_that_are_not_finite_are_refused(tmp_path: Path, value: float, kind: type[np.floating]) -> None:
    weights = np.ones((3, 3), kind)
    weights[1, 1] = value
    write_tensors(tmp_path / "weights", {"fine": np.ones(2), "layer": weights}, {})
    with pytest.raises(InputError, match="weights: not a network: layer has numbers that are not finite"):
        read_tensors(tmp_path / "weights", "a network")


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff" * 100, b"\x10" + b"\0" * 7 + b"not json at all!"])
def test_what_is_no_safetensors_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "weights"
    path.write_bytes(content)
    with pytest.raises(InputError, match="not a network"):
        read_tensors(path, "a network")
    with pytest.raises(InputError, match="no such file"):
        read_tensors(tmp_path / "nothing", "a network")
