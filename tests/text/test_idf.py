"""Document-frequency tables: kept, named, and refused when they do not fit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import caplens
from caplens.cli import main
from caplens.core.errors import InputError
from caplens.text.idf import IdfTable, build_idf

REFERENCES = {
    "1": ["A cat sleeps on a mat.", "the cat sleeps"],
    "2": ["a dog sleeps on a mat", "one dog"],
    "3": ["a cat sleeps on the sofa"],
}
CANDIDATES = {"1": "a cat sleeps on a mat", "2": "dogs sleep", "3": "a cat sleeps on a sofa"}


def test_a_table_of_the_evaluated_references_changes_nothing(tmp_path: Path) -> None:
    plain = caplens.evaluate(CANDIDATES, REFERENCES, metrics=["cider-d", "cider-r", "cider-plain"])
    build_idf(REFERENCES.values()).save(tmp_path / "table.safetensors")
    (tmp_path / "references.json").write_text(json.dumps(REFERENCES))
    sources = [REFERENCES, list(REFERENCES.values()), tmp_path / "table.safetensors", str(tmp_path / "references.json")]
    for source in [*sources, build_idf(REFERENCES.values())]:
        report = caplens.evaluate(CANDIDATES, REFERENCES, metrics=["cider-d", "cider-r", "cider-plain"], idf=source)
        for result in plain:
            np.testing.assert_array_equal(report[result.name].scores, result.scores)
            assert f"idf:table-{build_idf(REFERENCES.values()).checksum}|" in report[result.name].signature


def test_the_table_holds_what_more_than_one_image_has() -> None:
    table = build_idf(REFERENCES.values())
    assert table.images == 3
    assert table.words == ["a", "cat", "mat", "on", "sleeps", "the"]
    names = list(table.words)
    for prefix, last in zip(table.prefixes, table.lasts, strict=True):
        names.append(f"{names[prefix]} {table.words[last]}")
    counted = dict(zip(names, table.frequencies.tolist(), strict=True))
    assert counted["sleeps"] == 3
    assert counted["a cat sleeps on"] == 2
    assert "dog sleeps" not in counted
    assert counted["on a mat"] == 2


def test_the_checksum_names_the_content_whatever_the_order() -> None:
    one = build_idf(list(REFERENCES.values()))
    assert build_idf(list(REFERENCES.values())[::-1]).checksum == one.checksum
    assert build_idf([*REFERENCES.values(), ["a cat"]]).checksum != one.checksum
    assert build_idf(REFERENCES.values(), "whitespace").checksum != one.checksum


def test_files_that_are_not_tables_are_refused(tmp_path: Path) -> None:
    table = build_idf(REFERENCES.values())
    path = tmp_path / "table.safetensors"
    table.save(path)
    assert IdfTable.load(path).checksum == table.checksum
    damaged = path.read_bytes().replace(b"sleeps", b"sleepy")
    path.write_bytes(damaged)
    with pytest.raises(InputError, match="checksum differs"):
        IdfTable.load(path)
    path.write_bytes(b"not a table")
    with pytest.raises(InputError, match="not an idf table"):
        IdfTable.load(path)
    for missing in ("absent.safetensors", "absent.json"):
        with pytest.raises(InputError, match="no such"):
            caplens.evaluate(CANDIDATES, REFERENCES, metrics=["cider-d"], idf=tmp_path / missing)
    with pytest.raises(InputError, match="tokenizer whitespace, this metric those of ptb"):
        caplens.evaluate(CANDIDATES, REFERENCES, metrics=["cider-d"], idf=build_idf([["a"]], "whitespace"))


def test_the_command_builds_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "references.json").write_text(json.dumps(REFERENCES))
    table = tmp_path / "table.safetensors"
    with pytest.raises(SystemExit) as stop:
        main(["idf", "build", str(tmp_path / "references.json"), "--output", str(table), "--json"])
    assert stop.value.code == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["checksum"] == build_idf(REFERENCES.values()).checksum == IdfTable.load(table).checksum
    with pytest.raises(SystemExit) as stop:
        main(["idf", "build", str(tmp_path / "references.json"), "--output", str(tmp_path / "table.pkl")])
    assert stop.value.code == 2
