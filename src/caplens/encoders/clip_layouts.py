"""The shapes in which CLIP weights are published, and exact conversion between them.

- hub: `vision_model.*`, `text_model.*` (transformers)
- openai: `visual.*`, `transformer.*` (OpenAI's files, PAC-S checkpoints under the key `state_dict`, most of open_clip)
- open_clip: as openai with the text tower under `text.*` (open_clip's newer models)

PAC-S++ checkpoints are openai with low-rank updates beside the weights; they are added in when read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from caplens.core.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

Layout = Literal["hub", "openai", "open_clip", "resnet"]
State = dict[str, "Tensor"]

# openai name, hub name; the same for weight and bias.
_VISUAL = {
    "visual.class_embedding": "vision_model.embeddings.class_embedding",
    "visual.positional_embedding": "vision_model.embeddings.position_embedding.weight",
    "visual.conv1.weight": "vision_model.embeddings.patch_embedding.weight",
    "visual.ln_pre.weight": "vision_model.pre_layrnorm.weight",
    "visual.ln_pre.bias": "vision_model.pre_layrnorm.bias",
    "visual.ln_post.weight": "vision_model.post_layernorm.weight",
    "visual.ln_post.bias": "vision_model.post_layernorm.bias",
}
_TEXT = {
    "token_embedding.weight": "text_model.embeddings.token_embedding.weight",
    "positional_embedding": "text_model.embeddings.position_embedding.weight",
    "ln_final.weight": "text_model.final_layer_norm.weight",
    "ln_final.bias": "text_model.final_layer_norm.bias",
}
_TRANSPOSED = {"visual.proj": "visual_projection.weight", "text_projection": "text_projection.weight"}
_BLOCK = {
    "attn.out_proj": "self_attn.out_proj",
    "ln_1": "layer_norm1",
    "ln_2": "layer_norm2",
    "mlp.c_fc": "mlp.fc1",
    "mlp.c_proj": "mlp.fc2",
}
_TOWERS = {
    "visual.transformer.resblocks": "vision_model.encoder.layers",
    "transformer.resblocks": "text_model.encoder.layers",
}
# Numbers and buffers that some files carry beside the weights.
_IGNORED = re.compile(r"(input_resolution|context_length|vocab_size|attn_mask|.*\.position_ids)")
_BLOCK_KEY = re.compile(r"(.*resblocks|.*layers)\.(\d+)\.(.+)")
LORA_RANK_SCALE = 1.0
"""loralib's alpha in PAC-S++: the update is alpha / rank · B A."""


def detect(state: Mapping[str, Any]) -> Layout:
    """Which layout a state is in."""
    if "vision_model.embeddings.class_embedding" in state:
        return "hub"
    if "visual.layer1.0.conv1.weight" in state:
        return "resnet"
    if "visual.proj" in state:
        return "open_clip" if "text.token_embedding.weight" in state else "openai"
    raise InputError(
        "these are not the weights of a CLIP model", remedy="known layouts: hub, OpenAI, PAC-S, PAC-S++, open_clip"
    )


def read_state(path: Path, *, allow_pickle: bool = False) -> State:
    """A weight file as tensors; pickled files only when asked for, and then without running what they name."""
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return _finite(load_file(path), path)
    if not allow_pickle:
        raise InputError(
            "is a pickled file, which can hold code",
            where=os.fspath(path),
            remedy="convert it to safetensors, or pass allow_pickle=True if you trust where it came from "
            "(it is read with weights_only all the same)",
        )
    import pickle

    import torch

    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"cannot be read as plain weights ({reason})", where=os.fspath(path)) from None
    return _finite(plain_state(content, os.fspath(path)), path)


def _finite(state: State, path: Path) -> State:
    """The same weights, refused if one is not a finite number."""
    for name, tensor in state.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise InputError(f"not weights of CLIP: {name} has numbers that are not finite", where=os.fspath(path))
    return state


