"""The original SPICE program, for those who have it: spice-1.0.jar beside its lib folder with the CoreNLP models."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from caplens.core.errors import CaplensError, MissingData
from caplens.storage.paths import cache_folder

WHERE = (
    "download SPICE-1.0.zip from its project page, and put stanford-corenlp-3.6.0.jar and "
    "stanford-corenlp-3.6.0-models.jar into the folder lib beside spice-1.0.jar"
)


def run_jar(
    jar: str | os.PathLike[str] | None,
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    timeout: float,
    memory: str,
) -> list[dict[str, Any]]:
    """What the program says of each caption: `scores` by category, `test_tuples`, `ref_tuples`."""
    path = _find(jar)
    java = shutil.which("java")
    if java is None:
        raise MissingData("backend='java' runs the original program and there is no java: install Java 8 to 14")
    # Parses are kept between runs, apart from those of other jars.
    cache = cache_folder() / "spice-jar" / hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="caplens-spice-") as folder:
        source, target = Path(folder, "in.json"), Path(folder, "out.json")
        rows = zip(candidates, references, strict=True)
        source.write_text(
            json.dumps([{"image_id": row, "test": test, "refs": list(refs)} for row, (test, refs) in enumerate(rows)]),
            "utf-8",
        )
        command = [java, f"-Xmx{memory}", "-jar", os.fspath(path), os.fspath(source), "-cache", os.fspath(cache)]
        command += ["-out", os.fspath(target), "-subset", "-detailed", "-silent"]
        try:
            done = subprocess.run(
                command, cwd=path.parent, capture_output=True, text=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            raise CaplensError(
                f"the SPICE program was stopped after {timeout:g} s: give a longer timeout=, or drop backend='java'"
            ) from None
        if done.returncode or not target.is_file():
            raise _explain(done.stderr, path, memory)
        answers = {answer["image_id"]: answer for answer in json.loads(target.read_text("utf-8"))}
    if len(answers) != len(candidates):
        raise CaplensError(f"the SPICE program answered for {len(answers)} of {len(candidates)} captions")
    return [answers[row] for row in range(len(candidates))]


def _find(jar: str | os.PathLike[str] | None) -> Path:
    if jar is None:
        raise MissingData(f"backend='java' needs jar=, the path of spice-1.0.jar: {WHERE}")
    path = Path(jar).resolve()
    if not path.is_file():
        raise MissingData(f"there is no file {path}: {WHERE}")
    return path


def _explain(errors: str, jar: Path, memory: str) -> CaplensError:
    """The program's last words, with what to do about those that are known."""
    if "NoClassDefFoundError: edu/stanford" in errors or "edu/stanford/nlp/models" in errors:
        return MissingData(f"{jar.name} does not find CoreNLP in {jar.parent / 'lib'}: {WHERE}")
    if "OutOfMemoryError" in errors:
        return CaplensError(f"the SPICE program ran out of its {memory} of memory: give it more, such as memory='12G'")
    if "NullPointerException" in errors and "scoreBatch" in errors:
        # It prints with a script engine that Java 15 dropped.
        return MissingData(
            "the SPICE program needs Java 8 to 14, and this java is newer: put an older one first in PATH"
        )
    lines = [line.strip() for line in errors.splitlines() if line.strip() and not line.startswith("\t")]
    return CaplensError(f"the SPICE program failed: {lines[-1] if lines else 'it gave no reason'}")
