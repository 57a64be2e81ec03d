"""A table of Parquet files in an object store. Rules: F650 to F655."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from pyarrow import fs

from kafkalog.command_line.main import kafkalog
from kafkalog.errors import StatePositionError
from kafkalog.lake.layout import PartitionBy, TableLayout
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.parquet.parquet_table import ParquetTable
from tests.remote.gateway import Gateway
from tests.remote.stores import Store, needs_store
from tests.support.lake.exports import exported, planned_run, sorted_rows, view_rows, written_files
from tests.support.lake.parquet_tables import listed
from tests.support.repository import SHOP

pytestmark = needs_store
FIRST: dict[str, Any] = {
    "subscribe": "orders",
    "endingOffsets": json.dumps({"orders": {"0": 50, "1": 70, "2": 80}}),
}
LAYOUT = TableLayout((PartitionBy.TOPIC,))


@pytest.fixture(autouse=True)
def _writes(gateway: Gateway, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    # The proxy passes on what reads; these tests write.
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{gateway.port}")


def _stop(*_: object) -> None:
    raise InterruptedError("stopped before the files are moved")


def test_runs_in_a_store_add_replace_and_complete_each_other(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, bucket = store.bucket()
    path, folder = f"{uri}/lake/ingested_records", bucket / "lake" / "ingested_records"
    exported(ParquetTable(path, LAYOUT), [SHOP], **FIRST)
    with monkeypatch.context() as patched, pytest.raises(InterruptedError):
        patched.setattr(OutputDirectory, "move", _stop)
        exported(ParquetTable(path, LAYOUT), [SHOP])
    assert len(listed(folder)) == 200
    assert not exported(ParquetTable(path, LAYOUT), [SHOP]).has_work
    assert sorted_rows(listed(folder)) == view_rows([SHOP])
    starts = json.dumps({"orders": {"0": 60, "1": 60, "2": 60}})
    exported(ParquetTable(path, LAYOUT), [SHOP], subscribe="orders", startingOffsets=starts)
    assert sorted_rows(listed(folder)) == view_rows([SHOP])
    assert len(list((folder.parent / "ingest_manifest").glob("*.parquet"))) == 3


def test_of_two_runs_the_second_to_commit_reports_it_and_removes_its_files(store: Store) -> None:
    uri, bucket = store.bucket()
    path, folder = f"{uri}/ingested_records", bucket / "ingested_records"
    tables = [ParquetTable(path), ParquetTable(path)]
    runs = [planned_run(table, [SHOP]) for table in tables]
    files = [written_files(table, [SHOP], run) for table, run in zip(tables, runs, strict=True)]
    tables[1].commit(files[1], runs[1])
    with pytest.raises(StatePositionError, match="another run has written meanwhile"):
        tables[0].commit(files[0], runs[0])
    assert sorted_rows(listed(folder)) == view_rows([SHOP])
    pending = OutputDirectory(path).files("_uncommitted")
    assert [each.path for each in pending if each.type == fs.FileType.File] == []


def test_a_manifest_that_another_run_has_replaced_at_once_is_noticed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, bucket = store.bucket()
    path, folder = f"{uri}/ingested_records", bucket / "ingested_records"
    first, other = ParquetTable(path), ParquetTable(path)
    runs = [planned_run(table, [SHOP]) for table in (first, other)]
    files = [written_files(table, [SHOP], runs[0]) for table in (first, other)]
    usual = OutputDirectory.replace

    def then_the_other_run(self: OutputDirectory, name: str, data: bytes) -> None:
        usual(self, name, data)
        monkeypatch.setattr(OutputDirectory, "replace", usual)
        manifest = (folder / name).read_bytes()
        (folder / name).unlink()
        other.commit(files[1], runs[1])
        assert manifest == data

    monkeypatch.setattr(OutputDirectory, "replace", then_the_other_run)
    with pytest.raises(StatePositionError, match="another run has written meanwhile"):
        first.commit(files[0], runs[0])
    assert sorted_rows(listed(folder)) == view_rows([SHOP])


def test_the_commands_take_a_uri(store: Store) -> None:
    uri, bucket = store.bucket()
    path, folder = f"{uri}/ingested_records", bucket / "ingested_records"
    exported(ParquetTable(path), [SHOP], **FIRST)
    exported(ParquetTable(path), [SHOP])
    (folder / "orphan.parquet").touch()
    done = CliRunner().invoke(kafkalog, ["vacuum", path, "--older-than", "1ms"])
    assert done.stdout == f"{path}/orphan.parquet\n", done.output
    done = CliRunner().invoke(kafkalog, ["optimize", path])
    assert done.stdout.startswith("wrote "), done.output
    assert len(list(folder.glob("*.parquet"))) == 1
    assert sorted_rows(listed(folder)) == view_rows([SHOP])
