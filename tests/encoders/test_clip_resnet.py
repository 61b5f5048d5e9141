"""ResNet backbones through open_clip: the real one where it loads, else a small model with the same face."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch")

import torch
from safetensors.torch import save_file

from caplens.core.errors import InputError, MissingData
from caplens.encoders.clip import load_clip
from caplens.storage import weights

WIDTH, CONTEXT, SIZE = 8, 77, 32


class Blocks(torch.nn.Module):
    """One causal attention layer, called as open_clip's transformer is."""

    def __init__(self) -> None:
        super().__init__()
        self.attend = torch.nn.MultiheadAttention(WIDTH, 2, batch_first=True)

    def forward(self, x: Any, attn_mask: Any = None) -> Any:
        return x + self.attend(x, x, x, attn_mask=attn_mask, need_weights=False)[0]


class SmallResNet(torch.nn.Module):
    """What the adapter uses of open_clip.CLIP, with sizes of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.visual = torch.nn.Sequential(
            torch.nn.Conv2d(3, WIDTH, 8, 8),
            torch.nn.AdaptiveAvgPool2d(1),
            torch.nn.Flatten(),
            torch.nn.Linear(WIDTH, 6),
        )
        self.visual.image_size = (SIZE, SIZE)  # type: ignore[assignment]
        self.token_embedding = torch.nn.Embedding(49408, WIDTH)
        self.positional_embedding = torch.nn.Parameter(torch.randn(CONTEXT, WIDTH))
        self.transformer = Blocks()
        self.ln_final = torch.nn.LayerNorm(WIDTH)
        self.text_projection = torch.nn.Parameter(torch.randn(WIDTH, 6))
        self.register_buffer("attn_mask", torch.full((CONTEXT, CONTEXT), float("-inf")).triu(1), persistent=False)

    def encode_image(self, pixels: Any) -> Any:
        return self.visual(pixels)

    def encode_text(self, ids: Any) -> Any:
        x = self.transformer(self.token_embedding(ids) + self.positional_embedding, attn_mask=self.attn_mask)
        return (self.ln_final(x) @ self.text_projection)[torch.arange(len(ids)), ids.argmax(dim=1)]


@pytest.fixture
def open_clip(monkeypatch: pytest.MonkeyPatch) -> Any:
    try:
        import open_clip

        return open_clip
    except (ImportError, RuntimeError):  # it needs a torchvision that fits the installed torch
        module = ModuleType("open_clip")
        module.__dict__.update(create_model=lambda name, pretrained=None: SmallResNet())
        monkeypatch.setitem(sys.modules, "open_clip", module)
        return module


def test_texts_and_pictures_equal_the_models_own(open_clip: Any, tmp_path: Path) -> None:
    if weights.find("clip-vocabulary") is None:
        pytest.skip("CLIP's vocabulary is not here: caplens weights fetch clip-vocabulary")
    torch.manual_seed(0)
    model = open_clip.create_model("RN50-quickgelu", pretrained=None).eval()
    save_file({key: value.contiguous() for key, value in model.state_dict().items()}, tmp_path / "rn50.safetensors")
    encoder = load_clip("RN50", tmp_path / "rn50.safetensors")
    assert encoder.identity.startswith("clip-RN50:rn50@")
    texts = ["a dog runs", "the cat sits on a large mat in the garden", ""]
    ids = torch.zeros(len(texts), CONTEXT, dtype=torch.long)
    for row, text in enumerate(texts):
        numbers = encoder.tokenize(text)[0]
        ids[row, : len(numbers)] = torch.tensor(numbers)
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 255, (60, 90, 3), np.uint8))
    with torch.no_grad():
        expected = model.encode_text(ids).numpy()
        seen = model.encode_image(torch.from_numpy(encoder.pixels(picture))[None]).numpy()
    np.testing.assert_allclose(encoder.encode_texts(texts), expected, atol=2e-5)
    np.testing.assert_allclose([text.whole for text in encoder.encode_tokens(texts)], expected, atol=2e-5)
    np.testing.assert_allclose(encoder.encode_images([picture]), seen, atol=1e-5)


def test_what_is_missing_is_said(open_clip: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingData, match="weights=FILE"):
        load_clip("RN50")
    save_file({"ln_final.weight": torch.ones(3)}, tmp_path / "other.safetensors")
    with pytest.raises(InputError, match="do not fit RN50"):
        load_clip("RN50", tmp_path / "other.safetensors")
    monkeypatch.setitem(sys.modules, "open_clip", None)
    with pytest.raises(MissingData, match="pip install open_clip_torch"):
        load_clip("RN50", tmp_path / "other.safetensors")
