"""Beam search against every caption there is, and words to numbers and back."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.captioning.random_network import random_network

from caplens.captioning.aoanet import CaptionNetwork, Memory
from caplens.captioning.decode import beam_search
from caplens.captioning.vocabulary import END, UNKNOWN, Vocabulary

LONGEST, WORDS, PICTURES = 4, 5, 3


@pytest.fixture(scope="module")
def network() -> CaptionNetwork:
    return random_network(0, features=6, vocabulary=WORDS, refining_layers=2)


@pytest.fixture(scope="module")
def memory(network: CaptionNetwork) -> Memory:
    return network.encode(np.random.default_rng(1).normal(size=(PICTURES, 7, 6)).astype(np.float32))


def log_probabilities(network: CaptionNetwork, memory: Memory, picture: int, words: list[int]) -> list[float]:
    """Of each word of a caption, end included, among captions without unknown words."""
    one = Memory(*(part[picture : picture + 1] for part in memory))
    state = network.start(one, 1)
    found = []
    for before, word in zip([END, *words], words, strict=False):
        logits, state = network.step(np.array([[before]]), one, state)
        chances = np.exp(logits[0, 0].astype(float))
        chances[UNKNOWN] = 0
        found.append(float(np.log(chances[word] / chances.sum())))
    return found


def all_captions() -> list[list[int]]:
    spoken = [word for word in range(WORDS) if word not in (END, UNKNOWN)]
    return [[*words, END] for length in range(LONGEST) for words in itertools.product(spoken, repeat=length)]


def test_a_beam_as_wide_as_the_language_finds_the_best_caption(network: CaptionNetwork, memory: Memory) -> None:
    found = beam_search(network, memory, LONGEST, beam=3**LONGEST)
    for picture in range(PICTURES):
        best = max(all_captions(), key=lambda words: np.mean(log_probabilities(network, memory, picture, words)))
        assert found[picture].tolist() == best + [END] * (LONGEST - len(best))


def test_a_beam_of_one_takes_the_likeliest_word(network: CaptionNetwork, memory: Memory) -> None:
    for picture, row in enumerate(beam_search(network, memory, LONGEST, beam=1).tolist()):
        said: list[int] = []
        while END not in said and len(said) < LONGEST - 1:
            chances = {
                word: log_probabilities(network, memory, picture, [*said, word])[-1]
                for word in range(WORDS)
                if word != UNKNOWN
            }
            said.append(max(chances, key=lambda word: chances[word]))
        assert row == (said + [END] * LONGEST)[:LONGEST]


def test_a_picture_is_captioned_alike_in_any_company(network: CaptionNetwork, memory: Memory) -> None:
    together = beam_search(network, memory, LONGEST, beam=3)
    for picture in range(PICTURES):
        alone = Memory(*(part[picture : picture + 1] for part in memory))
        np.testing.assert_array_equal(beam_search(network, alone, LONGEST, beam=3)[0], together[picture])


def test_a_network_of_other_sizes_is_refused(network: CaptionNetwork) -> None:
    tensors = {**network.tensors, "lstm.bias_ih": np.zeros(3, np.float32)}
    with pytest.raises(ValueError, match=r"lstm\.bias_ih"):
        CaptionNetwork(network.config, tensors)


def test_vocabulary_round_trip() -> None:
    vocabulary = Vocabulary.from_captions(["A dog swims.", "a dog"], least=1)
    assert vocabulary.decode(vocabulary.encode(["A dog swims!"])) == ["a dog swims"]
    assert vocabulary.encode(["a zebra dives"], longest=2) == [[vocabulary.words.index("a"), UNKNOWN]]
