"""`python -m tests.attack.long NAME COUNT [SEED]` runs one campaign and adds its counts to build/attack.jsonl;
`python -m tests.attack.long report` prints all of them and writes docs/research/attacks.md.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
COUNTS = ROOT / "build" / "attack.jsonl"
PAGE = ROOT / "docs" / "research" / "attacks.md"

WHAT = {
    "kernels": ("texts through every kernel", "gcc, address and undefined-behavior sanitizers"),
    "indexes": ("METEOR index files, damaged or forged under a right checksum", "the same"),
    "coverage": ("inputs of the tokenizer, normalizer, stemmer and index files", "clang, libFuzzer, both sanitizers"),
    "readers": ("damaged caption files of every layout", "Python"),
    "pictures": ("damaged pictures of seven formats", "Python"),
    "videos": ("damaged films of seven containers, and playlists", "Python"),
    "malformed": ("bombs, misleading files, fifos, playlists, bad pictures and addresses, made by hand", "pytest"),
    "kills": ("processes killed while they score, keep and write", "SIGKILL"),
    "caches": ("cache files changed between two runs", "Python"),
}
SUITES = {
    "tests/attack/test_readers.py": "caption files",
    "tests/attack/test_boundaries.py": "outputs and folders",
    "tests/attack/test_streams.py": "standard streams",
    "tests/attack/test_crafted.py": "crafted texts and pictures",
    "tests/attack/test_kept_rows.py": "what filters write",
    "tests/vision/test_images.py": "pictures",
    "tests/vision/test_video.py": "videos",
    "tests/vision/test_fetch.py": "addresses",
}
"""Where the cases made by hand are."""
NAMED = ("kernels", "indexes", "coverage", "readers")
"""What reads bytes from outside and is ours: together these get a million inputs."""
HEAD = """# Attacks

What we throw at caplens before a release, and how often. `make attack` runs all of it and writes this page. A campaign
passes only if nothing crashed, hung, read out of bounds or returned another score; any of these stops the run.

| attack | inputs | what happened | under |
| --- | ---: | --- | --- |
"""


def main(arguments: list[str]) -> None:
    if arguments == ["report"]:
        write_page()
        return
    name, count = arguments[0], int(arguments[1])
    seed = int(arguments[2]) if len(arguments) > 2 else 0
    started = time.monotonic()
    outcome = run(name, count, seed)
    entry = {"name": name, "outcome": outcome, "seed": seed, "seconds": round(time.monotonic() - started)}
    COUNTS.parent.mkdir(exist_ok=True)
    with COUNTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")
    print(f"{name}: {sum(outcome.values()):,} inputs in {entry['seconds']:,} s: {outcome}")


def run(name: str, count: int, seed: int) -> dict[str, int]:
    """How the inputs of a campaign were taken."""
    if name == "coverage":
        return guided(count, seed)
    if name == "malformed":
        return by_hand()
    from tests.attack.long.campaigns import CAMPAIGNS

    return CAMPAIGNS[name](count, seed)


def guided(count: int, seed: int) -> dict[str, int]:
    """Runs of the libFuzzer target, which the Makefile builds; its corpus is kept for the next time."""
    corpus = ROOT / "build" / "attack" / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    _sow(corpus)
    program = ROOT / "build" / "attack" / "coverage_guided"
    options = [f"-runs={count}", f"-seed={seed + 1}", "-max_len=4096", "-timeout=20"]
    done = subprocess.run(
        [program, *options, f"-artifact_prefix={corpus.parent}/", corpus], stderr=subprocess.PIPE, text=True
    )
    runs = re.search(r"Done (\d+) runs", done.stderr)
    if done.returncode or runs is None:
        sys.exit(done.stderr[-5000:])
    return {"passed": int(runs[1])}


def _sow(corpus: Path) -> None:
    """Sound inputs to begin with: nasty texts, and both indexes without their headers."""
    from tests import fuzz
    from tests.attack import index_files

    text = " ".join(map(fuzz.well_formed, fuzz.PIECES)).encode()
    with tempfile.TemporaryDirectory() as folder:
        indexes = [path.read_bytes()[index_files.HEADER.size :] for path in index_files.build(Path(folder))]
    for kind, content in enumerate([text, text, *indexes]):
        (corpus / f"sound-{kind}").write_bytes(bytes([kind]) + content)


def by_hand() -> dict[str, int]:
    """The cases of the suite that are files or addresses made by hand, by what they are."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "--tb=short", *SUITES],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    passed = count_passed(done.stdout)
    if done.returncode or not passed:
        sys.exit(done.stdout[-5000:])
    return passed


def count_passed(output: str) -> dict[str, int]:
    """How many cases passed, by what they are, in what pytest printed."""
    files = re.findall(r"^PASSED ([^\s:]+)::", output, re.MULTILINE)  # a name may have colons, too: [::1]
    return dict(Counter(SUITES[file] for file in files))


def write_page() -> None:
    """Add up what was counted since the file was started, and write it down."""
    totals: dict[str, Counter[str]] = {}
    for line in COUNTS.read_text("utf-8").splitlines():
        entry = json.loads(line)
        totals.setdefault(entry["name"], Counter()).update(entry["outcome"])
    rows = []
    for name, (what, under) in WHAT.items():
        if name in totals:
            happened = ", ".join(f"{kind} {number:,}" for kind, number in sorted(totals[name].items()))
            rows.append(f"| {what} | {totals[name].total():,} | {happened} | {under} |\n")
    whole = sum(counter.total() for counter in totals.values())
    named = sum(totals[name].total() for name in NAMED if name in totals)
    machine = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    tail = (
        f"\n{named:,} inputs over tokenizer, readers, index files and kernels, {whole:,} inputs in all; {machine}. "
        "What they found and what was done about it is in the changelog.\n"
    )
    PAGE.write_text(HEAD + "".join(rows) + tail, "utf-8")
    print(PAGE.read_text("utf-8"))


if __name__ == "__main__":
    main(sys.argv[1:])
