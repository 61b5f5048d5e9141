"""Where encoders and trainings compute, and in which numbers: `--device`, `--dtype`, `--batch-size`."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from caplens.core.errors import InputError, MissingData
from caplens.core.optional import check, require
from caplens.core.types import Vectors

DTYPES = ("float32", "bfloat16", "float16")
_DEVICE = re.compile(r"auto|cpu|mps|cuda(:[0-9]+)?")
_TAKES = "auto, cpu, cuda, cuda:1 or mps"
ACCELERATED_BATCH = 256
"""Pictures at a time on an accelerator, unless the user says; on a processor, more than 16 gain nothing."""
_PROVIDERS = {"cuda": "CUDAExecutionProvider", "mps": "CoreMLExecutionProvider"}


@dataclass(frozen=True)
class Placement:
    """A device of torch's or onnxruntime's, and the type of the numbers there."""

    device: str = "cpu"
    dtype: str = "float32"
    batch_size: int | None = None

    @property
    def kind(self) -> str:
        """The class of the device: cpu, cuda or mps."""
        return self.device.partition(":")[0]

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """What a signature says: nothing of float32, which gives the same numbers everywhere (to 1e-5)."""
        return () if self.dtype == "float32" else (("dtype", self.dtype), ("device", self.kind))

    @property
    def mark(self) -> str:
        """What vectors are kept under: those of another device or type are others in their last digits."""
        return "" if (self.kind, self.dtype) == ("cpu", "float32") else f" {self.kind} {self.dtype}"

    def pictures_at_once(self, usual: int) -> int:
        """Return how many pictures make a batch."""
        return self.batch_size or (usual if self.kind == "cpu" else ACCELERATED_BATCH)

    def put(self, model: Any) -> Any:
        """Bring a torch module here, for inference."""
        import torch

        return model.eval().to(device=self.device, dtype=getattr(torch, self.dtype))

    def tensor(self, values: Any) -> Any:
        """Return an array, or lists of token numbers, as a tensor here; vectors in the type of this place."""
        import torch

        made = torch.as_tensor(values)
        return made.to(self.device, getattr(torch, self.dtype) if made.is_floating_point() else None)

    def autocast(self) -> AbstractContextManager[Any]:
        """Return a context in which a training's products are computed in this type; weights stay float32."""
        if self.dtype == "float32":
            return nullcontext()
        import torch

        return torch.autocast(self.kind, getattr(torch, self.dtype))

    def providers(self) -> list[Any]:
        """Return what onnxruntime calls this place; what it cannot do there runs on the CPU."""
        if self.kind == "cpu":
            return ["CPUExecutionProvider"]
        number = self.device.partition(":")[2]
        own = (_PROVIDERS[self.kind], {"device_id": number}) if number else _PROVIDERS[self.kind]
        return [own, "CPUExecutionProvider"]


CPU = Placement()


def to_array(tensor: Any) -> Vectors:
    """Return a tensor as float32 in ordinary memory.

    A copy: results that stay between torch's temporaries keep that memory from being used again, 18 KB a frame.
    """
    made: Vectors = tensor.float().cpu().numpy().copy()
    return made


def check_device(device: object, dtype: object = "float32", batch_size: object = None) -> None:
    """Refuse words that name no device, no type or no size, before anything is loaded."""
    if not isinstance(device, str) or not _DEVICE.fullmatch(device):
        raise InputError(f"the device is {device!r:.40}", remedy=f"it takes {_TAKES}")
    if dtype not in DTYPES:
        raise InputError(f"the dtype is {dtype!r:.40}", remedy=f"it takes {', '.join(DTYPES)}")
    if batch_size is not None and (not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1):
        raise InputError(f"the batch size is {batch_size!r:.40}", remedy="it takes a whole number from 1 on")


def place_torch(device: str = "auto", dtype: str = "float32", batch_size: int | None = None) -> Placement:
    """Return where torch computes; ``auto`` is the first GPU, Apple's, or the CPU; one that is absent is refused."""
    check_device(device, dtype, batch_size)
    torch = require("torch", purpose="computing on a device")
    has = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if device == "auto":
        device = next(kind for kind in ("cuda", "mps", "cpu") if has[kind])
    place = Placement(device, dtype, batch_size)
    number = int(device.partition(":")[2] or 0)
    if not has[place.kind] or (place.kind == "cuda" and number >= torch.cuda.device_count()):
        raise MissingData(f"there is no device {device} here as far as torch sees: take {_present(has, torch)}")
    if place.kind == "cuda":  # else convolutions round to ten bits, and float32 is not what it says
        torch.backends.cudnn.allow_tf32 = False
    return place


def place_onnx(device: str = "auto", dtype: str = "float32", batch_size: int | None = None) -> Placement:
    """Return where onnxruntime computes; its models have float32 weights and are not converted."""
    check_device(device, dtype, batch_size)
    if dtype != "float32":
        raise InputError(f"the embedded encoder computes in float32, not in {dtype}", remedy="leave --dtype out")
    check("onnxruntime", "tokenizers", purpose="the embedded encoder")
    present = require("onnxruntime", purpose="the embedded encoder").get_available_providers()
    has = {kind: provider in present for kind, provider in _PROVIDERS.items()} | {"cpu": True}
    if device == "auto":  # CoreML changes numbers by more than 1e-5
        device = "cuda" if has["cuda"] else "cpu"
    place = Placement(device, dtype, batch_size)
    if not has[place.kind]:
        wheel = "onnxruntime-gpu" if place.kind == "cuda" else "onnxruntime for macOS"
        raise MissingData(f"the onnxruntime installed here cannot use {device}: take cpu, or install {wheel}")
    return place


def encoder_place(encoder: str, place: Placement) -> Placement:
    """Return where an encoder computes features for a training at this place; in float32, as they are kept."""
    if not encoder.startswith("embedded"):
        return Placement(place.device)
    return place_onnx("cpu" if place.kind == "cpu" else "auto")


def _present(has: dict[str, bool], torch: Any) -> str:
    found = [kind for kind, here in has.items() if here and kind != "cuda"]
    found += [f"cuda:{number}" for number in range(torch.cuda.device_count())] if has["cuda"] else []
    return " or ".join(found)
