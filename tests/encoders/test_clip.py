"""CLIP's loading, layouts, tokens and vectors, on random weights against a slow twin."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from caplens.core.errors import InputError, MissingData
from caplens.encoders.base import Encoder
from caplens.encoders.clip import MEAN, STD, ClipEncoder, build, centre_crop, config_of, load_clip
from caplens.encoders.clip_layouts import detect, from_hub, merge_lora, plain_state, read_state, to_hub
from caplens.encoders.clip_tokens import END, START, ClipTokenizer, byte_letters, clean
from caplens.encoders.devices import Placement
from caplens.storage import weights

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.encoders.plain_clip import PlainClip, random_clip  # noqa: E402
from tests.encoders.random_clip import MERGES, VOCABULARY, tokenizer  # noqa: E402


@pytest.fixture(scope="module")
def plain() -> PlainClip:
    return random_clip(len(VOCABULARY))


@pytest.fixture(scope="module")
def encoder(plain: PlainClip) -> ClipEncoder:
    state = to_hub(dict(plain.state_dict()))
    return ClipEncoder(build(state, config_of(state, "quick_gelu")), tokenizer(), "clip-random", "0")


def slow_ids(text: str, context: int) -> list[int]:
    """Byte pairs merged one at a time, the earliest rule first."""
    letters = byte_letters()
    ids = [VOCABULARY[START]]
    for word in re.findall(r"'s|'t|'re|'ve|'m|'ll|'d|[^\W\d_]+|\d|[^\s\w]+|_+", clean(text)):
        pieces = [letters[byte] for byte in word.encode()]
        pieces[-1] += "</w>"
        for first, second in MERGES:
            merged: list[str] = []
            for piece in pieces:
                if merged and merged[-1] == first and piece == second:
                    merged[-1] += piece
                else:
                    merged.append(piece)
            pieces = merged
        ids += [VOCABULARY[piece] for piece in pieces]
    ids.append(VOCABULARY[END])
    return ids if len(ids) <= context else [*ids[: context - 1], VOCABULARY[END]]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["the", "cat", "dog's", "on", "3rd", "CAFÉ", "don't!", "a&amp;b", "—", "x,y", " "])))
def test_tokens_equal_a_slow_tokenizer(words: list[str]) -> None:
    text = " ".join(words)
    assert tokenizer(200)(text)[0] == slow_ids(text, 200)


def test_a_long_text_keeps_its_end_token(encoder: ClipEncoder) -> None:
    ids, cut = encoder.tokenize("cat " * 100)
    assert cut
    assert len(ids) == encoder.context_length
    assert ids[-1] == VOCABULARY[END]
    assert [encoder.fits(text) for text in ("cat", "cat " * 19, "cat " * 18)] == [True, False, True]


def test_the_published_vocabulary_numbers_known_words() -> None:
    if weights.find("clip-vocabulary") is None:
        pytest.skip("CLIP's vocabulary is not in the cache: caplens weights fetch clip-vocabulary")
    ids, _ = ClipTokenizer.published()("a photo of a cat")
    assert ids == [49406, 320, 1125, 539, 320, 2368, 49407]


TEXTS = ["the cat", "", "a dog on the cat's dog", "the the the the", "3 cats — é", "cat " * 100]


def test_texts_equal_the_slow_twin(plain: PlainClip, encoder: ClipEncoder) -> None:
    ids = [slow_ids(text, 20) for text in TEXTS]
    padded = torch.tensor([[*row, *[0] * (20 - len(row))] for row in ids])
    with torch.no_grad():
        expected = plain.encode_tokens(padded).numpy()
    for row, (tokens, whole) in enumerate(zip(encoder.encode_tokens(TEXTS), encoder.encode_texts(TEXTS), strict=True)):
        length = len(ids[row])
        assert list(tokens.ids) == ids[row]
        np.testing.assert_allclose(tokens.vectors, expected[row, :length], atol=1e-4)
        np.testing.assert_allclose(tokens.whole, expected[row, length - 1], atol=1e-4)
        np.testing.assert_allclose(whole, expected[row, length - 1], atol=1e-4)


def pictures(count: int) -> list[Image.Image]:
    rng = np.random.default_rng(0)
    return [Image.fromarray(rng.integers(0, 255, (40 + row, 60 - row, 3), np.uint8)) for row in range(count)]


def test_pictures_equal_the_slow_twin(plain: PlainClip, encoder: ClipEncoder) -> None:
    images = pictures(5)
    with torch.no_grad():
        expected = plain.visual(torch.from_numpy(np.stack([encoder.pixels(image) for image in images]))).numpy()
    np.testing.assert_allclose(encoder.encode_images(images), expected, atol=1e-4)


def cosines(encoder: Encoder, images: list[Image.Image], texts: list[str]) -> np.ndarray:
    pictures, captions = encoder.encode_images(images).astype(float), encoder.encode_texts(texts).astype(float)
    pictures /= np.linalg.norm(pictures, axis=1, keepdims=True)
    captions /= np.linalg.norm(captions, axis=1, keepdims=True)
    return np.asarray(pictures @ captions.T)


def test_batches_and_order_do_not_change_a_score(encoder: ClipEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    images = pictures(7)
    whole = cosines(encoder, images, TEXTS)
    monkeypatch.setattr("caplens.encoders.base.TOKENS_PER_BATCH", 1)
    monkeypatch.setattr(encoder, "place", Placement(batch_size=2))
    backwards = cosines(encoder, images[::-1], TEXTS[::-1])[::-1, ::-1]
    np.testing.assert_allclose(backwards, whole, atol=1e-6)


@pytest.mark.parametrize("size", [(96, 64), (64, 64), (65, 200), (30, 31), (1, 1), (640, 480)])
def test_preprocessing_equals_transformers(size: tuple[int, int]) -> None:
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    processor = CLIPImageProcessorPil(size={"shortest_edge": 64}, crop_size=64)
    image = Image.fromarray(np.random.default_rng(1).integers(0, 255, (size[1], size[0], 3), np.uint8))
    expected = processor(image, return_tensors="np")["pixel_values"][0]
    np.testing.assert_allclose(centre_crop(image, 64, MEAN, STD), expected, atol=1e-6)


def test_an_odd_margin_is_rounded_as_in_clips_own_crop() -> None:
    # 91 - 64 leaves 27: CLIP's transform rounds 13.5 to 14, transformers takes 13.
    image = Image.fromarray(np.random.default_rng(1).integers(0, 255, (64, 91, 3), np.uint8))
    expected = (np.asarray(image, np.float64)[:, 14:78] / 255 - MEAN) / STD
    np.testing.assert_allclose(centre_crop(image, 64, MEAN, STD), expected.transpose(2, 0, 1), atol=1e-6)


def test_a_ribbon_needs_no_gigabytes() -> None:
    assert centre_crop(Image.new("RGB", (1, 60_000)), 224, MEAN, STD).shape == (3, 224, 224)


@pytest.mark.parametrize("layout", ["openai", "open_clip", "hub"])
def test_layouts_round_trip_exactly(plain: PlainClip, layout: str) -> None:
    hub = to_hub(dict(plain.state_dict()))
    there = from_hub(hub, layout)  # type: ignore[arg-type]
    assert detect(there) == layout
    back = to_hub(there)
    assert back.keys() == hub.keys()
    assert all(torch.equal(back[key], hub[key]) for key in hub)
    if layout == "openai":
        original = plain.state_dict()
        assert there.keys() == original.keys()
        assert all(torch.equal(there[key], original[key]) for key in original)


def test_every_file_layout_gives_the_same_vectors(
    plain: PlainClip, encoder: ClipEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors.torch import save_file

    monkeypatch.setattr(ClipTokenizer, "published", classmethod(lambda cls, context=77: tokenizer(context)))
    openai = {key: value.contiguous() for key, value in plain.state_dict().items()}
    save_file(openai, tmp_path / "openai.safetensors")
    save_file(from_hub(to_hub(openai), "open_clip"), tmp_path / "open_clip.safetensors")
    torch.save({"state_dict": openai, "epoch": 3}, tmp_path / "pac.pth")
    torch.save({"state_dict": {f"module.{key}": value for key, value in openai.items()}}, tmp_path / "parallel.pt")
    hub = tmp_path / "hub"
    state = to_hub(openai)
    build(state, config_of(state, "quick_gelu")).save_pretrained(hub)
    (hub / "vocab.json").write_text(json.dumps(VOCABULARY))
    (hub / "merges.txt").write_text("#version: 0.2\n" + "\n".join(" ".join(pair) for pair in MERGES))
    images = pictures(2)
    expected = cosines(encoder, images, TEXTS)
    for name in ("openai.safetensors", "open_clip.safetensors", "pac.pth", "parallel.pt", "hub"):
        loaded = load_clip("ViT-B-32", tmp_path / name, allow_pickle=True)
        np.testing.assert_allclose(cosines(loaded, images, TEXTS), expected, atol=1e-6)
        assert loaded.name.startswith("clip-ViT-B-32:")
    one, other = (load_clip("ViT-B-32" + kind, tmp_path / "openai.safetensors") for kind in ("", "-laion2b"))
    assert one.weights_hash != other.weights_hash  # another activation, other numbers


def test_low_rank_updates_are_added(plain: PlainClip) -> None:
    state = dict(plain.state_dict())
    generator = torch.Generator().manual_seed(3)
    name = "visual.transformer.resblocks.0.attn"
    updates = {
        f"{name}.in_proj_weight_lora_A": (4, 128),
        f"{name}.in_proj_weight_lora_B": (384, 4),
        f"{name}.out_proj.lora_A": (4, 128),
        f"{name}.out_proj.lora_B": (128, 4),
        "transformer.resblocks.1.mlp.c_fc.lora_A": (4, 128),
        "transformer.resblocks.1.mlp.c_fc.lora_B": (512, 4),
    }
    lora = state | {key: torch.randn(size, generator=generator) for key, size in updates.items()}
    lora["visual.conv1.conv.weight"] = lora.pop("visual.conv1.weight")
    merged = merge_lora(lora)
    assert merged.keys() == state.keys()
    for kind in ("in_proj_weight", "out_proj.weight"):
        stem = f"{name}.{kind.removesuffix('.weight')}" + ("_" if kind == "in_proj_weight" else ".")
        change = lora[stem + "lora_B"] @ lora[stem + "lora_A"] / 4
        torch.testing.assert_close(merged[f"{name}.{kind}"], state[f"{name}.{kind}"] + change)
    assert torch.equal(
        merged["transformer.resblocks.1.mlp.c_fc.weight"], state["transformer.resblocks.1.mlp.c_fc.weight"]
    )
    assert to_hub(lora).keys() == to_hub(state).keys()


class _Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (exec, ("raise SystemExit('code in a weight file ran')",))


def test_pickles_only_when_asked_and_never_their_code(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    torch.save({"state_dict": {"a": torch.ones(1)}}, path)
    with pytest.raises(InputError, match="allow_pickle"):
        read_state(path)
    assert torch.equal(read_state(path, allow_pickle=True)["a"], torch.ones(1))
    path.write_bytes(pickle.dumps(_Trap()))
    with pytest.raises(InputError, match="cannot be read as plain weights"):
        read_state(path, allow_pickle=True)


def test_what_is_no_clip_is_refused() -> None:
    with pytest.raises(InputError, match="not the weights of a CLIP"):
        detect({"layer.weight": 1})
    with pytest.raises(InputError, match="no weights"):
        plain_state({"state_dict": {}})
    with pytest.raises(InputError, match="no backbone"):
        load_clip("ViT-Z-1")


def test_absent_weights_name_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(MissingData, match="caplens weights fetch openai/clip-vit-base-patch32"):
        load_clip("ViT-B-32")
