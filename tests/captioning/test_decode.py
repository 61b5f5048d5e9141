"""The decoder's ways of choosing words, against slow and obvious versions of them."""

from __future__ import annotations

import itertools
import math

import pytest

torch = pytest.importorskip("torch")

from torch.nn.utils.rnn import pack_sequence  # noqa: E402

from caplens.captioning.aoanet import AoANet, AoANetConfig, Memory  # noqa: E402
from caplens.captioning.decode import beam_search, greedy, sample  # noqa: E402
from caplens.captioning.vocabulary import END, UNKNOWN, Vocabulary  # noqa: E402

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


def all_captions() -> list[list[int]]:
    spoken = [word for word in range(5) if word not in (END, UNKNOWN)]
    return [[*words, END] for length in range(LONGEST) for words in itertools.product(spoken, repeat=length)]


def test_a_beam_as_wide_as_the_language_finds_the_best_caption(model: AoANet, memory: Memory) -> None:
    found = beam_search(model, memory, LONGEST, beam=3**LONGEST)
    for picture in range(3):
        best = max(all_captions(), key=lambda words: log_probability(model, memory, picture, words) / len(words))
        assert found[picture].tolist() == best + [END] * (LONGEST - len(best))


def test_greedy_takes_the_likeliest_word_and_says_how_likely(model: AoANet, memory: Memory) -> None:
    with torch.no_grad():
        decoded = greedy(model, memory, LONGEST)
    assert UNKNOWN not in decoded.words
    for picture, row in enumerate(decoded.words.tolist()):
        words = row[: row.index(END) + 1] if END in row else row
        assert decoded.spoken[picture].sum() == len(words)
        total = float(decoded.log_probabilities[picture].sum())
        assert math.isclose(total, log_probability(model, memory, picture, words), abs_tol=1e-4)
    assert beam_search(model, memory, LONGEST, beam=1).shape == (3, LONGEST)


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


def test_vocabulary_round_trip() -> None:
    vocabulary = Vocabulary.from_captions(["A dog swims.", "a dog"], least=1)
    assert vocabulary.decode(vocabulary.encode(["A dog swims!"])) == ["a dog swims"]
    assert vocabulary.encode(["a zebra dives"], longest=2) == [[vocabulary.words.index("a"), UNKNOWN]]
