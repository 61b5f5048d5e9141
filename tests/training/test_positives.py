"""Generated positives: a tiny random captioner and diffusion pipeline, resumable, checker on; and the stand-ins."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from caplens.core.errors import InputError
from caplens.training.positives import changed_picture, generate_captions, generate_images, retrieved_captions

torch = pytest.importorskip("torch")


def nothing(task: str, done: int, total: int) -> None:
    pass


@pytest.fixture(scope="module")
def captioner(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    transformers = pytest.importorskip("transformers")
    from transformers.models.blip.image_processing_pil_blip import BlipImageProcessorPil

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "cat", "on", "grass", "[DEC]"]
    path = tmp_path_factory.mktemp("blip") / "vocab.txt"
    path.write_text("\n".join(words))
    tokenizer = transformers.BertTokenizer(str(path))
    text = {"vocab_size": len(words), "hidden_size": 16, "encoder_hidden_size": 16, "intermediate_size": 32}
    text |= {"num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 40, "projection_dim": 16}
    text |= {"bos_token_id": 10, "eos_token_id": 3, "sep_token_id": 3, "pad_token_id": 0}
    vision = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    vision |= {"image_size": 32, "patch_size": 16}
    torch.manual_seed(0)
    model = transformers.BlipForConditionalGeneration(
        transformers.BlipConfig(text_config=text, vision_config=vision, projection_dim=16)
    ).eval()
    processor = transformers.BlipProcessor(BlipImageProcessorPil(size={"height": 32, "width": 32}), tokenizer)
    return model, processor


def test_captions_are_made_once(captioner: tuple[Any, Any], tmp_path: Path) -> None:
    names = [f"{number}.png" for number in range(5)]
    for number, name in enumerate(names):
        Image.new("RGB", (20, 20), (50 * number, 0, 0)).save(tmp_path / name)
    output = tmp_path / "out" / "captions.jsonl"
    first = generate_captions(tmp_path, names[:3], output, captioner, nothing, batch=2)
    assert list(first) == names[:3]
    with output.open("a") as file:
        file.write('{"key": "3.png", "capt')  # killed while writing
    model, processor = captioner
    calls: list[int] = []

    class Counting:
        def generate(self, **inputs: Any) -> Any:
            calls.append(len(inputs["pixel_values"]))
            return model.generate(**inputs)

    whole = generate_captions(tmp_path, names, output, (Counting(), processor), nothing, batch=2)
    assert calls == [2]  # 3 and 4 only
    assert {name: whole[name] for name in first} == first
    assert len([line for line in output.read_text().splitlines() if line.endswith("}")]) == 5


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Any:
    diffusers = pytest.importorskip("diffusers")
    transformers = pytest.importorskip("transformers")
    from diffusers.pipelines.stable_diffusion.safety_checker import StableDiffusionSafetyChecker
    from tests.encoders.random_clip import MERGES, VOCABULARY
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    folder = tmp_path_factory.mktemp("tokens")
    (folder / "vocab.json").write_text(json.dumps(VOCABULARY))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(" ".join(pair) for pair in MERGES))
    tokenizer = transformers.CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=16)
    text = {"vocab_size": len(VOCABULARY), "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    text |= {"num_attention_heads": 2, "max_position_embeddings": 16}
    vision = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    vision |= {"image_size": 32, "patch_size": 16}
    torch.manual_seed(0)
    blocks = {"block_out_channels": (32, 32), "layers_per_block": 1}
    unet = diffusers.UNet2DConditionModel(
        sample_size=8,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=16,
        attention_head_dim=8,
        **blocks,
    )
    vae = diffusers.AutoencoderKL(
        down_block_types=["DownEncoderBlock2D"] * 2,
        up_block_types=["UpDecoderBlock2D"] * 2,
        latent_channels=4,
        **blocks,
    )
    made = diffusers.StableDiffusionPipeline(
        vae=vae,
        text_encoder=transformers.CLIPTextModel(transformers.CLIPTextConfig(**text)),
        tokenizer=tokenizer,
        unet=unet,
        scheduler=diffusers.DDIMScheduler(),
        safety_checker=StableDiffusionSafetyChecker(transformers.CLIPConfig(text_config=text, vision_config=vision)),
        feature_extractor=CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=32),
    )
    made.set_progress_bar_config(disable=True)
    return made


def test_pictures_are_drawn_once_and_flagged_ones_not_kept(pipeline: Any, tmp_path: Path) -> None:
    captions = ["the cat", "a dog", "the cat"]

    def checked(images: Any, clip_input: Any) -> tuple[Any, list[bool]]:
        checked.calls += 1  # type: ignore[attr-defined]
        return images, [checked.calls == 2] * len(images)  # type: ignore[attr-defined]

    checked.calls = 0  # type: ignore[attr-defined]
    real = pipeline.safety_checker.forward
    pipeline.safety_checker.forward = checked
    try:
        kept = generate_images(captions, tmp_path, pipeline, nothing, steps=2)
        assert list(kept) == ["the cat"]
        assert Image.open(tmp_path / kept["the cat"]).size[0] > 0
        again = generate_images([*captions, "on"], tmp_path, pipeline, nothing, steps=2)
    finally:
        pipeline.safety_checker.forward = real
    assert checked.calls == 3  # type: ignore[attr-defined]
    assert set(again) == {"the cat", "on"}
    assert len(list(tmp_path.glob("*.jpg"))) == 2


def test_no_picture_without_a_safety_checker(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="safety checker"):
        generate_images(["a"], tmp_path, SimpleNamespace(safety_checker=None), nothing)


def test_a_changed_picture_is_another_and_always_the_same() -> None:
    rng = np.random.default_rng(0)
    picture = Image.fromarray(rng.integers(0, 255, (60, 90, 3), np.uint8))
    one, same, other = (changed_picture(picture, name) for name in ("a.jpg", "a.jpg", "b.jpg"))
    assert one.size == (224, 224)
    assert np.array_equal(np.asarray(one), np.asarray(same))
    assert not np.array_equal(np.asarray(one), np.asarray(other))
    assert changed_picture(Image.new("RGB", (1, 1)), "c.jpg").size == (224, 224)


def test_retrieved_captions_come_from_the_other_half() -> None:
    import zlib

    rng = np.random.default_rng(0)
    names = [f"{number}.jpg" for number in range(30)]
    pictures = rng.normal(size=(30, 5)).astype(np.float32)
    texts = rng.normal(size=(60, 4)).astype(np.float32)
    captions = [np.array([2 * row, 2 * row + 1]) for row in range(30)]
    found = retrieved_captions(pictures, texts, captions, names)
    unit = pictures / np.linalg.norm(pictures, axis=1, keepdims=True)
    for row, text in enumerate(found):
        half = zlib.crc32(names[row].encode()) & 1
        others = [other for other in range(30) if zlib.crc32(names[other].encode()) & 1 != half]
        nearest = max(others, key=lambda other: float(unit[row] @ unit[other]))
        assert text // 2 == nearest
