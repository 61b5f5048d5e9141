"""Where a caption stands among people's: only for the weights that were measured, and in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from caplens.metrics.infometic import percentiles
from caplens.metrics.infometic.metric import SHIPPED
from caplens.metrics.infometic.percentiles import KEYS, HumanPercentiles, percentiles_of
from caplens.storage import weights


def test_shares_grow_with_the_score_and_stay_within_bounds() -> None:
    people = HumanPercentiles({"precision": (1.0, 2.0, 2.0, 3.0)})
    shares = [people.share("precision", value) for value in (-5.0, 1.0, 1.5, 2.5, 99.0)]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)


def test_scores_are_compared_with_the_cosine_added() -> None:
    people = HumanPercentiles({"overall": (0.0, 10.0)}, scale=20.0)
    assert people.of_score("overall", 1.0, 0.2) == people.share("overall", 5.0) == 0.5


def test_words_of_a_caption_far_from_the_picture_weigh_less_and_near_ones_by_alpha_alone() -> None:
    people = HumanPercentiles({"word": (0.0, 1.0, 2.0)})
    fitting, far, farther = (people.of_word(0.5, 2, cosine) for cosine in (0.6, 0.2, 0.0))
    assert fitting == people.of_word(0.5, 2, people.fits_from) == 0.5
    assert fitting > far > farther


@pytest.mark.parametrize("name", SHIPPED.values())
def test_the_shipped_figures_are_quantiles(name: str) -> None:
    found = percentiles_of(weights.digest(weights.shipped(name))[:12])
    assert found is not None, "measure them anew: python tools/infometic_percentiles.py FLICKR8K_FOLDER FEATURES"
    for key in KEYS:
        assert list(found.quantiles[key]) == sorted(found.quantiles[key])


def test_other_weights_have_no_percentiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert percentiles_of("of other weights") is None
    monkeypatch.setattr(percentiles, "percentiles_path", lambda: tmp_path / "absent.json")
    assert percentiles_of("with no file") is None
