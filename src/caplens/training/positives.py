"""Further positives for PAC-S: captions of a picture by a captioner (t'), pictures of a caption by a generator (v').

Both are resumable: what stands in the output is not made again. Where no generator can run, two stand-ins need none:
captions of the most similar picture of the other half of the data, and other crops of the picture itself.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from caplens.core.errors import InputError
from caplens.core.optional import require
from caplens.core.progress import Progress
from caplens.core.types import Vectors, unit
from caplens.storage import weights
from caplens.storage.atomic import atomic_path
from caplens.vision.images import open_image

if TYPE_CHECKING:
    from PIL.Image import Image


def read_generated(path: Path, value: str) -> dict[str, str]:
    """Return the entries of a jsonl file so far, `value` by `key`; a line torn by a kill is left out."""
    entries: dict[str, str] = {}
    if path.is_file():
        for line in path.read_text("utf-8").splitlines():
            try:
                entry = json.loads(line)
                entries[entry["key"]] = entry[value]
            except (ValueError, KeyError):
                continue
    return entries


def _append(path: Path, entries: Sequence[Mapping[str, Any]]) -> None:
    """Write whole lines, flushed to disk; a torn last line is closed first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    torn = path.is_file() and path.stat().st_size > 0 and path.read_bytes()[-1:] != b"\n"
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" if torn else "")
        file.writelines(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
        file.flush()
        os.fsync(file.fileno())


def _batches(items: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(items), size):
        yield list(items[start : start + size])


def generate_captions(
    images: Path, names: Sequence[str], output: Path, captioner: tuple[Any, Any], progress: Progress, batch: int = 8
) -> dict[str, str]:
    """Caption every picture with a model and processor of transformers; one json line per picture in `output`."""
    import torch

    model, processor = captioner
    done = read_generated(output, "caption")
    left = [name for name in names if name not in done]
    for part in _batches(left, batch):
        inputs = processor(images=[open_image(images / name) for name in part], return_tensors="pt")
        with torch.inference_mode():
            ids = model.generate(**inputs, num_beams=3, max_new_tokens=30)
        captions = [text.strip() for text in processor.batch_decode(ids, skip_special_tokens=True)]
        _append(output, [{"key": name, "caption": text} for name, text in zip(part, captions, strict=True)])
        done.update(zip(part, captions, strict=True))
        progress("captions", len(done), len(names))
    return done


def load_captioner(source: str) -> tuple[Any, Any]:
    """Return a BLIP-class model and its processor, from the hub or a folder."""
    purpose = "generating captions"
    model = require("transformers:BlipForConditionalGeneration", "torch", purpose=purpose)
    processor = require("transformers:AutoProcessor", purpose=purpose)
    folder = weights.require(source, purpose=purpose)
    return model.from_pretrained(folder).eval(), processor.from_pretrained(folder)


def generate_images(
    captions: Sequence[str], output: Path, pipeline: Any, progress: Progress, seed: int = 0, steps: int = 50
) -> dict[str, str]:
    """Draw a picture for every caption with a diffusers pipeline; files and one json line per caption in `output`.

    The pipeline's safety checker stays on; a picture that it flags is not kept, and its line says so.
    """
    import torch

    if getattr(pipeline, "safety_checker", None) is None:
        raise InputError("the pipeline has no safety checker", remedy="load one with it; pictures are not made without")
    table = output / "pictures.jsonl"
    done = read_generated(table, "image")
    left = [text for text in dict.fromkeys(captions) if text not in done]
    for text in left:
        number = zlib.crc32(text.encode("utf-8", "surrogatepass"))
        generator = torch.Generator().manual_seed(seed * 2**32 + number)
        drawn = pipeline(text, num_inference_steps=steps, generator=generator)
        flagged = bool(drawn.nsfw_content_detected and drawn.nsfw_content_detected[0])
        name = "" if flagged else f"{number:08x}.jpg"
        if name:
            with atomic_path(output / name) as temporary:
                drawn.images[0].save(temporary, "JPEG", quality=95)
        _append(table, [{"key": text, "image": name, "flagged": flagged}])
        done[text] = name
        progress("pictures", len(done), len(set(captions)))
    return {text: name for text, name in done.items() if name}


def load_generator(source: str) -> Any:
    """Return a Stable-Diffusion-class pipeline, from the hub or a folder, safety checker on."""
    purpose = "generating pictures"
    pipeline = require("diffusers:StableDiffusionPipeline", "torch", "transformers", purpose=purpose)
    return pipeline.from_pretrained(weights.require(source, purpose=purpose))


def retrieved_captions(
    pictures: Vectors, texts: Vectors, captions: Sequence[np.ndarray], names: Sequence[str]
) -> list[int]:
    """Return for every picture a caption of its nearest one in the other half: the row of that caption in `texts`.

    Halves are set by name, so that no picture finds itself. Of the neighbor's captions the most typical one is taken:
    the one closest to the others.
    """
    half = np.array([zlib.crc32(name.encode()) & 1 for name in names], bool)
    picture_units, text_units = unit(pictures), unit(texts)
    typical = [int(rows[np.argmax(text_units[rows] @ text_units[rows].mean(axis=0))]) for rows in captions]
    nearest = np.zeros(len(names), np.int64)
    for side in (False, True):
        here, there = np.flatnonzero(half == side), np.flatnonzero(half != side)
        if len(there):
            nearest[here] = there[np.argmax(picture_units[here] @ picture_units[there].T, axis=1)]
    return [typical[index] for index in nearest]


def changed_picture(image: Image, name: str) -> Image:
    """Return another crop, perhaps mirrored, in other light; always the same for the same name."""
    from PIL import Image as Pillow
    from PIL import ImageEnhance, ImageOps

    rng = np.random.default_rng([zlib.crc32(name.encode()), 1])
    width, height = image.size
    crop_width, crop_height = width, height
    for _ in range(20):
        area = rng.uniform(0.45, 1) * width * height
        ratio = np.exp(rng.uniform(np.log(0.75), np.log(4 / 3)))
        wide, high = round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)
        if 0 < wide <= width and 0 < high <= height:
            crop_width, crop_height = wide, high
            break
    left, top = int(rng.integers(0, width - crop_width + 1)), int(rng.integers(0, height - crop_height + 1))
    box = (left, top, left + crop_width, top + crop_height)
    image = image.resize((224, 224), Pillow.Resampling.BICUBIC, box=box)
    if rng.random() < 0.5:
        image = ImageOps.mirror(image)
    image = ImageEnhance.Brightness(image).enhance(rng.uniform(0.75, 1.25))
    image = ImageEnhance.Contrast(image).enhance(rng.uniform(0.75, 1.25))
    return ImageEnhance.Color(image).enhance(rng.uniform(0.6, 1.4))
