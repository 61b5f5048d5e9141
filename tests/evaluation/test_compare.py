"""caplens.compare: pairing, intervals and p values, against exact enumeration and scipy."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import caplens
from caplens.cli._show import plain_table
from caplens.core.captions import CaptionSet
from caplens.core.errors import InputError, MissingData
from caplens.core.types import Floats
from caplens.core.workspace import Workspace
from caplens.evaluation import resampling
from caplens.metrics.base import Metric, Statistics


class Number(Metric):
    """The caption is its own score; a corpus is the mean."""

    name = "number"
    needs = frozenset()
    paper = "-"
    summary = "-"

    def statistics(self, work: Workspace) -> Statistics:
        return Statistics(np.array([[float(text)] for text in work.captions.candidates]))


class Cost(Number):
    name = "cost"
    higher_is_better = False


class Ratio(Number):
    """Captions are 'hits/tries'; a corpus is the ratio of sums, not a mean."""

    name = "ratio"

    def statistics(self, work: Workspace) -> Statistics:
        return Statistics(np.array([[float(part) for part in text.split("/")] for text in work.captions.candidates]))

    def scores(self, rows: Floats) -> Floats:
        return rows[:, 0] / rows[:, 1]

    def corpus(self, sums: Floats, count: int) -> Floats:
        return sums[..., 0] / sums[..., 1]


def texts(values: object) -> list[str]:
    return [str(value) for value in np.asarray(values).tolist()]


def test_randomization_agrees_with_every_swap_enumerated() -> None:
    random = np.random.default_rng(3)
    one, other = random.normal(0, 1, 10), random.normal(0.5, 1, 10)
    observed = other.mean() - one.mean()
    all_swaps = np.array(list(itertools.product([1, -1], repeat=10)))
    exact = float(np.mean(np.abs(all_swaps @ (other - one) / 10) >= abs(observed) - 1e-12))
    found = caplens.compare({"a": texts(one), "b": texts(other)}, metrics=[Number()], resamples=20_000)
    difference = found["number"].systems[1].difference
    assert difference is not None
    assert difference.value == pytest.approx(observed, abs=1e-12)
    assert difference.p_permutation == pytest.approx(exact, abs=0.012)


def test_bootstrap_intervals_agree_with_scipy() -> None:
    random = np.random.default_rng(4)
    one = random.gamma(2, 1, 60)
    other = one + random.normal(0.2, 0.5, 60)
    found = caplens.compare({"a": texts(one), "b": texts(other)}, metrics=[Number()], resamples=20_000)["number"]
    for values, system in zip((one, other), found.systems, strict=True):
        peer = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=1).confidence_interval
        assert system.interval == pytest.approx((peer.low, peer.high), abs=0.02)
    difference = found.systems[1].difference
    assert difference is not None
    peer = stats.bootstrap((other - one,), np.mean, n_resamples=20_000, method="percentile", rng=1).confidence_interval
    assert difference.interval == pytest.approx((peer.low, peer.high), abs=0.01)


def test_corpus_scores_come_from_sums_not_from_means() -> None:
    found = caplens.compare({"a": ["1/2", "0/8"], "b": ["2/2", "0/8"]}, metrics=[Ratio()])["ratio"]
    assert [system.score for system in found.systems] == [0.1, 0.2]


def test_equal_systems_are_the_same_with_p_1() -> None:
    captions = texts(np.arange(30.0))
    difference = caplens.compare({"a": captions, "b": captions}, metrics=[Number()])["number"].systems[1].difference
    assert difference is not None
    assert (difference.p_bootstrap, difference.p_permutation, difference.verdict) == (1.0, 1.0, "same")


def test_a_false_alarm_is_as_rare_as_promised() -> None:
    """Under the null hypothesis about 5 % of comparisons may be called significant."""
    random = np.random.default_rng(5)
    alarms = 0
    for seed in range(300):
        systems = {name: texts(random.normal(0, 1, 40)) for name in "ab"}
        found = caplens.compare(systems, metrics=[Number()], resamples=300, seed=seed)["number"].systems[1].difference
        assert found is not None
        alarms += found.verdict != "same"
    assert 5 <= alarms <= 27  # 15 expected, three standard deviations either way


@pytest.mark.parametrize(("metric", "verdict"), [(Number(), "better"), (Cost(), "worse")])
def test_lower_can_be_better(metric: Metric, verdict: str) -> None:
    found = caplens.compare({"a": texts(np.zeros(30)), "b": texts(np.ones(30))}, metrics=[metric])
    difference = found[metric.name].systems[1].difference
    assert difference is not None
    assert difference.verdict == verdict
    assert found.worse() == ([("b", "cost")] if verdict == "worse" else [])


def test_the_seed_decides_and_is_in_the_result(tmp_path: Path) -> None:
    random = np.random.default_rng(6)
    systems = {name: texts(random.normal(0, 1, 50)) for name in "abc"}

    def result(seed: int) -> dict[str, object]:
        return caplens.compare(systems, metrics=[Number()], resamples=200, seed=seed).to_dict()

    assert result(1) == result(1)
    assert result(1) != result(2)
    assert (result(1)["seed"], result(1)["baseline"], result(1)["resamples"]) == (1, "a", 200)
    path = tmp_path / "found.json"
    caplens.compare(systems, metrics=[Number()], resamples=200, seed=1).to_json(path)
    assert json.loads(path.read_text()) == json.loads(json.dumps(result(1)))


def test_the_draws_do_not_depend_on_how_many_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(7).normal(size=(77, 3))
    whole = resampling.bootstrap_sums(rows, 50, 9), resampling.swap_sums(rows, 50, 9)
    monkeypatch.setattr(resampling, "CELLS", 200)
    parts = resampling.bootstrap_sums(rows, 50, 9), resampling.swap_sums(rows, 50, 9)
    np.testing.assert_allclose(whole, parts, rtol=1e-12, atol=1e-12)


def test_rows_that_one_system_lacks_a_score_for_are_left_out_of_all() -> None:
    found = caplens.compare({"a": ["1", "2", "3"], "b": ["nan", "4", "5"]}, metrics=[Number()])["number"]
    assert found.captions == 2
    assert [system.score for system in found.systems] == [2.5, 4.5]


def test_systems_are_matched_by_id() -> None:
    found = caplens.compare({"a": {"x": "1", "y": "2"}, "b": {"y": "2", "x": "1"}}, metrics=[Number()])
    difference = found["number"].systems[1].difference
    assert difference is not None
    assert difference.interval == (0.0, 0.0)


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(InputError, match="system 'b' has no caption for id 'y', which 'a' has"):
        caplens.compare({"a": {"x": "1", "y": "2"}, "b": {"x": "1"}}, metrics=[Number()])
    with pytest.raises(InputError, match="system 'a' has no caption for id 'y', which 'b' has"):
        caplens.compare({"a": {"x": "1"}, "b": {"x": "1", "y": "2"}}, metrics=[Number()])
    with pytest.raises(InputError, match="1 system to compare"):
        caplens.compare({"a": ["1"]}, metrics=[Number()])
    with pytest.raises(InputError, match="no captions"):
        caplens.compare({"a": [], "b": []}, metrics=[Number()])
    one, other = (CaptionSet(["x"], ["1"], [[reference]]) for reference in ("cat", "dog"))
    with pytest.raises(InputError, match="different references"):
        caplens.compare({"a": one, "b": other}, metrics=[Number()])


def test_a_metric_that_cannot_run_is_listed_and_the_others_are_not_lost() -> None:
    class Picture(Number):
        name = "picture"
        needs = frozenset({"image"})

    found = caplens.compare({"a": ["1"], "b": ["2"]}, metrics=[Picture(), Number()])
    assert list(found.metrics) == ["number"]
    assert "looks at the image" in found.errors["picture"]
    with pytest.raises(MissingData):
        caplens.compare({"a": ["1"], "b": ["2"]}, metrics=[Picture()])


def three_levels(seed: int = 8, captions: int = 60) -> dict[str, list[str]]:
    """Two systems that differ by chance only, and one that is clearly worse than both."""
    random = np.random.default_rng(seed)
    base = random.normal(0, 1, captions)
    return {
        "one": texts(base + random.normal(0, 0.5, captions)),
        "low": texts(base - 2 + random.normal(0, 0.5, captions)),
        "two": texts(base + random.normal(0, 0.5, captions)),
    }


def test_every_pair_is_tested_and_ranks_follow() -> None:
    found = caplens.compare(three_levels(), metrics=[Number()])["number"]
    assert {frozenset((pair.better, pair.worse)) for pair in found.pairs} == {
        frozenset(pair) for pair in itertools.combinations(("one", "low", "two"), 2)
    }
    assert {system.system: system.cluster for system in found.systems} == {"one": 1, "two": 1, "low": 2}
    assert [system.system for system in found.ranking()][-1] == "low"
    assert all(pair.difference >= 0 for pair in found.pairs)


def test_holm_against_a_worked_example_and_scipy() -> None:
    """Worked by hand: 4 · 0.005 = 0.02, 3 · 0.01 = 0.03, 2 · 0.03 = 0.06, and 0.04 may not fall below it."""
    assert resampling.holm([0.03, 0.005, 0.04, 0.01]) == pytest.approx([0.06, 0.02, 0.06, 0.03])
    assert resampling.holm([0.9, 0.8]) == [1.0, 1.0]
    assert resampling.holm([]) == []


def test_corrected_p_values_are_those_of_the_pairs() -> None:
    found = caplens.compare(three_levels(), metrics=[Number()])["number"]
    raw = [pair.p_permutation for pair in found.pairs]
    assert [pair.p_holm for pair in found.pairs] == pytest.approx(resampling.holm(raw))
    low = next(system for system in found.systems if system.system == "low").difference
    assert low is not None
    assert low.p_holm == pytest.approx(min(1.0, 3 * low.p_permutation))


def test_many_systems_get_enough_permutations_for_the_correction() -> None:
    systems = {str(number): texts(np.arange(30.0) + 10 * number) for number in range(12)}
    found = caplens.compare(systems, metrics=[Number()])
    assert found.permutations == 40 * 66
    assert [system.cluster for system in found["number"].ranking()] == list(range(1, 13))


def test_false_alarms_stay_rare_with_many_systems() -> None:
    """With Holm's correction about 5 % of the comparisons of six equal systems may find any difference at all."""
    random = np.random.default_rng(11)
    alarms = 0
    for seed in range(100):
        systems = {str(number): texts(random.normal(0, 1, 30)) for number in range(6)}
        found = caplens.compare(systems, metrics=[Number()], resamples=400, seed=seed)["number"]
        alarms += any(pair.p_holm < 0.05 for pair in found.pairs)
    assert alarms <= 12  # 5 expected, three standard deviations above


