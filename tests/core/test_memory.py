"""Freed memory goes back to the system."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

CODE = """
import re, sys
from pathlib import Path
from caplens.core.memory import give_back_freed

def megabytes():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024

if sys.argv[1] == "frugal":
    give_back_freed()
before = megabytes()
for _ in range(2):  # after the first round glibc keeps pieces of this size
    pieces = [b"x" * (8 << 20) for _ in range(20)]
    last = b"x" * (4 << 20)  # lies on top of them, so that they cannot be cut off
    del pieces
print(megabytes() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_freed_pieces_go_back_though_others_lie_on_top() -> None:
    def grown(how: str) -> int:
        return int(subprocess.run([sys.executable, "-c", CODE, how], capture_output=True, check=True).stdout)

    assert grown("usual") > 100
    assert grown("frugal") < 20
