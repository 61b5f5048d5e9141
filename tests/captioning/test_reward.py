"""A reward gives what an evaluation with the same idf gives, however the captions come."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import caplens
from caplens.captioning.reward import END_WORD
from caplens.core.errors import CaplensWarning, InputError, MissingData

REFERENCES = {
    1: ["A cat sleeps on a mat.", "the cat sleeps"],
    2: ["a dog runs", "one dog is running"],
    3: ["a red bus in the street"],
}
IDS = [2, 1, 3, 2]
CAPTIONS = ["a dog runs", "a cat cat sleeps on mats", "", "a bus"]
WORDS = ["<end>", "<unknown>", "a", "cat", "sleeps", "on", "mats", "dog", "runs", "bus"]
NUMBERS = [[2, 7, 8, 0, 5], [2, 3, 3, 4, 5, 6], [0], [2, 9, 0, 0, 0, 0]]


def evaluated(name: str, **options: Any) -> np.ndarray:
    references = [REFERENCES[key] for key in IDS]
    if name.startswith("cider"):
        options["idf"] = REFERENCES
    return caplens.evaluate(CAPTIONS, references, metrics=[name], **options)[name].scores


@pytest.mark.filterwarnings("ignore::caplens.core.errors.CaplensWarning")
@pytest.mark.parametrize("name", ["cider-r", "cider-d", "cider-plain", "bleu-4", "bleu-1", "rouge-l", "length"])
def test_rewards_are_the_scores_of_an_evaluation(name: str) -> None:
    reward = caplens.Reward(name, references=REFERENCES, vocabulary=WORDS)
    expected = evaluated(name)
    np.testing.assert_array_equal(reward(IDS, CAPTIONS), expected)
    np.testing.assert_array_equal(reward(IDS, NUMBERS), expected)
    table = np.zeros((4, 6), dtype=np.int32)
    for row, numbers in zip(table, NUMBERS, strict=True):
        row[: len(numbers)] = numbers
    np.testing.assert_array_equal(reward(IDS, table), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(reward))(IDS, table), expected)
    with ThreadPoolExecutor(4) as pool:
        for made in pool.map(lambda _: reward(IDS, CAPTIONS), range(20)):
            np.testing.assert_array_equal(made, expected)


@pytest.mark.filterwarnings("ignore::caplens.core.errors.CaplensWarning")
def test_mixtures_options_and_ready_metrics() -> None:
    reward = caplens.Reward({"cider-r": 1.0, "bleu-4": 0.5}, references=REFERENCES, k_r=0.3)
    expected = evaluated("cider-r", k_r=0.3) + 0.5 * evaluated("bleu-4")
    np.testing.assert_allclose(reward(IDS, CAPTIONS), expected, rtol=1e-15)
    ready = caplens.Reward(caplens.load_metric("cider-r", k_r=0.3), references=REFERENCES)
    np.testing.assert_array_equal(ready(IDS, CAPTIONS), evaluated("cider-r", k_r=0.3))
    with pytest.raises(InputError, match="k_q"):
        caplens.Reward("cider-r", references=REFERENCES, k_q=0.3)


@pytest.mark.parametrize("metric", ["clip-s", {"cider-r": 1.0, "ref-clip-s": 0.5}])
def test_pictures_are_asked_for_when_the_reward_is_made(metric: str | dict[str, float]) -> None:
    with pytest.raises(MissingData, match=r"clip-s looks at the image.* pass images="):
        caplens.Reward(metric, references=REFERENCES)


def test_idf_of_another_corpus() -> None:
    elsewhere = [["a dog", "a cat"], ["a bus"], ["dogs run"], ["a"]]
    reward = caplens.Reward("cider-d", references=REFERENCES, idf=elsewhere, vocabulary=WORDS)
    references = [REFERENCES[key] for key in IDS]
    expected = caplens.evaluate(CAPTIONS, references, metrics=["cider-d"], idf=elsewhere)["cider-d"].scores
    np.testing.assert_array_equal(reward(IDS, CAPTIONS), expected)
    np.testing.assert_array_equal(reward(IDS, NUMBERS), expected)


def test_baselines() -> None:
    reward = caplens.Reward("rouge-l", references=REFERENCES)
    samples = ["a dog runs", "a dog", "x", "the cat sleeps", "cat", "y"]
    plain = reward([2, 1], samples)
    greedy = reward([2, 1], ["one dog", "a cat"])
    np.testing.assert_allclose(
        reward.self_critical([2, 1], samples, ["one dog", "a cat"]), plain - np.repeat(greedy, 3)
    )
    others = [(plain[[1, 2]].mean()), plain[[0, 2]].mean(), plain[[0, 1]].mean()]
    advantage = reward.leave_one_out([2, 1], samples)
    np.testing.assert_allclose(advantage[:3], plain[:3] - others)
    np.testing.assert_allclose(advantage.reshape(2, 3).sum(axis=1), 0, atol=1e-12)
    with pytest.raises(InputError, match="at least two"):
        reward.leave_one_out([2], ["a"])


def test_the_end_may_count_as_a_word() -> None:
    references = {1: ["a dog in a field"], 2: ["a cat on a mat"], 3: ["two birds"]}
    words = ["<end>", "a", "dog", "in", "field"]
    plain = caplens.Reward("cider-d", references, vocabulary=words)
    ending = caplens.Reward("cider-d", references, vocabulary=words, end_counts=True)
    whole, broken, unended = [1, 2, 3, 1, 4, 0, 0], [1, 2, 3, 1, 0, 0, 0], [1, 2, 3, 1, 4]
    assert plain([1], np.array([whole]))[0] == pytest.approx(ending([1], np.array([whole]))[0]) == pytest.approx(10)
    assert plain([1], [unended])[0] == pytest.approx(10)
    assert ending([1], [unended])[0] < 9.9
    assert ending([1], np.array([broken]))[0] < plain([1], np.array([broken]))[0]
    assert ending([1], ["a dog in a"]) == pytest.approx(ending([1], np.array([broken])))
    spelt = caplens.Reward(
        "cider-d", {key: [f"{text} {END_WORD}" for text in texts] for key, texts in references.items()}
    )
    assert ending([1], ["a dog in a"]) == pytest.approx(spelt([1], [f"a dog in a {END_WORD}"]))


def test_torch_in_torch_out() -> None:
    torch = pytest.importorskip("torch")
    reward = caplens.Reward("cider-d", references=REFERENCES, vocabulary=WORDS)
    numbers = torch.tensor([[2, 7, 8, 0], [2, 3, 4, 0]])
    made = reward([2, 1], numbers)
    assert isinstance(made, torch.Tensor)
    np.testing.assert_allclose(made.numpy(), reward([2, 1], ["a dog runs", "a cat sleeps"]), rtol=1e-6)
    assert reward.self_critical([2, 1], numbers, numbers).tolist() == [0, 0]


def test_what_is_missing_is_said() -> None:
    reward = caplens.Reward("cider-d", references=REFERENCES)
    with pytest.raises(InputError, match="no references for id 9"):
        reward([9], ["a"])
    with pytest.raises(InputError, match="3 captions for 2 ids"):
        reward([1, 2], ["a", "b", "c"])
    with pytest.raises(InputError, match="vocabulary"):
        reward([1], [[1, 2]])
    with pytest.raises(InputError, match="without references"):
        caplens.Reward("cider-d", references={})
    single = caplens.Reward("cider-d", references={1: ["a cat"]})
    with pytest.warns(CaplensWarning, match="there is one image"):
        single([1], ["a cat"])
    assert single([1], ["a cat"]).tolist() == [0]  # said once
    with pytest.raises(InputError, match="id 1 has an empty list"):
        caplens.Reward("cider-d", references={1: []})
