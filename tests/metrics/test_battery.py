"""The battery: order, batches, duplicates, empty, one row, unicode, pickling, threads, signature, for every metric."""

from __future__ import annotations

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from tests.battery import (
    ALONE,
    CAPTIONS,
    CHANGES,
    LONG,
    NAMES,
    OPTIONS,
    TOLERANCE,
    UNICODE,
    alone,
    assert_same,
    captions_for,
    make,
    result,
)

from caplens.core.errors import CaplensWarning


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pictures")


every_metric = pytest.mark.parametrize("name", NAMES)
every_lone_metric = pytest.mark.parametrize("name", [name for name in NAMES if ALONE.get(name, {}) is not None])


def test_tables_name_metrics_that_exist() -> None:
    assert {*OPTIONS, *ALONE, *TOLERANCE, *CHANGES} <= set(NAMES)


@every_metric
def test_order_does_not_matter(name: str, folder: Path) -> None:
    metric = make(name)
    captions = captions_for(metric, folder)
    first = result(metric, captions)
    order = [4, 2, 0, 5, 1, 3]
    second = result(metric, captions.take(order))
    assert_same(name, second.scores, first.scores[order])
    assert_same(name, np.array([second.score]), np.array([first.score]))


@every_lone_metric
def test_batches_give_what_the_whole_gives(name: str, folder: Path) -> None:
    metric = alone(name)
    captions = captions_for(metric, folder)
    parts = [result(metric, captions.take(rows)).scores for rows in ([0, 1, 2, 3], [4], [5])]
    assert_same(name, np.concatenate(parts), result(metric, captions).scores)


@every_metric
def test_a_repeated_caption_gets_the_same_score(name: str, folder: Path) -> None:
    metric = make(name)
    scores = result(metric, captions_for(metric, folder).take([0, 1, 0, 2, 1, 0])).scores
    assert_same(name, scores[[2, 4, 5]], scores[[0, 1, 0]])


@every_metric
def test_empty_captions_are_scored(name: str, folder: Path) -> None:
    metric = make(name)
    empty = result(metric, captions_for(metric, folder, ["", " ", ".", "", "\n", "a dog"]))
    assert np.isfinite(empty.scores).all()
    assert np.isfinite(empty.score)


@every_lone_metric
def test_one_row_is_enough(name: str, folder: Path) -> None:
    metric = alone(name)
    captions = captions_for(metric, folder)
    one = result(metric, captions.take([1]))
    assert one.scores.shape == (1,)
    assert_same(name, one.scores, result(metric, captions).scores[1:2])


@every_metric
def test_any_text_is_scored(name: str, folder: Path) -> None:
    metric = make(name)
    scored = result(metric, captions_for(metric, folder, UNICODE))
    assert np.isfinite(scored.scores).all()
    assert scored.scores.dtype == np.float64


@every_metric
def test_a_text_of_any_length_is_scored(name: str, folder: Path) -> None:
    metric = make(name)
    scored = result(metric, captions_for(metric, folder, LONG, [[text] for text in LONG]))
    assert np.isfinite(scored.scores).all()


@every_metric
def test_a_pickled_metric_scores_the_same(name: str, folder: Path) -> None:
    metric = make(name)
    before = pickle.loads(pickle.dumps(metric))
    first = result(metric, captions_for(metric, folder))
    for copy in (before, pickle.loads(pickle.dumps(metric))):
        second = result(copy, captions_for(metric, folder))
        assert second.signature == first.signature
        assert_same(name, second.scores, first.scores)


@every_metric
def test_threads_do_not_disturb_each_other(name: str, folder: Path) -> None:
    metric = alone(name) if ALONE.get(name, {}) is not None else make(name)
    captions = captions_for(metric, folder)
    expected = result(metric, captions).scores
    orders = [list(np.random.default_rng(seed).permutation(len(CAPTIONS))) for seed in range(4)]
    # Threads share the list of warning filters: what the helper ignores must be ignored before they start.
    with warnings.catch_warnings(), ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("ignore", CaplensWarning)
        made = list(pool.map(lambda order: result(metric, captions.take(order)).scores, orders))
    for order, scores in zip(orders, made, strict=True):
        assert_same(name, scores, expected[order])


@every_metric
def test_the_signature_names_what_changes_the_number(name: str, folder: Path) -> None:
    metric = make(name)
    captions = captions_for(metric, folder)
    signature = result(metric, captions).signature
    assert signature.startswith(name)
    assert signature.endswith(f"caplens:{version('caplens')}")
    assert result(make(name), captions).signature == signature
    others = [result(make(name, **options), captions).signature for options in CHANGES.get(name, [])]
    assert len({signature, *others}) == 1 + len(others)


@every_metric
def test_scores_come_from_rows_that_add_up(name: str, folder: Path) -> None:
    """What bootstrap and permutation tests rely on."""
    metric = make(name)
    made = result(metric, captions_for(metric, folder))
    assert made.statistics.shape[0] == len(CAPTIONS)
    assert_same(name, metric.scores(made.statistics), made.scores)
    whole = metric.corpus(made.statistics.sum(axis=0), len(CAPTIONS))
    assert_same(name, np.array([whole]), np.array([made.score]))
    resampled = metric.corpus(
        np.stack([made.statistics.sum(axis=0), 2 * made.statistics[:3].sum(axis=0)]), len(CAPTIONS)
    )
    assert resampled.shape == (2,)
    assert_same(name, resampled[:1], np.array([made.score]))
