"""The smallest build backend: one module and one entry point into a wheel, so that no build tool is needed."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

NAME = "caplens_vowels-1.0"


def build_wheel(folder: str, config: Any = None, metadata: Any = None) -> str:
    files = {
        "caplens_vowels.py": Path("caplens_vowels.py").read_text(),
        f"{NAME}.dist-info/METADATA": "Metadata-Version: 2.1\nName: caplens-vowels\nVersion: 1.0\n",
        f"{NAME}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{NAME}.dist-info/entry_points.txt": "[caplens.metrics]\nvowels = caplens_vowels\n",
    }
    files[f"{NAME}.dist-info/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{NAME}.dist-info/RECORD"])
    with zipfile.ZipFile(Path(folder) / f"{NAME}-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return f"{NAME}-py3-none-any.whl"
