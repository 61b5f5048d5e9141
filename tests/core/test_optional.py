"""One gate for optional packages: what is missing is said with the command that gets it, and nothing else is lost."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from caplens.core.errors import MissingData
from caplens.core.optional import PACKAGES, available, check, install_command, require

ROOT = Path(__file__).parents[2]


def extras() -> dict[str, set[str]]:
    """What each extra of pyproject.toml brings, by the names packages are installed by."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]

    def brought(extra: str) -> set[str]:
        names: set[str] = set()
        for line in table[extra]:
            if line.startswith("caplens["):
                names.update(*map(brought, line.removeprefix("caplens[").removesuffix("]").split(",")))
            else:
                names.add(line.partition(">")[0].partition("=")[0])
        return names

    return {extra: brought(extra) for extra in table if extra != "dev"}


def test_the_table_says_what_pyproject_says() -> None:
    listed = {extra: names for extra, names in extras().items() if extra != "all"}
    for package in PACKAGES.values():
        assert set(package.extras) == {extra for extra, names in listed.items() if package.name in names}
        sizes = [len(listed[extra]) for extra in package.extras]
        assert sizes[:1] == sorted(sizes)[:1], f"{package.name}: the smallest extra comes first"
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
    monkeypatch.delitem(sys.modules, "transformers", raising=False)
    said = str(caught.value)
    assert said.startswith("CLIP needs transformers, which is installed but does not load here (")
    assert said.endswith("): pip install --upgrade 'caplens[clip]'")
    assert "\n" not in said
