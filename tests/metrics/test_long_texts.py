"""A caption as long as a book: the metrics that compare words neither hang nor fill the memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCORE = """
import sys, warnings
import caplens, caplens.core.errors
warnings.simplefilter("ignore", caplens.core.errors.CaplensWarning)
text = eval(sys.argv[1])
metrics = ["bleu", "rouge-l", "cider-d", "cider-r", "meteor"]
report = caplens.evaluate([text, "a dog"], [[text + " end", "a cat"], ["a dog"]], metrics=metrics)
assert all(result.scores[0] > 0.2 for result in report), report
print(*(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak memory as Linux tells it")
@pytest.mark.parametrize("text", ["'dog ' * 10_000", "' '.join(f'w{number}' for number in range(145_000))"])
def test_a_book_needs_less_than_500_megabytes(text: str) -> None:
    done = subprocess.run([sys.executable, "-c", SCORE, text], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) / 1024 < 500
