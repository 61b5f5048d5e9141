"""Names of regions: a detector's name stays where the encoder sees such a thing, too."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from caplens.core.types import Vectors
from caplens.encoders.embedder import Embedder
from caplens.metrics.infometic.region_features import ImageRegions, NameCheck
from caplens.text.coco_objects import coco_objects
from caplens.vision.regions import Regions

NAMES = list(dict.fromkeys(coco_objects().name_of.values()))


class OneAxisPerName:
    """An encoder that gives every name an axis of its own."""

    asked = 0

    def texts(self, texts: list[str]) -> Vectors:
        self.asked += 1
        return np.stack([axis(text.removeprefix("a ")) for text in texts])


def axis(*names: str) -> Vectors:
    """Points to these names, to the first most of all."""
    vector = np.zeros(len(NAMES) + 1, np.float32)
    for weight, name in enumerate(reversed(names), 1):
        vector[NAMES.index(name) if name in NAMES else -1] = weight
    return vector


def check(labels: list[str], whole: Vectors, *parts: Vectors) -> tuple[str, ...]:
    regions = Regions.of(np.zeros((len(labels), 4)), np.ones(len(labels)), labels)
    return NameCheck(cast(Any, OneAxisPerName()))(0, ImageRegions(regions, np.stack([whole, *parts]))).labels


def test_a_name_stays_where_region_or_picture_show_it() -> None:
    far = axis("bus", "train", "truck", "boat", "car")
    assert check(["dog", "cat", ""], axis("cat"), axis("dog"), far, far) == ("dog", "cat", "")
    assert check(["pizza", "car"], axis("bird", "sheep", "bench", "vase"), axis("dog", "cat", "cow", "pizza"), far) == (
        "",
        "",
    )


def test_a_name_that_coco_does_not_know_competes_with_coco() -> None:
    assert check(
        ["toucan", "toucan"],
        axis("bird", "sheep", "bench", "vase"),
        axis("toucan"),
        axis("dog", "cat", "cow", "toucan"),
    ) == (
        "toucan",
        "",
    )


def test_names_are_encoded_once_and_a_picture_is_checked_once() -> None:
    embedder = OneAxisPerName()
    confirm = NameCheck(cast(Embedder, embedder))
    image = ImageRegions(Regions.of(np.zeros((1, 4)), [1.0], ["dog"]), np.stack([axis("cat"), axis("dog")]))
    assert confirm(0, image) is confirm(0, image)
    assert confirm(1, image).labels == ("dog",)
    assert embedder.asked == 1


def test_names_that_the_user_gave_are_not_checked() -> None:
    image = ImageRegions(Regions.of(np.zeros((1, 4)), [1.0], ["dog"]), np.stack([axis("cat"), axis("car")]))
    assert NameCheck(cast(Embedder, OneAxisPerName()), trusted=True)(0, image).labels == ("dog",)
