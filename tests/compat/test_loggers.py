"""Reports are logged to the real tools, offline, and what they stored is read back."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import caplens
from caplens.core.errors import InputError

NAMES = ["bleu-1", "rouge-l"]


@pytest.fixture
def report() -> caplens.Report:
    return caplens.evaluate(["a cat | <b>", "two dogs"], [["the cat"], ["two dogs"]], metrics=NAMES)


def chunks(data: bytes) -> Iterator[bytes]:
    """The records of an offline run: LevelDB's log format, after a header of seven bytes."""
    place, record = 7, b""
    while place + 7 <= len(data):
        left = 32768 - place % 32768
        if left < 7:  # no header fits into the block
            place += left
            continue
        size, kind = struct.unpack_from("<HB", data, place + 4)
        record += data[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield record
            record = b""


def test_wandb(report: caplens.Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb")
    records = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = report.log_to("wandb", prefix="val/", step=7, project="captions", dir=str(tmp_path))
    assert wandb.run is None  # one of its own, and closed
    wandb.teardown()  # its service writes behind our back until it ends
    (stored,) = tmp_path.rglob("*.wandb")
    logged: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for data in chunks(stored.read_bytes()):
        record = records.Record()
        record.ParseFromString(data)
        for entries, found in ((record.history.item, logged), (record.config.update, settings)):
            found.update({"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in entries})
    assert {name: logged[f"val/{name}"] for name in NAMES} == {name: report[name].score for name in NAMES}
    assert logged["_step"] == 7
    assert settings["caplens"] == {f"val/{name}": report[name].signature for name in NAMES}
    files = Path(run.dir)
    table = json.loads((files / logged["val/captions/path"]).read_text())
    assert table["columns"] == ["id", "caption", *NAMES]
    assert table["data"][0][:2] == ["0", "a cat | <b>"]
    assert "two dogs" in (files / logged["val/page/path"]).read_text()


def test_mlflow(report: caplens.Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    own = report.log_to("mlflow", run_name="own")
    assert mlflow.get_run(own.info.run_id).info.status == "FINISHED"
    with mlflow.start_run() as mine:
        for step in (1, 2):
            assert report.log_to("mlflow", prefix="val/", step=step).info.run_id == mine.info.run_id
    stored = mlflow.get_run(mine.info.run_id)
    assert stored.data.metrics == {f"val/{name}": report[name].score for name in NAMES}
    assert stored.data.tags["signature.val/bleu-1"] == report["bleu-1"].signature
    client = mlflow.MlflowClient()
    assert [point.step for point in client.get_metric_history(mine.info.run_id, "val/bleu-1")] == [1, 2]
    folder = Path(client.download_artifacts(mine.info.run_id, "caplens/val/2", str(tmp_path)))
    assert (folder / "captions.csv").read_text().splitlines()[1].startswith("0,a cat | <b>,0.25,")
    assert "two dogs" in (folder / "captions.html").read_text()


def test_tensorboard(report: caplens.Report, tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    page = report.log_to("tensorboard", prefix="val/", step=7, folder=tmp_path)
    assert page == tmp_path / "captions-val-7.html"
    assert "two dogs" in page.read_text()
    events = accumulator.EventAccumulator(str(tmp_path)).Reload()
    for name in NAMES:
        (point,) = events.Tensors(f"val/{name}")
        assert point.step == 7
        assert point.tensor_proto.float_val[0] == pytest.approx(report[name].score)
    (captions,), (signatures,) = events.Tensors("val/captions"), events.Tensors("val/signatures")
    assert r"| 0 | a cat \| <b> | 0.25 |" in captions.tensor_proto.string_val[0].decode()
    assert "val/rouge-l | rouge-l\\|tokenizer" in signatures.tensor_proto.string_val[0].decode()


def test_other_names(report: caplens.Report) -> None:
    with pytest.raises(InputError, match="nothing can be logged to 'comet'; choose one of wandb, mlflow, tensorboard"):
        report.log_to("comet")