@pytest.mark.parametrize("resamples", [0, -1, 1_000_000_001])
def test_absurd_numbers_of_resamples_are_refused(resamples: int) -> None:
    with pytest.raises(InputError, match="give 1 to 1,000,000"):
        caplens.compare(three_levels(), metrics=[Number()], resamples=resamples)


def test_the_table_in_every_format() -> None:
    found = caplens.compare(three_levels(), metrics=[Number()])
    table = found.table()
    assert [row[2] for row in table.rows] == [system.system for system in found["number"].ranking()]
    assert found.to_csv().splitlines()[0].startswith("metric,rank,system,score")
    assert r"\toprule" in found.to_latex()
    assert found.to_markdown().count("\n") == 4
    assert "<table>" in found._repr_html_()
    frame = found.to_pandas()
    assert list(frame["system"]) == [system.system for system in found["number"].ranking()]
    assert frame["rank"].tolist() == [1, 1, 2]


def test_a_corrected_p_value_that_no_draw_reached_is_shown_as_a_bound() -> None:
    """Fifty systems were all shown with an exact 0.0250: the floor of the draws times the number of pairs."""
    references = [["one two three four five"]] * 40
    systems = {str(count): [" ".join(["one", "two", "three", "four", "five"][:count])] * 40 for count in range(1, 6)}
    found = caplens.compare(systems, references, metrics=["bleu-1"], resamples=100)
    difference = found["bleu-1"].systems[-1].difference
    assert difference is not None
    assert difference.p_holm == pytest.approx(10 / 101)
    assert found.show_p(difference) == "≤ 0.100"
    assert "≤ 0.100" in found.to_csv()


def test_every_row_of_a_table_names_its_metric_and_a_terminal_has_one_table_each() -> None:
    systems = {"one": ["a cat"] * 4, "captioner-large-v2": ["a black cat"] * 4}
    found = caplens.compare(systems, [["a black cat"]] * 4, metrics=["bleu-1", "rouge-l"])
    assert [row[0] for row in found.table().rows] == ["bleu-1 ×100"] * 2 + ["rouge-l ×100"] * 2
    assert list(found.tables()) == ["bleu-1 ×100", "rouge-l ×100"]
    for table in found.tables().values():
        lines = plain_table(table.columns, table.rows, table.numbers)
        assert max(map(len, lines)) <= 80
