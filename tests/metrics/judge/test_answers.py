"""Reading answers: JSON whole, cut, fenced and misspelt, and scores smoothed by hand-worked probabilities."""

from __future__ import annotations

import pytest

from caplens.metrics.judge.answers import Token, read_verdict, repaired_object, smoothed_score


@pytest.mark.parametrize(
    ("text", "score", "reason"),
    [
        ('{"score": 85, "reason": "same dog"}', 85, "same dog"),
        ('{"reason": "I would say score: 10 at first", "score": 70}', 70, "I would say score: 10 at first"),
        ('Here you are:\n```json\n{"score": "40", "reason": "a \\"dog\\""}\n```', 40, 'a "dog"'),
        ("{'score': 12.5, 'reason': 'Python spelling',}", 12.5, "Python spelling"),
        ('{"score": 61, "reason": "it was cut in the mid', 61, "it was cut in the mid"),
        ('{"score": 61, "reason": ["nested', 61, ""),
        ('{"score": 61', 61, ""),
        ('{"score": 0}', 0, ""),
        ("Score: 33 because of the hat", 33, "because of the hat"),
        ("Steps: a dog, a hat.\n$88$", 88, "Steps: a dog, a hat.\n$"),
        ("72", 72, ""),
        ("72/100", 72, ""),
        ("72 %\nIt fits.", 72, "It fits."),
    ],
)
def test_what_an_answer_says(text: str, score: float, reason: str) -> None:
    verdict = read_verdict(text, 0, 100)
    assert verdict is not None
    assert verdict.score == score
    assert verdict.reason == reason
    assert float(text[slice(*verdict.span)]) == score


@pytest.mark.parametrize(
    "text",
    ["", "I cannot see the picture.", '{"score": null}', '{"score": 101}', '{"score": -3}', '{"reason": "no"}', "{"],
)
def test_what_cannot_be_read_is_no_score(text: str) -> None:
    assert read_verdict(text, 0, 100) is None


def test_a_score_on_another_scale_is_none() -> None:
    assert read_verdict('{"score": 85}', 0, 1) is None
    assert read_verdict('{"score": 0.85}', 0, 1) is not None


@pytest.mark.parametrize("text", ["[" * 100_000 + "{", "{" * 100_000, '{"a": ' * 50_000, "{" + "(" * 5_000 + "}"])
def test_hostile_nesting_is_survived(text: str) -> None:
    assert repaired_object(text) in (None, {})
    assert read_verdict(text, 0, 100) is None


def tokens(*pieces: str | tuple[str, dict[str, float]]) -> tuple[str, list[Token]]:
    made = [Token(*piece) if isinstance(piece, tuple) else Token(piece, {piece: 1.0}) for piece in pieces]
    return "".join(token.text for token in made), made


def smooth(low: float, high: float, *pieces: str | tuple[str, dict[str, float]]) -> float | None:
    text, made = tokens(*pieces)
    verdict = read_verdict(text, low, high)
    assert verdict is not None
    return smoothed_score(text, made, verdict, low, high)


def test_fleurs_smoothing_worked_by_hand() -> None:
    # First digit: 0 with .9, 1 with .1. Tenths: 8 (.5), 7 (.3), 9 (.2): 4 + 2.1 + 1.8 = 7.9 tenths.
    # Hundredths: 5 (.8), 0 (.2): 4 hundredths. 0.9 * (0.79 + 0.04) + 0.1 * 1.0 = 0.847.
    pieces = (
        '{"score": ',
        ("0", {"0": 0.9, "1": 0.1}),
        ".",
        ("8", {"8": 0.5, "7": 0.3, "9": 0.2}),
        ("5", {"5": 0.8, "0": 0.2}),
        "}",
    )
    assert smooth(0, 1, *pieces) == pytest.approx(0.847, abs=1e-12)


def test_probabilities_of_what_is_no_digit_do_not_count() -> None:
    # The digits have .6 of the probability; among themselves 8 has 2/3 and 7 has 1/3: 23/3 tenths.
    pieces = ("0", ".", ("8", {"8": 0.4, "7": 0.2, " eight": 0.3, "}": 0.1}))
    assert smooth(0, 1, *pieces) == pytest.approx(23 / 30, abs=1e-12)


def test_one_point_zero_leans_to_nine_tenths() -> None:
    assert smooth(0, 1, ("1", {"1": 0.7, "0": 0.3}), ".", "0") == pytest.approx(0.7 * 1.0 + 0.3 * 0.9, abs=1e-12)


def test_a_number_that_is_one_token_is_the_mean_of_the_numbers_there() -> None:
    # G-VEval: 85 (.5), 80 (.25), 100 (.125), 9 (.125); "8x" and 101 are no scores. 42.5 + 20 + 12.5 + 1.125.
    others = {"85": 0.5, "80": 0.25, "100": 0.125, "9": 0.125, "8x": 0.1, "101": 0.2}
    assert smooth(0, 100, '{"score":', (" 85", {f" {one}": p for one, p in others.items()}), "}") == pytest.approx(
        76.125
    )


def test_whole_numbers_in_several_tokens_are_taken_digit_by_digit() -> None:
    # Tens: 8 (.5), 7 (.5): 75. Ones: 5 (.9), 0 (.1): 4.5.
    assert smooth(0, 100, ("8", {"8": 0.5, "7": 0.5}), ("5", {"5": 0.9, "0": 0.1})) == pytest.approx(79.5)


def test_a_token_may_hold_more_than_the_number() -> None:
    assert smooth(0, 100, '{"score": "', ('40"}', {'40"}': 0.5, '60"}': 0.5})) == pytest.approx(50.0)


def test_tokens_of_another_text_smooth_nothing() -> None:
    text, made = tokens("8", "5")
    verdict = read_verdict("85", 0, 100)
    assert verdict is not None
    assert smoothed_score("85", made[:1], verdict, 0, 100) is None
    assert smoothed_score("85", [], verdict, 0, 100) is None
    assert text == "85"
