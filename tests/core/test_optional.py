"""One gate for optional packages: what is missing is said with the command that gets it, and nothing else is lost."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.cli.conftest import Outcome
from typer.main import get_command

from caplens.cli import build_app
from caplens.core.errors import MissingData
from caplens.core.optional import PACKAGES, available, check, install_command, require
from caplens.evaluation.evaluate import evaluate
from caplens.metrics import list_metrics

ROOT = Path(__file__).parents[2]
TOOLS = {"dev", "docs"}
"""Extras for those who work on caplens."""
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def extras() -> dict[str, set[str]]:
    """What each extra of pyproject.toml brings, by the names packages are installed by."""
    table = PROJECT["optional-dependencies"]

    def brought(extra: str) -> set[str]:
        names: set[str] = set()
        for line in table[extra]:
            if line.startswith("caplens["):
                names.update(*map(brought, line.removeprefix("caplens[").removesuffix("]").split(",")))
            else:
                names.add(re.split(r"[\[>=]", line)[0])
        return names

    return {extra: brought(extra) for extra in table if extra not in TOOLS}


def test_the_table_says_what_pyproject_says() -> None:
    listed = {extra: names for extra, names in extras().items() if extra != "all"}
    for package in PACKAGES.values():
        assert set(package.extras) == {extra for extra, names in listed.items() if package.name in names}
    assert extras()["all"] == {package.name for package in PACKAGES.values() if package.extras}
    assert "torch" not in listed["embedded"]


def test_what_is_missing_comes_with_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("onnxruntime", "tokenizers", "open_clip"):
        monkeypatch.setitem(sys.modules, module, None)
    assert not available("onnxruntime")
    with pytest.raises(MissingData, match=r"^the encoder needs onnxruntime and tokenizers: pip .*\[embedded\]'$"):
        check("onnxruntime", "tokenizers", "msgpack", purpose="the encoder")
    with pytest.raises(MissingData, match=r"^RN50 needs open_clip_torch: pip install open_clip_torch$"):
        require("open_clip:create_model", purpose="RN50")
    assert install_command([PACKAGES["av"], PACKAGES["pandas"]]) == "pip install 'caplens[video]' 'caplens[table]'"


@pytest.mark.parametrize(
    "fault",
    [
        "import no_such_part",
        "raise RuntimeError('operator torchvision::nms does not exist\\nand more')",
        "1 / 0",
        "",  # loads, and lacks what is wanted of it
    ],
)
def test_a_package_that_is_installed_but_broken_gets_a_message(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "transformers.py").write_text(fault)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "transformers", raising=False)
    monkeypatch.setitem(sys.modules, "torch", sys)
    with pytest.raises(MissingData) as caught:
        require("torch", "transformers:CLIPModel", purpose="CLIP")
    sys.modules.pop("transformers", None)  # not by monkeypatch, which would put the broken one back at the end
    said = str(caught.value)
    assert said.startswith("CLIP needs transformers, which is installed but does not load here (")
    assert said.endswith("): pip install --upgrade 'caplens[clip]'")
    assert "\n" not in said


# Every verb, on as little as it takes to get to work. Those not named here get a path that leads nowhere for each
# option they require: before they look at it they say which packages they lack.
ARGUMENTS = {
    "bench": ["--ratings", "{folder}/ratings.csv", "--captions", "{captions}", "-m", "cider-r,clip-s"],
    "caption": ["{image}"],
    "check": ["{captions}", "--html", "{output}/check.html"],
    "compare": ["{captions}", "{captions}", "-m", "cider-r,clip-s", "--resamples", "10"],
    "demo": ["--output", "{output}/demo"],
    "explain": ["{image}", "a cat"],
    "export": ["{folder}/runs", "{output}/site"],
    "filter": ["{captions}", "--keep", "length > 1", "--output", "{output}/kept", "--workers", "1"],
    "generate positives": ["--images={folder}", "--captions={pairs}", "--output={output}", "--captioner=a/b"],
    "idf build": ["{captions}", "--output", "{output}/idf.safetensors"],
    "new-metric": ["vowels", "--output", "{output}/vowels"],
    "report": ["{output}/kept/scores"],  # which the verb before has filled
    "score": ["{captions}", "--html", "{output}/score.html"],
    "serve": ["--help"],  # it would not end; what it says without its packages is in tests/cli/test_serve.py
    "weights fetch": ["wordnet-3.0"],
    "weights path": ["wordnet-3.0"],
}
OPTIONS = {"bert-score": ["-o", "text_encoder=all-MiniLM-L6-v2"], "novel": ["-o", "training={captions}"]}
"""Of metrics that would take long otherwise, or that cannot do without."""
WITHOUT_EXTRAS = ("bench", "compare", "doctor", "idf build", "metrics", "new-metric", "score", "weights list")
"""Verbs whose work, or a part of it, needs no optional package."""
NO_DATA = "without data"


def verbs() -> dict[str, list[str]]:
    """Every verb of the command line with arguments."""

    def walk(command: Any, path: str) -> dict[str, list[str]]:
        if hasattr(command, "commands"):
            below = (walk(inner, f"{path} {name}".strip()) for name, inner in command.commands.items())
            return {verb: arguments for found in below for verb, arguments in found.items()}
        required = [[parameter.opts[0], "{folder}/none"] for parameter in command.params if parameter.required]
        return {path: ARGUMENTS.get(path, [word for option in required for word in option])}

    return walk(get_command(build_app()), "")


def test_arguments_are_of_verbs_that_there_are() -> None:
    assert ARGUMENTS.keys() <= verbs().keys()


@cache
def hidden_from(extra: str) -> frozenset[str]:
    """Modules and distributions of this environment that one with this extra alone would not have."""
    waiting = [(name, "") for name in ("caplens", *map(_name, PROJECT["dependencies"]), *extras().get(extra, ()))]
    brought: set[str] = set()
    seen: set[tuple[str, str]] = set()
    while waiting:
        name, part = waiting.pop()
        if (name, part) in seen:
            continue
        seen.add((name, part))
        brought.add(canonicalize_name(name))
        try:
            needed = [Requirement(line) for line in distribution(name).requires or ()] if name != "caplens" else []
        except PackageNotFoundError:
            continue
        for requirement in needed:
            if requirement.marker is None or requirement.marker.evaluate({"extra": part}):
                waiting += [(requirement.name, inner) for inner in ("", *requirement.extras)]
    owners = {module: {*map(canonicalize_name, names)} for module, names in packages_distributions().items()}
    modules = {module for module, names in owners.items() if not names & brought}
    absent = {name.replace("-", "_") for names in owners.values() for name in names - brought}
    return frozenset(modules | absent)


def _name(line: str) -> str:
    return Requirement(line).name


Environment = Callable[[str], dict[str, Outcome]]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Run every verb, and `score` with every metric, as if only one extra were installed ("": none)."""
    folder = tmp_path_factory.mktemp("environment")
    rows = [json.loads(line) for line in (ROOT / "examples" / "captions.jsonl").open(encoding="utf-8")][:2]
    video = _video(folder / "clip.mp4")
    for row in rows:
        row |= {"image": str(ROOT / "examples" / row["image"]), **({"video": str(video)} if video else {})}
    captions, pairs = folder / "captions.jsonl", folder / "pairs.json"
    captions.write_text("".join(json.dumps(row) + "\n" for row in rows))
    pairs.write_text(json.dumps({split: {"split": split, "captions": ["a cat"]} for split in ("train", "val")}))
    (folder / "ratings.csv").write_text("id,rating\n" + "".join(f"{row['id']},{n}\n" for n, row in enumerate(rows)))
    evaluate(["a cat"], [["a cat"]], metrics=["rouge-l"]).to_json(folder / "runs" / "one.json")
    paths = {"folder": folder, "captions": captions, "pairs": pairs, "image": rows[0]["image"]}
    commands = {
        f"score -m {name}": ["{captions}", "-m", name, *OPTIONS.get(name, ())]
        for name in ("infometic,cider-r", *(metric["name"] for metric in list_metrics()))
    }
    commands |= verbs()

    @cache
    def run(installed: str) -> dict[str, Outcome]:
        extra = installed.removesuffix(NO_DATA).strip()
        output = folder / (installed or "core").replace(" ", "-")
        output.mkdir()
        left_out = {"demo"} if extra else set()  # all metrics on twelve pictures, twice: once is enough
        filled = {
            name: [*name.partition(" -m")[0].split(), *(part.format(**paths, output=output) for part in arguments)]
            for name, arguments in commands.items()
            if name not in left_out
        }
        jobs = output / "jobs.json"
        jobs.write_text(json.dumps({"hidden": sorted(hidden_from(extra)), "commands": filled}))
        variables = {**os.environ, "COLUMNS": "200", **({"CAPLENS_DATA": str(output)} if NO_DATA in installed else {})}
        program = [sys.executable, str(ROOT / "tests" / "core" / "environment.py"), str(jobs)]
        done = subprocess.run(program, capture_output=True, text=True, check=False, env=variables)
        assert done.returncode == 0, done.stderr
        return {name: Outcome(*outcome) for name, outcome in json.loads(done.stdout.splitlines()[-1]).items()}

    return run


