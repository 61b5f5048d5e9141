"""What every extra of pyproject.toml brings and weighs, for the tables of docs/ and README.md."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = {
    "embedded": "the four below: everything the bundled models need",
    "sentence": "sent-sim, bert-score, the composite, the text side of the embedded encoder",
    "parse": "SPICE, SPIDEr, NNEval, better word verdicts",
    "onnx": "pictures: clip-s, pac-s, mid, infometic over the embedded encoder",
    "regions": "the object detector: infometic, `caplens explain` of pictures",
    "table": "parquet files, `to_pandas()`",
    "shards": "results of shards, shards at s3:// and other addresses",
    "ray": "shards on a Ray cluster",
    "video": "videos: em-score, pac-s of videos",
    "judge": "language models as judges: clair, fleur, g-veval",
    "serve": "`caplens serve`, `caplens export`",
    "languages": "tokenizers for Chinese, Japanese, Korean and others",
    "clip": "CLIP from the hub (torch)",
    "int8": "the 8-bit embedded encoder",
    "train": "`caplens train`",
    "generate": "`caplens generate positives`",
    "all": "all of the above",
    "docs": "this site: `make docs`",
    "dev": "the tests and what they compare with",
}


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def extras() -> dict[str, list[str]]:
    """The extras of pyproject.toml with what they ask for."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    return dict(listed)


def extras_block(words: str) -> str:
    """What every extra brings and weighs, measured on the packages installed here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    core = _with_dependencies(project["dependencies"])
    rows = [["(none)", "every n-gram metric, METEOR, the page, `compare`", _megabytes(core)]]
    rows += [
        [f"`{name}`", purpose, _megabytes(_with_dependencies(extras()[name]) - core)]
        for name, purpose in EXTRAS.items()
        if name not in words.split()
    ]
    return table(["extra", "what it is for", "installed size"], rows)


def _with_dependencies(requirements: Iterable[str]) -> set[str]:
    """Installed packages that these requirements bring, theirs included."""
    from packaging.requirements import Requirement

    found: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        asked = waiting.pop()
        if asked.name == "caplens":
            waiting += [Requirement(text) for extra in asked.extras for text in extras()[extra]]
        if asked.name == "caplens" or asked.name in found:
            continue
        found.add(asked.name)
        for text in metadata.requires(asked.name) or ():
            inner = Requirement(text)
            wanted = [{"extra": extra} for extra in (asked.extras or {""})]
            if inner.marker is None or any(inner.marker.evaluate(extra) for extra in wanted):
                waiting.append(inner)
    return found


def _megabytes(packages: Iterable[str]) -> str:
    total = 0
    for name in packages:
        files = metadata.files(name) or ()
        total += sum(path.stat().st_size for file in files if (path := Path(str(file.locate()))).is_file())
    return f"{total / 1e6:.0f} MB"
