"""InfoMetIC's network against an independent forward pass, one pair at a time, and the released checkpoint's layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from caplens.metrics.infometic.network import FusionNetwork

WIDTH, REGIONS, TOKENS, PAIRS = 64, 5, 7, 3
Arrays = dict[str, np.ndarray[Any, np.dtype[np.float64]]]


def released_layout(width: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the authors' checkpoint, from its published description."""
    shapes: dict[str, tuple[int, ...]] = {"bbox_position_embedding": (4, width), "logit_scale": ()}
    shapes |= {f"ln.{part}": (width,) for part in ("weight", "bias")}
    shapes |= {f"{side}_att_{part}": (width, width) for side in ("img", "text") for part in ("query", "key")}
    for encoder, layers in (("image_encoder", 4), ("text_encoder", 4), ("fusion_encoder", 2)):
        for layer in range(layers):
            block = f"{encoder}.resblocks.{layer}."
            shapes |= {f"{block}{norm}.{part}": (width,) for norm in ("ln_1", "ln_2") for part in ("weight", "bias")}
            shapes |= {f"{block}attn.in_proj_weight": (3 * width, width), f"{block}attn.in_proj_bias": (3 * width,)}
            shapes |= {f"{block}attn.out_proj.weight": (width, width), f"{block}attn.out_proj.bias": (width,)}
            shapes |= {f"{block}mlp.c_fc.weight": (4 * width, width), f"{block}mlp.c_fc.bias": (4 * width,)}
            shapes |= {f"{block}mlp.c_proj.weight": (width, 4 * width), f"{block}mlp.c_proj.bias": (width,)}
    return shapes


@pytest.fixture(scope="module")
def checkpoint() -> Arrays:
    random = np.random.default_rng(4)
    arrays = {name: 0.2 * random.normal(size=shape) for name, shape in released_layout(WIDTH).items()}
    return {**arrays, "clip_backbone.visual.proj": np.zeros((2, 2))}


def norm(x: np.ndarray, arrays: Arrays, name: str) -> np.ndarray:
    centered = x - x.mean(-1, keepdims=True)
    scaled: np.ndarray = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5)
    return scaled * arrays[f"{name}.weight"] + arrays[f"{name}.bias"]


def softmax(x: np.ndarray) -> np.ndarray:
    raised = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(raised / raised.sum(-1, keepdims=True))


def run_encoder(x: np.ndarray, arrays: Arrays, encoder: str, layers: int) -> np.ndarray:
    """One sequence through the blocks, head by head."""
    size = 32
    for layer in range(layers):
        block = f"{encoder}.resblocks.{layer}."
        normed = norm(x, arrays, f"{block}ln_1")
        joint = normed @ arrays[f"{block}attn.in_proj_weight"].T + arrays[f"{block}attn.in_proj_bias"]
        query, key, value = np.split(joint, 3, axis=-1)
        heads = []
        for start in range(0, WIDTH, size):
            part = slice(start, start + size)
            heads.append(softmax(query[:, part] @ key[:, part].T / np.sqrt(size)) @ value[:, part])
        joined = np.concatenate(heads, axis=-1)
        x = x + joined @ arrays[f"{block}attn.out_proj.weight"].T + arrays[f"{block}attn.out_proj.bias"]
        hidden = norm(x, arrays, f"{block}ln_2") @ arrays[f"{block}mlp.c_fc.weight"].T + arrays[f"{block}mlp.c_fc.bias"]
        hidden = hidden / (1 + np.exp(-1.702 * hidden))
        x = x + hidden @ arrays[f"{block}mlp.c_proj.weight"].T + arrays[f"{block}mlp.c_proj.bias"]
    return x


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_forward_pass_equals_one_pair_at_a_time(checkpoint: Arrays) -> None:
    network = FusionNetwork(checkpoint)
    random = np.random.default_rng(5)

    def drawn(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype(np.float32)

    regions, boxes, tokens = drawn(PAIRS, REGIONS + 2, WIDTH), drawn(PAIRS, REGIONS + 2, 4), drawn(PAIRS, TOKENS, WIDTH)
    regions[:, -1] = 0  # the null region
    image_global, text_global = drawn(2, PAIRS, WIDTH)
    region_mask = np.ones((PAIRS, REGIONS + 2), bool)
    region_mask[:, 0] = False
    word_mask = np.zeros((PAIRS, TOKENS), bool)
    word_mask[:, 1:4] = True
    scores = network.score(
        network.encode_image(regions, boxes),
        network.encode_text(tokens),
        image_global,
        text_global,
        region_mask,
        word_mask,
    )
    assert {part.dtype for part in scores} == {np.dtype(np.float32)}
    scale = np.exp(checkpoint["logit_scale"])
    for row in range(PAIRS):
        placed = regions[row].astype(float) + boxes[row].astype(float) @ checkpoint["bbox_position_embedding"]
        image = norm(run_encoder(placed, checkpoint, "image_encoder", 4), checkpoint, "ln")
        text = norm(run_encoder(tokens[row].astype(float), checkpoint, "text_encoder", 4), checkpoint, "ln")
        fused = norm(run_encoder(np.concatenate([image, text]), checkpoint, "fusion_encoder", 2), checkpoint, "ln")
        seen, read = fused[1 : REGIONS + 2], fused[REGIONS + 2 :][1:4]
        v, t = image_global[row].astype(float), text_global[row].astype(float)
        alpha_v = softmax(seen @ checkpoint["img_att_key"] @ (t @ checkpoint["img_att_query"]))
        alpha_t = softmax(read @ checkpoint["text_att_key"] @ (v @ checkpoint["text_att_query"]))
        np.testing.assert_allclose(scores.regions[row], alpha_v, atol=1e-5)
        np.testing.assert_allclose(scores.words[row, 1:4], alpha_t, atol=1e-5)
        assert scores.words[row, [0, 4, 5, 6]].max() == 0
        assert float(scores.recall[row]) == pytest.approx(scale * cosine(alpha_v @ seen, v), abs=1e-5)
        assert float(scores.precision[row]) == pytest.approx(scale * cosine(alpha_t @ read, t), abs=1e-5)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"img_att_key": None}, "img_att_key"),
        ({"extra": np.zeros(3)}, "extra"),
        ({"text_encoder.resblocks.1.mlp.c_fc.bias": np.zeros(3)}, "text_encoder.resblocks.1.mlp.c_fc.bias"),
        ({"projection": np.zeros((9, WIDTH + 1))}, "projection"),
    ],
)
def test_a_checkpoint_of_another_layout_is_refused(
    checkpoint: Arrays, change: dict[str, np.ndarray | None], name: str
) -> None:
    changed = {key: array for key, array in {**checkpoint, **change}.items() if array is not None}
    with pytest.raises(ValueError, match=f"^{name} is missing, unknown or of another size$"):
        FusionNetwork(changed)