def _video(path: Path) -> Path | None:
    """Write four frames of gray, where that can be done."""
    if not available("av"):
        return None
    import av
    import numpy as np

    with av.open(path, "w") as container:
        stream = container.add_stream("mpeg4", rate=4)
        stream.width = stream.height = 64
        for level in (0, 80, 160, 240):
            frame = av.VideoFrame.from_ndarray(np.full((64, 64, 3), level, np.uint8))
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


MESSAGE = re.compile(r"(?:: |^)([^:]+) needs ([^:]+): (pip install .+|caplens weights fetch .+)$", re.MULTILINE)
"""How the gate words what is lacking."""
EXTRAS = [extra for extra in PROJECT["optional-dependencies"] if extra not in {"all", *TOOLS}]
SHIPPED = ("infometic", "infometic,cider-r", "pac-s", "nneval", "caplens-score")
"""Metrics of the models that come along."""


@pytest.mark.parametrize("installed", ["", *EXTRAS, NO_DATA, f"embedded {NO_DATA}"])
def test_every_verb_and_metric_works_or_says_what_it_lacks(installed: str, environment: Environment) -> None:
    here = extras().get(installed.removesuffix(NO_DATA).strip(), set())
    outcomes = environment(installed)
    problems = {name: reason for name, outcome in outcomes.items() if (reason := _problem(name, outcome, here))}
    assert not problems, "\n".join(f"{name} {reason}:\n{outcomes[name].stderr}" for name, reason in problems.items())
    assert all(outcomes[verb].stdout for verb in WITHOUT_EXTRAS)
    if installed in CLAIMS:
        CLAIMS[installed](outcomes)


