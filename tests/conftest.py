"""Fixtures for all tests: where the real data is, and what makes a test skip."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.skips import unexpected

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --window-size=1200,900"
)
SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_configure(config: pytest.Config) -> None:
    """Keep the tests out of the user's own cache: one throw-away folder that all workers share."""
    if not hasattr(config, "workerinput"):
        folder = tempfile.mkdtemp(prefix="caplens-test-cache-")
        os.environ["CAPLENS_CACHE"] = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


_skipped: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail") and isinstance(report.longrepr, tuple):
        _skipped.append(str(report.longrepr[2]))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A skip for a reason that tests/skips.py does not list fails the run."""
    new = unexpected(_skipped)
    if new and not hasattr(session.config, "workerinput") and exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for reason in dict.fromkeys(unexpected(_skipped)):
        terminalreporter.write_line(f"skipped for a reason that tests/skips.py does not list: {reason}", red=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if SHARED.is_dir():
        return
    absent = pytest.mark.skip(reason="the real data (a folder named shared beside the repository) is not here")
    for item in items:
        if item.get_closest_marker("shared"):
            item.add_marker(absent)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Bytes name a test by their kind alone: a gzip header carries the second, and workers must collect the same."""
    return "bytes" if isinstance(val, bytes) else None


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the real data; tests that ask for it carry the mark `shared`."""
    return SHARED


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real headless browser, one per worker; tests that ask for it carry the mark `browser`."""
    webdriver = pytest.importorskip("selenium.webdriver")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("no chromium with chromedriver on this machine")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in [*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = webdriver.Chrome(service=webdriver.ChromeService(driver), options=options)
    yield opened
    opened.quit()


@pytest.fixture
def phone_width(browser: Any) -> Iterator[int]:
    """The browser as wide as a phone, in pixels."""
    size = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    yield 360
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
