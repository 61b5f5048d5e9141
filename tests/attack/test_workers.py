"""Workers of shards: nothing of the folder that one happens to stand in is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from caplens.scale.engines import LocalEngine


@pytest.mark.parametrize("module", ["caplens", "pickle", "numpy"])
def test_a_worker_runs_no_module_of_the_current_folder(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{module}.py").write_text("open('taken', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    with LocalEngine(2).start(2) as workers:
        assert sorted(workers.map(abs, [-1, -2])) == [1, 2]
    assert not (tmp_path / "taken").exists()