def _problem(name: str, outcome: Outcome, here: set[str]) -> str:
    """Return what is wrong with an outcome where these packages are installed."""
    lacking = MESSAGE.findall(outcome.stderr)
    asked = {package for _, needed, how in lacking if how.startswith("pip") for package in re.split(", | and ", needed)}
    if outcome.code not in (0, 2) or "Traceback" in outcome.stderr:
        return "breaks down"
    named = (name.startswith("train") and "none" in outcome.stderr) or "-o model=NAME" in outcome.stderr
    if outcome.code == 2 and not lacking and not named:
        return "does not say how to get what it lacks"
    return "asks for what is here" if asked & here else ""


def _without_extras(outcomes: dict[str, Outcome]) -> None:
    """A metric that lacks a package does not take the others along, nor the page."""
    several = outcomes["score -m infometic,cider-r"]
    assert "cider-r" in several.stdout
    assert "infometic was not computed: the embedded encoder needs onnxruntime and tokenizers: pip" in several.stderr
    # Where the parser is in the data folder, msgpack, which reads it, is still not installed.
    assert outcomes["score"].code == 0
    assert "meteor" in outcomes["score"].stdout
    assert "score.html" in outcomes["score"].stdout
    assert outcomes["explain"].stderr.endswith("needs onnxruntime and tokenizers: pip install 'caplens[embedded]'\n")


def _without_torch(outcomes: dict[str, Outcome]) -> None:
    """Shipped models run."""
    assert "torch" in hidden_from("embedded")
    for name in ("explain", "caption", *(f"score -m {metric}" for metric in SHIPPED)):
        assert outcomes[name].code == 0 or "caplens weights fetch" in outcomes[name].stderr, outcomes[name].stderr
        assert outcomes[name].code == 2 or outcomes[name].stdout


CLAIMS = {"": _without_extras, "embedded": _without_torch}
