"""The long campaigns count what they did."""

from __future__ import annotations

from tests.attack.long.__main__ import ROOT, SUITES, count_passed


def test_cases_are_counted_by_their_file_whatever_they_are_called() -> None:
    output = """
PASSED tests/vision/test_fetch.py::test_only_public_addresses_are_fetched[::1]
PASSED tests/vision/test_fetch.py::test_loopback_is_refused
FAILED tests/vision/test_video.py::test_sampling
PASSED tests/attack/test_readers.py::test_limits[a::b]
"""
    assert count_passed(output) == {"addresses": 2, "caption files": 1}


def test_the_files_that_are_run_are_there() -> None:
    assert all((ROOT / file).is_file() for file in SUITES)
