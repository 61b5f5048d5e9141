"""The captioner in torch: captions drawn from it, and the same numbers as the one that runs without torch."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn.utils.rnn import pack_sequence  # noqa: E402

from caplens.captioning import captioner as inference  # noqa: E402
from caplens.captioning.vocabulary import END, UNKNOWN, Vocabulary  # noqa: E402
from caplens.storage.weights import shipped  # noqa: E402
from caplens.training.captioner_network import AoANet, AoANetConfig, Captioner, Memory, greedy, sample  # noqa: E402

LONGEST = 4


@pytest.fixture(scope="module")
def model() -> AoANet:
    torch.manual_seed(0)
    made = AoANet(AoANetConfig(features=6, vocabulary=5, width=16, heads=2, refining_layers=2)).eval()
    torch.nn.init.normal_(made.predict.weight, std=1.5)  # opinions strong enough to tell beams apart
    return made


@pytest.fixture(scope="module")
def memory(model: AoANet) -> Memory:
    with torch.no_grad():
        return model.encode(torch.randn(3, 7, 6, generator=torch.Generator().manual_seed(1)))


def log_probability(model: AoANet, memory: Memory, picture: int, words: list[int]) -> float:
    """Of a whole caption, end included, by teacher forcing, among captions without unknown words."""
    one = Memory(*(tensor[picture : picture + 1] for tensor in memory))
    with torch.no_grad():
        chances = model(one, pack_sequence([torch.tensor([END, *words[:-1]])])).exp()
    chances[:, UNKNOWN] = 0
    chances /= chances.sum(dim=1, keepdim=True)
    return sum(math.log(chances[position, word]) for position, word in enumerate(words))


def test_greedy_takes_the_likeliest_word_and_says_how_likely(model: AoANet, memory: Memory) -> None:
    with torch.no_grad():
        decoded = greedy(model, memory, LONGEST)
    assert UNKNOWN not in decoded.words
    for picture, row in enumerate(decoded.words.tolist()):
        words = row[: row.index(END) + 1] if END in row else row
        assert decoded.spoken[picture].sum() == len(words)
        total = float(decoded.log_probabilities[picture].sum())
        assert math.isclose(total, log_probability(model, memory, picture, words), abs_tol=1e-4)


def test_samples_follow_the_model(model: AoANet, memory: Memory) -> None:
    many = memory.repeat(2000)
    with torch.no_grad():
        decoded = sample(model, many, LONGEST, torch.Generator().manual_seed(5))
        first, _ = model.step(torch.zeros(3, dtype=torch.long), memory, model.start(memory))
    expected = first.exp()
    expected[:, UNKNOWN] = 0
    expected = expected / expected.sum(dim=1, keepdim=True)
    counts = torch.stack([(decoded.words[:, 0].view(3, 2000) == word).sum(dim=1) for word in range(5)], dim=1) / 2000
    assert torch.allclose(counts, expected, atol=0.05)


def test_a_teacher_cannot_move_probability_to_the_word_that_is_never_said(model: AoANet, memory: Memory) -> None:
    decoded = sample(model, memory.repeat(50), LONGEST, torch.Generator().manual_seed(6))
    (gradient,) = torch.autograd.grad(decoded.log_probabilities.sum(), model.predict.bias)
    assert abs(gradient[UNKNOWN]) < 1e-4 < gradient.abs().max()


def test_shipped_weights_give_the_same_numbers_without_torch() -> None:
    model = Captioner.load(shipped("captioner")).model.eval()
    network = inference.Captioner.load(shipped("captioner")).network
    random = np.random.default_rng(0)
    features = random.normal(size=(16, 16, model.config.features)).astype(np.float32)
    with torch.no_grad():
        theirs = model.encode(torch.from_numpy(features))
        state = model.start(theirs)
    ours = network.encode(features)
    our_state = network.start(ours, 1)
    for actual, wanted in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(actual, wanted.numpy(), rtol=1e-5, atol=1e-5)
    words = np.full(16, END)
    for _ in range(6):
        with torch.no_grad():
            chances, state = model.step(torch.from_numpy(words), theirs, state)
        logits, our_state = network.step(words[:, None], ours, our_state)
        chances_here = torch.from_numpy(logits[:, 0]).log_softmax(dim=-1)
        np.testing.assert_allclose(chances_here.exp(), chances.exp(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(chances_here, chances, rtol=1e-5, atol=1e-5)
        for actual, wanted in zip(our_state, state, strict=True):
            np.testing.assert_allclose(actual[:, 0], wanted.numpy(), rtol=1e-5, atol=1e-5)
        words = chances.argmax(dim=1).numpy()


def test_what_is_saved_is_what_was_trained(model: AoANet, tmp_path: pytest.TempPathFactory) -> None:
    trained = Captioner(model, Vocabulary(tuple("abcde")), inference.FeatureSpec("none", "none", 1))
    trained.save(tmp_path / "captioner.safetensors")  # type: ignore[operator]
    for name, tensor in Captioner.load(tmp_path / "captioner.safetensors").model.state_dict().items():  # type: ignore[operator]
        torch.testing.assert_close(tensor, model.state_dict()[name].half().float())
