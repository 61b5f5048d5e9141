"""InfoMetIC+: scoring captions of pictures that were looked at before, and one step of its training.

    python -m perf.infometic CAPTIONS IMAGES [PICTURES]

CAPTIONS is a file with splits as `caplens train` reads it (flickr8k_captions.json), IMAGES its folder of pictures; the
test split's first PICTURES (1000) with five captions each are scored. The first run looks at the pictures and keeps
their regions (about 0.3 s each); what is measured comes after. The peer is a plain loop, one caption at a time, in the
same torch code; it is given a fifth of the captions, and its time taken five times. Both are measured with the words'
tags, CPU seconds on one thread.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from perf.measure import measure, show

import caplens
from caplens.core.captions import CaptionSet
from caplens.core.workspace import Workspace
from caplens.encoders.embedder import Embedder
from caplens.metrics.infometic.inference import tokenize_words
from caplens.metrics.infometic.metric import InfoMeticPlus
from caplens.metrics.infometic.region_features import extract_region_features
from caplens.text.words import tag_words
from caplens.training.infometic import InfoMeticConfig
from caplens.training.infometic.losses import Losses
from caplens.training.infometic.tensors import CaptionTensors, SplitTensors, principal_projection
from caplens.training.infometic.training import new_network
from caplens.training.pairs import read_pairs

CAPTIONS_EACH = 5


def one_by_one(metric: InfoMeticPlus, images: list[str], texts: list[str]) -> np.ndarray:
    """A plain loop: each caption is tagged, cut into pieces, encoded and fused by itself."""
    encoder, model = metric.get_encoder(), metric.model()
    embedder = Embedder(encoder)
    image_regions = {
        image: extract_region_features(embedder, [image], metric.proposer()).images for image in dict.fromkeys(images)
    }
    made = []
    for image, text in zip(images, texts, strict=True):
        words = [word.text for word in tag_words([text])[0]]
        vector = embedder.texts([text])
        judged = model.score_pairs(
            embedder, image_regions[image], [tokenize_words(encoder, words)], vector, [(0, 0)], [len(words)]
        )
        made.append(metric.overall(judged[0]))
    return np.array(made)


def steps(config: InfoMeticConfig, encoder_width: int, count: int = 20) -> dict[str, float]:
    """Milliseconds of one coarse and of one fine step, forwards and backwards, on random features."""
    random = np.random.default_rng(0)
    pictures, tokens = 64, 500

    def drawn(*shape: int) -> torch.Tensor:
        return torch.from_numpy(random.normal(size=shape).astype(np.float32))

    vectors = random.normal(size=(2000, encoder_width)).astype(np.float32)
    network = new_network(principal_projection(vectors, config.width), config.width, config, 20.0)
    words = torch.from_numpy(np.tile(np.arange(32), (pictures, 1)))
    some = torch.zeros(pictures, 32, dtype=torch.bool)
    some[:, 1:6] = True
    captions = CaptionTensors(
        torch.from_numpy(random.integers(tokens, size=(pictures, 32))),
        some,
        words,
        some,
        torch.zeros_like(some),
        network.project(drawn(pictures, encoder_width)),
        drawn(pictures, encoder_width),
        torch.arange(pictures),
        np.full(pictures, 5),
    )
    regions = network.project(drawn(pictures, 22, encoder_width))
    mask = torch.ones(pictures, 22, dtype=torch.bool)
    side = SplitTensors(
        regions, torch.rand(pictures, 22, 4), mask, regions[:, 0], drawn(pictures, encoder_width), captions, captions,
        mask, [np.array([number]) for number in range(pictures)], drawn(pictures, encoder_width),
        np.zeros((pictures, 1), np.int64),
    )  # fmt: skip
    losses = Losses(network, network.project(drawn(tokens, encoder_width)), side, config, 20.0)
    batch, every = torch.arange(config.batch), torch.arange(config.fine_batch)

    def coarse() -> None:
        made = losses.coarse(batch, batch, torch.full((config.batch,), -1))
        torch.stack(list(made.values())).sum().backward()  # type: ignore[no-untyped-call]

    def fine() -> None:
        torch.stack(list(losses.fine(every, every).values())).sum().backward()  # type: ignore[no-untyped-call]

    def repeated(step: Callable[[], None]) -> None:
        for _ in range(count):
            step()

    coarse()
    fine()
    return {
        name: 1000 * measure(partial(repeated, step), runs=3)[0] / count
        for name, step in (("coarse", coarse), ("fine", fine))
    }


def main() -> None:
    if len(sys.argv) < 3:
        print("not run: it needs CAPTIONS and IMAGES (see the top of this file)")
        return
    torch.set_num_threads(1)
    by_picture = list(read_pairs(sys.argv[1]).test.items())[: int(sys.argv[3]) if len(sys.argv) > 3 else 1000]
    pairs = [(str(Path(sys.argv[2]) / name), text) for name, texts in by_picture for text in texts[:CAPTIONS_EACH]]
    images, texts = [image for image, _ in pairs], [text for _, text in pairs]
    metric = InfoMeticPlus()

    def score() -> np.ndarray:
        return metric.compute(Workspace(CaptionSet.of(texts, images=images))).scores

    score()  # the pictures were looked at, weights are loaded
    mine, made = measure(score, runs=2)
    few = slice(0, max(1, len(pairs) // 5))
    peer, plain = measure(lambda: one_by_one(metric, images[few], texts[few]))
    assert np.allclose(made[few], plain, atol=1e-3), np.abs(made[few] - plain).max()
    peer *= len(pairs) / len(plain)
    show(f"{len(by_picture)} pictures, {len(pairs)} captions", peer, mine, 3)
    print(f"{'captions per second':44} {len(pairs) / mine:8.0f}   (caplens {caplens.__version__})")
    for name, taken in steps(InfoMeticConfig(), metric.get_encoder().dimension).items():
        print(f"{f'one {name} step of training, milliseconds':44} {taken:8.1f}")


if __name__ == "__main__":
    main()
