"""The long attacks, each a function of (count, seed) that returns what happened; anything unexpected raises."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import multiprocessing
import os
import random
import signal
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests import fuzz
from tests.attack import index_files, test_readers
from tests.storage.test_cache import keys, vector
from tests.vision.test_video import PLAYLISTS, write_video

import caplens
from caplens.core.captions import BinarySource
from caplens.core.errors import CaplensError
from caplens.metrics.meteor import Meteor
from caplens.readers import page_images, read
from caplens.storage.cache import EmbeddingCache
from caplens.text.meteor_data import JAR, TABLE
from caplens.vision.images import decode_image, read_media
from caplens.vision.video import Sampling, frames

Campaign = Callable[[int, int], dict[str, int]]
CAPTIONS, REFERENCES = ["an aged pup", "a dog runs"], [["an old puppy"], ["the dog ran"]]
CONTAINERS = ("mp4", "mkv", "avi", "mov", "ts", "asf", "nut")


def kernels(count: int, seed: int) -> dict[str, int]:
    """Nasty texts, bags of words and parser networks through every kernel."""
    fuzz.fuzz(count, seed)
    return {"texts": count}


def indexes(count: int, seed: int) -> dict[str, int]:
    """METEOR's index files, damaged and forged."""
    damaged = index_files.outcomes(count // 2, index_files.damaged, seed)
    forged = index_files.outcomes(count - count // 2, index_files.forged, seed)
    assert set(damaged) <= {"refused", "right"}, damaged
    assert set(forged) <= {"refused", "right", "different"}, forged
    return {**{f"damaged, {kind}": number for kind, number in damaged.items()},
            **{f"forged, {kind}": number for kind, number in forged.items()}}  # fmt: skip


def readers(count: int, seed: int) -> dict[str, int]:
    """Damaged caption files of every layout."""
    draw = random.Random(seed)
    taken: Counter[str] = Counter()
    seeds = {**test_readers.SEEDS, **_parquet()}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(count):
            name = draw.choice(list(seeds))
            path = Path(folder) / name
            path.write_bytes(changed(draw, seeds[name]))
            try:
                for image in [] if name.endswith("html") else read(path).images or []:
                    if isinstance(image, BinarySource) and not isinstance(image, str):
                        read_media(image)
                for _ in page_images(path) if name.endswith("html") else ():
                    pass
                taken["read"] += 1
            except CaplensError:
                taken["refused"] += 1
    return dict(taken)


def pictures(count: int, seed: int) -> dict[str, int]:
    """Damaged pictures of every common format."""
    from PIL import Image

    draw = random.Random(seed)
    taken: Counter[str] = Counter()
    picture = Image.effect_noise((40, 30), 60).convert("RGB")
    sound = []
    for kind in ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM"):
        stored = io.BytesIO()
        picture.save(stored, kind)
        sound.append(stored.getvalue())
    warnings.simplefilter("ignore")  # Pillow's remarks on damaged tags
    for _ in range(count):
        try:
            decode_image(changed(draw, draw.choice(sound)), "picture")
            taken["decoded"] += 1
        except CaplensError:
            taken["refused"] += 1
    return dict(taken)


def videos(count: int, seed: int) -> dict[str, int]:
    """Films that are damaged, and texts that name other films, in every container."""
    draw = random.Random(seed)
    taken: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sound = [write_video(folder / f"sound.{kind}", 6).read_bytes() for kind in CONTAINERS]
        lists = [text.format(target=folder / "sound.mp4").encode() for text in PLAYLISTS.values()]
        for number in range(count):
            is_list = number % 4 == 0
            data = draw.choice(lists) if is_list else changed(draw, draw.choice(sound), most=64)
            path = folder / f"film.{draw.choice([*CONTAINERS, 'm3u8', 'mpd'])}"
            path.write_bytes(data)
            started = time.monotonic()
            try:
                shown = len(list(frames(path, Sampling.parse(draw.choice(["all", "uniform-3"])))))
                assert not is_list or shown == 0, "a playlist was opened"
                taken["decoded"] += 1
            except CaplensError:
                taken["refused"] += 1
            assert time.monotonic() - started < 60, "took too long"
            path.unlink()
    return dict(taken)


def kills(count: int, seed: int) -> dict[str, int]:
    """Processes that score, keep and write, killed at any moment: what is left is whole, or not there."""
    draw = random.Random(seed)
    taken: Counter[str] = Counter()
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["CAPLENS_CACHE"] = str(folder / "cache")
        data = meteor_data(folder)
        right = scores(data)
        for _ in range(count):
            child = context.Process(target=_work, args=(folder, data))
            child.start()
            time.sleep(draw.random() * 0.25)
            assert child.pid is not None
            os.kill(child.pid, signal.SIGKILL)
            child.join()
            target = folder / "out.json"
            if target.exists():
                written = json.loads(target.read_text("utf-8"))
                assert written["metrics"]["meteor"]["score"] == right, "another score"
            taken["output whole" if target.exists() else "no output"] += 1
            found = EmbeddingCache(folder / "cache" / "e.sqlite").get(keys(400))
            assert all(np.array_equal(found[key], vector(n)) for n, key in enumerate(keys(400)) if key in found)
            assert scores(data) == right
            target.unlink(missing_ok=True)
    return dict(taken)


def caches(count: int, seed: int) -> dict[str, int]:
    """Cache files with bytes changed, cut or added between two runs: the scores stay, or the process would know why."""
    draw = random.Random(seed)
    taken: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        os.environ["CAPLENS_CACHE"] = str(folder / "cache")
        data = meteor_data(folder)
        right = scores(data)
        for _ in range(count):
            cache = EmbeddingCache(folder / "cache" / "e.sqlite")
            cache.put({key: vector(n) for n, key in enumerate(keys(60))})
            files = [path for path in (folder / "cache").rglob("*") if path.is_file() and path.suffix != ".lock"]
            path = draw.choice(files)
            path.write_bytes(changed(draw, path.read_bytes() or b"\0", most=200))
            found = EmbeddingCache(folder / "cache" / "e.sqlite").get(keys(60))
            assert all(np.array_equal(found[key], vector(n)) for n, key in enumerate(keys(60)) if key in found)
            assert scores(data) == right, path.name
            taken[f"{path.suffix.lstrip('.') or path.name} changed"] += 1
    return dict(taken)


CAMPAIGNS: dict[str, Campaign] = {
    campaign.__name__: campaign for campaign in (kernels, indexes, readers, pictures, videos, kills, caches)
}


def changed(draw: random.Random, sound: bytes, most: int = 8) -> bytes:
    """The bytes after some accidents: replaced, inserted, removed or cut off."""
    data = bytearray(sound)
    for _ in range(draw.choice([1, 2, most])):
        place = draw.randrange(len(data) + 1)
        match draw.randrange(5):
            case 0 | 1:
                data[place : place + 1] = bytes([draw.randrange(256)])
            case 2:
                data[place:place] = draw.choice(test_readers.PIECES)
            case 3:
                del data[place : place + draw.randrange(1, 40)]
            case _:
                if draw.random() < 0.1:
                    del data[place:]
    return bytes(data)


def meteor_data(folder: Path) -> Path:
    """METEOR's two files, with a few words in them."""
    with zipfile.ZipFile(folder / JAR, "w") as jar:
        jar.writestr("synonym/english.synsets", "puppy\n00000001\npup\n00000001 00000002\n")
        jar.writestr("synonym/english.exceptions", "pup\npuppen\n")
    with gzip.open(folder / TABLE, "wt") as file:
        file.write("0.5\nin front of\nbefore\n0.25\nold\naged\n")
    return folder


def scores(data: Path) -> float:
    return caplens.evaluate(CAPTIONS, REFERENCES, metrics=[Meteor(data=data)])["meteor"].score


def _work(folder: Path, data: Path) -> None:
    cache = EmbeddingCache(folder / "cache" / "e.sqlite")
    while True:
        for path in (folder / "cache" / "meteor").glob("*"):
            path.unlink(missing_ok=True)
        cache.put({key: vector(n) for n, key in enumerate(keys(400))})
        caplens.evaluate(CAPTIONS, REFERENCES, metrics=[Meteor(data=data)]).to_json(folder / "out.json")


def _parquet() -> dict[str, bytes]:
    with contextlib.suppress(ImportError):
        import pyarrow
        from pyarrow import parquet

        texts = {"id": ["1", "2"], "caption": ["a", "b"]}
        nested = {"references": [["a", "b"], ["c"]], "image": [{"bytes": b"x", "path": "x.jpg"}, None]}
        found = {}
        for name, columns in {"a.parquet": texts, "nested.parquet": texts | nested}.items():
            stored: Any = io.BytesIO()
            parquet.write_table(pyarrow.table(columns), stored)
            found[name] = stored.getvalue()
        return found
    return {}
