"""The network in torch and the one that scores captions are one network: the shipped weights give the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.metrics.infometic.test_network import released_layout  # noqa: E402

from caplens.metrics.infometic.inference import load_model  # noqa: E402
from caplens.storage.weights import shipped  # noqa: E402
from caplens.training.infometic.network import InfoMeticNetwork  # noqa: E402

PAIRS, REGIONS, TOKENS = 100, 22, 32


def test_shipped_weights_give_the_same_numbers_without_torch() -> None:
    from safetensors.torch import load_file

    network = load_model("infometic").fusion
    model = InfoMeticNetwork.from_state_dict(load_file(shipped("infometic"))).eval()
    random = np.random.default_rng(0)

    def drawn(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype(np.float32)

    width = network.input_width
    regions, boxes, tokens = drawn(PAIRS, REGIONS, width), drawn(PAIRS, REGIONS, 4), drawn(PAIRS, TOKENS, width)
    regions[:, 12:] = 0
    word_mask = np.arange(TOKENS) < random.integers(1, TOKENS, size=(PAIRS, 1))
    region_mask = np.arange(REGIONS) < random.integers(1, REGIONS, size=(PAIRS, 1))
    given = (regions, boxes, tokens, regions[:, 0], drawn(PAIRS, width), region_mask, word_mask)

    def score(net: Any, regions: Any, boxes: Any, tokens: Any, *rest: Any) -> Any:
        project = net.project
        image = net.encode_image(project(regions), boxes)
        text = net.encode_text(project(tokens))
        return net.score(image, text, project(rest[0]), project(rest[1]), *rest[2:])

    with torch.no_grad():
        expected = score(model, *(torch.from_numpy(np.ascontiguousarray(part)) for part in given))
    for actual, wanted in zip(score(network, *given), expected, strict=True):
        np.testing.assert_allclose(actual, wanted.numpy(), rtol=1e-5, atol=1e-5)


def test_its_tensors_are_those_of_the_released_checkpoint() -> None:
    model = InfoMeticNetwork()
    assert {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()} == released_layout(512)
    broken = {name: tensor for name, tensor in model.state_dict().items() if name != "img_att_key"}
    with pytest.raises(RuntimeError, match="img_att_key"):
        InfoMeticNetwork.from_state_dict(broken)