def plain_state(content: Any, where: str = "") -> State:
    """The tensors inside what a training run saved: under `state_dict`, with or without the prefix `module.`."""
    if isinstance(content, Mapping) and isinstance(content.get("state_dict"), Mapping):
        content = content["state_dict"]
    if not isinstance(content, Mapping) or not content:
        raise InputError("holds no weights", where=where)
    return {str(key).removeprefix("module."): value for key, value in content.items() if hasattr(value, "shape")}


def merge_lora(state: State) -> State:
    """Add PAC-S++'s low-rank updates of the attention to the weights.

    Its other updates (MLP, patch embedding) are merged into the weights on saving, and the official evaluation never
    reads them again, so they are dropped.
    """
    merged = {key.replace("visual.conv1.conv.", "visual.conv1."): value for key, value in state.items()}
    for key in [key for key in merged if key.endswith("lora_A")]:
        down, up = merged.pop(key), merged.pop(key[:-1] + "B")
        target = (
            key.removesuffix("_lora_A") if key.endswith("in_proj_weight_lora_A") else key[: -len("lora_A")] + "weight"
        )
        if ".attn." in target:
            merged[target] = merged[target].float() + (up.float() @ down.float()) * (LORA_RANK_SCALE / down.shape[0])
    return merged


def to_hub(state: State) -> State:
    """Any layout to the hub's."""
    layout = detect(state)
    if layout == "resnet":
        raise InputError("is a ResNet model, which transformers cannot run", remedy="pip install open_clip_torch")
    if layout == "hub":
        return {key: value for key, value in state.items() if not _IGNORED.fullmatch(key)}
    if any("lora_A" in key for key in state):
        state = merge_lora(state)
    if layout == "open_clip":
        state = {key.removeprefix("text."): value for key, value in state.items()}
    converted: State = {}
    for key, value in state.items():
        block = _BLOCK_KEY.fullmatch(key)
        if key in _TRANSPOSED:
            converted[_TRANSPOSED[key]] = value.T.contiguous()
        elif key == "logit_scale":
            converted[key] = value
        elif block is not None:
            _block_to_hub(converted, f"{_TOWERS[block[1]]}.{block[2]}", block[3], value)
        elif not _IGNORED.fullmatch(key):
            converted[(_VISUAL | _TEXT)[key]] = value
    return converted


def _block_to_hub(converted: State, layer: str, name: str, value: Tensor) -> None:
    if name.startswith("attn.in_proj_"):
        kind = name.removeprefix("attn.in_proj_")
        for letter, part in zip("qkv", value.chunk(3), strict=True):
            converted[f"{layer}.self_attn.{letter}_proj.{kind}"] = part.contiguous()
        return
    stem, _, kind = name.rpartition(".")
    converted[f"{layer}.{_BLOCK[stem]}.{kind}"] = value


def from_hub(state: State, layout: Layout) -> State:
    """The hub's layout to another; `from_hub(to_hub(state), detect(state))` gives `state` back bit by bit."""
    import torch

    if layout == "hub":
        return dict(state)
    prefix = "text." if layout == "open_clip" else ""
    names = {hub: openai for openai, hub in _VISUAL.items()} | {hub: prefix + openai for openai, hub in _TEXT.items()}
    towers = {hub: (prefix if hub.startswith("text") else "") + openai for openai, hub in _TOWERS.items()}
    blocks = {hub: openai for openai, hub in _BLOCK.items()}
    converted: State = {}
    for key, value in state.items():
        block = _BLOCK_KEY.fullmatch(key)
        if key == "visual_projection.weight":
            converted["visual.proj"] = value.T.contiguous()
        elif key == "text_projection.weight":
            converted[prefix + "text_projection"] = value.T.contiguous()
        elif key == "logit_scale":
            converted[key] = value
        elif block is None:
            converted[names[key]] = value
        else:
            layer = f"{towers[block[1]]}.{block[2]}"
            stem, _, kind = block[3].rpartition(".")
            if stem.startswith("self_attn.") and stem != "self_attn.out_proj":
                parts = [state[f"{block[1]}.{block[2]}.self_attn.{letter}_proj.{kind}"] for letter in "qkv"]
                converted[f"{layer}.attn.in_proj_{kind}"] = torch.cat(parts)
            else:
                converted[f"{layer}.{blocks[stem]}.{kind}"] = value
    return converted
