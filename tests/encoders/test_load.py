"""What `auto` stands for."""

from __future__ import annotations

from pathlib import Path

import pytest

from caplens.core.errors import MissingData
from caplens.encoders.clip import BACKBONES, load_clip
from caplens.encoders.load import automatic


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A current folder with a folder in it that has CLIP's name on the hub, and a hub's cache that is empty."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"), raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    folder = tmp_path / BACKBONES["ViT-B-32"].hub
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"")


@pytest.mark.usefixtures("planted")
def test_a_folder_in_the_current_one_is_not_taken_for_clip() -> None:
    assert automatic() == "embedded"


@pytest.mark.usefixtures("planted")
def test_a_backbone_by_name_is_the_published_one() -> None:
    pytest.importorskip("transformers")
    with pytest.raises(MissingData, match="caplens weights fetch openai/clip-vit-base-patch32"):
        load_clip("ViT-B-32")


def test_weights_that_are_given_are_clips() -> None:
    assert automatic("some/path") == "ViT-B-32"
