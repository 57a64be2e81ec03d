"""Runs into Iceberg tables, read back by pyiceberg. Rules: F530 to F535, F660, F662 and F663."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, LessThan
from pyiceberg.transforms import DayTransform, HourTransform, IdentityTransform
from pyiceberg.types import TimestamptzType

from kafkalog.errors import OptionError, StatePositionError, UnsupportedFormatError
from kafkalog.lake.iceberg.iceberg_table import IcebergTable
from kafkalog.lake.layout import Compression, PartitionBy, TableLayout
from kafkalog.schemas import table_fields
from tests.support.lake.exports import exported, planned_run, sorted_rows, view_rows
from tests.support.lake.iceberg_tables import (
    configure_catalog,
    current_snapshot,
    data_files,
    manifest_ranges,
    null_headers,
    rewritten_by_another_engine,
    scanned,
)
from tests.support.repository import EXAMPLES, SHOP

FIRST_OFFSETS: dict[str, Any] = {
    "subscribe": "orders,customers",
    "endingOffsets": json.dumps({"orders": {"0": 50, "1": 70, "2": 80}, "customers": {"0": 10}}),
}
MORE_OFFSETS: dict[str, Any] = {
    "subscribe": "orders,customers",
    "endingOffsets": json.dumps({"orders": {"0": 90, "1": 70, "2": 80}, "customers": {"0": 30}}),
}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., IcebergTable]]:
    """Opens tables in the directory of the test, and closes their catalogs."""
    tables: list[IcebergTable] = []

    def table(name: str = "ingested_records", **options: Any) -> IcebergTable:
        tables.append(IcebergTable(name, output_dir=str(tmp_path), **options))
        return tables[-1]

    yield table
    for each in tables:
        each.catalog.close()


Opened = Callable[..., IcebergTable]


@pytest.mark.parametrize("partition_by", [(), (PartitionBy.TOPIC, PartitionBy.DAY)])
@pytest.mark.parametrize("logs", [EXAMPLES / "kafka-4.4", EXAMPLES / "kafka-0.10", SHOP])
def test_the_rows_are_those_of_view_records(
    logs: Path, partition_by: tuple[PartitionBy, ...], opened: Opened
) -> None:
    table = opened(layout=TableLayout(partition_by))
    exported(table, [logs])
    expected = view_rows([logs])
    assert len(expected) > 100
    assert sorted_rows(scanned(table)) == expected
    assert null_headers(table) == sum(row["headers"] is None for row in expected)


def test_the_columns_have_the_comments_and_types_of_the_schema(opened: Opened) -> None:
    table = opened(layout=TableLayout((PartitionBy.TOPIC, PartitionBy.DAY, PartitionBy.HOUR)))
    table.prepare(planned_run(table, [SHOP]))
    created = table.existing()
    expected = [(each["name"], each["metadata"]["comment"]) for each in
                table_fields("ingested_records")]  # fmt: skip
    assert [(field.name, field.doc) for field in created.schema().fields] == expected
    assert isinstance(created.schema().find_field("timestamp").field_type, TimestamptzType)
    spec = [(field.name, field.transform) for field in created.spec().fields]
    assert spec == [("topic", IdentityTransform()), ("timestamp_hour", HourTransform())]
    sorted_by = [created.schema().find_column_name(each.source_id)
                 for each in created.sort_order().fields]  # fmt: skip
    assert sorted_by == ["topic", "partition", "offset"]


def test_a_run_adds_what_is_new_in_one_snapshot(opened: Opened, tmp_path: Path) -> None:
    first = exported(opened(), [SHOP], **FIRST_OFFSETS)
    before = data_files(tmp_path)
    table = opened()
    assert (
        table.recorded()
        == first.with_rows(
            {("orders", 0): 50, ("orders", 1): 70, ("orders", 2): 80, ("customers", 0): 10}
        ).positions
    )
    exported(table, [SHOP])
    assert sorted_rows(scanned(table)) == view_rows([SHOP])
    assert before < data_files(tmp_path)
    assert len(table.existing().metadata.snapshots) == 2
    assert planned_run(opened(), [SHOP]).has_work is False


def test_a_run_without_new_records_moves_the_positions(opened: Opened) -> None:
    table = opened()
    run = replace(planned_run(table, [SHOP]), replaced=frozenset())
    table.prepare(run)
    table.commit([], run.with_rows({}))
    assert scanned(table).num_rows == 0
    assert planned_run(opened(), [SHOP]).has_work is False
    assert {row["rows"] for row in manifest_ranges(table)} == {0}


def test_each_run_is_in_table_ingest_manifest(opened: Opened) -> None:
    for options in (FIRST_OFFSETS, MORE_OFFSETS):
        table = opened()
        exported(table, [SHOP], **options)
    names = ("ingest_run", "topic", "partition", "from_offset", "until_offset", "rows")
    assert [tuple(row[name] for name in names) for row in manifest_ranges(table)] == [
        (1, "customers", 0, 0, 10, 10),
        (1, "orders", 0, 0, 50, 50),
        (1, "orders", 1, 0, 70, 70),
        (1, "orders", 2, 0, 80, 80),
        (2, "customers", 0, 10, 30, 20),
        (2, "orders", 0, 50, 90, 40),
    ]


@pytest.mark.parametrize("partition_by", [(), (PartitionBy.TOPIC,)])
def test_a_range_is_replaced_in_the_snapshot_of_its_run(
    partition_by: tuple[PartitionBy, ...], opened: Opened, tmp_path: Path
) -> None:
    table = opened(layout=TableLayout(partition_by))
    exported(table, [SHOP])
    before = data_files(tmp_path)
    exported(
        table,
        [SHOP],
        assign=json.dumps({"orders": [0]}),
        startingOffsets=json.dumps({"orders": {"0": 20}}),
        endingOffsets=json.dumps({"orders": {"0": 40}}),
    )
    read = scanned(table)
    assert sorted_rows(read) == view_rows([SHOP])
    again = [row["offset"] for row in read.to_pylist() if row["ingest_run"] == 2]
    assert again == list(range(20, 40))
    assert len(table.existing().metadata.snapshots) == 2
    named = {task.file.file_path.removeprefix("file://") for task in
             table.existing().scan().plan_files()}  # fmt: skip
    # One file had rows of the range; its other rows are in a new one.
    assert len(before - named) == 1
    assert len(named - before) == 2


def test_full_refresh_replaces_partitions_as_a_whole(opened: Opened, tmp_path: Path) -> None:
    table = opened()
    exported(table, [SHOP])
    exported(table, [SHOP], full_refresh=True)
    assert sorted_rows(scanned(table)) == view_rows([SHOP])
    assert set(scanned(table)["ingest_run"].to_pylist()) == {2}


def test_scans_read_only_files_with_the_wanted_offsets(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkalog.lake.table_writer.ROW_GROUP_BYTES", 4000)
    table = opened(layout=TableLayout(target_file_bytes=1, compression=Compression.NONE))
    exported(table, [SHOP])
    loaded = table.existing()
    wanted = And(
        EqualTo("topic", "orders"),
        EqualTo("partition", 0),
        GreaterThanOrEqual("offset", 100),
        LessThan("offset", 103),
    )
    assert len(list(loaded.scan().plan_files())) > 5
    assert len(list(loaded.scan(wanted).plan_files())) <= 2
    assert loaded.scan(wanted).to_arrow()["offset"].to_pylist() == [100, 101, 102]


def test_scans_read_only_the_day_that_is_wanted(opened: Opened) -> None:
    table = opened(layout=TableLayout((PartitionBy.DAY,)))
    exported(table, [SHOP])
    loaded = table.existing()
    assert [field.transform for field in loaded.spec().fields] == [DayTransform()]
    wanted = And(
        GreaterThanOrEqual("timestamp", "2026-11-10T00:00:00+00:00"),
        LessThan("timestamp", "2026-11-11T00:00:00+00:00"),
    )
    days = {task.file.partition[0] for task in loaded.scan(wanted).plan_files()}
    assert len(days) == 1
    expected = [row for row in view_rows([SHOP])
                if 1_794_268_800_000 <= row["timestamp_ms"] < 1_794_355_200_000]  # fmt: skip
    assert expected
    assert sorted_rows(scanned(table, wanted)) == expected


def test_after_a_rollback_the_next_run_goes_on_from_there(opened: Opened) -> None:
    table = opened()
    exported(table, [SHOP], **FIRST_OFFSETS)
    snapshot = current_snapshot(table)
    exported(table, [SHOP], **MORE_OFFSETS)
    table.existing().manage_snapshots().rollback_to_snapshot(snapshot).commit()
    recorded = opened().recorded()
    assert recorded is not None
    assert recorded.next_offsets["orders", 0] == 50
    run = exported(opened(), [SHOP])
    # The number of the run that was taken back is not used again.
    assert run.positions.run == 3
    assert sorted_rows(scanned(table)) == view_rows([SHOP])


def test_without_the_snapshots_of_runs_the_manifest_has_the_positions(opened: Opened) -> None:
    table = opened()
    exported(table, [SHOP], **FIRST_OFFSETS)
    run = exported(table, [SHOP], **MORE_OFFSETS)
    _expire_runs(table)
    recorded = opened().recorded()
    assert recorded is not None
    assert recorded.next_offsets == run.positions.next_offsets
    assert (recorded.run, recorded.topic_ids, recorded.cluster_id) == (
        2, run.positions.topic_ids, run.positions.cluster_id
    )  # fmt: skip
    exported(opened(), [SHOP])
    assert sorted_rows(scanned(table)) == view_rows([SHOP])


def test_without_snapshots_of_runs_and_manifest_the_table_cannot_go_on(opened: Opened) -> None:
    table = opened()
    exported(table, [SHOP], **FIRST_OFFSETS)
    _expire_runs(table)
    table.catalog.drop_table("kafkalog.ingest_manifest")
    with pytest.raises(StatePositionError, match=r"kafkalog.ingested_records: no snapshot has the"):
        opened().recorded()


def test_a_manifest_of_more_than_the_table_holds_is_not_believed(opened: Opened) -> None:
    table = opened()
    exported(table, [SHOP], **FIRST_OFFSETS)
    first = current_snapshot(table)
    exported(table, [SHOP], **MORE_OFFSETS)
    table.existing().manage_snapshots().rollback_to_snapshot(first).commit()
    _expire_runs(table)
    with pytest.raises(StatePositionError, match="begin with another --table"):
        opened().recorded()


def _expire_runs(table: IcebergTable) -> None:
    rewritten_by_another_engine(table.existing())
    loaded, current = table.existing(), current_snapshot(table)
    others = [each.snapshot_id for each in loaded.snapshots() if each.snapshot_id != current]
    loaded.maintenance.expire_snapshots().by_ids(others).commit()


def test_a_table_of_another_program_is_refused(opened: Opened) -> None:
    table = opened()
    table.prepare(planned_run(table, [SHOP]))
    loaded = table.existing()
    loaded.append(loaded.schema().as_arrow().empty_table())
    with pytest.raises(StatePositionError, match="another program has made the table"):
        opened().recorded()


def test_another_partitioning_than_the_tables_is_refused(opened: Opened) -> None:
    exported(opened(layout=TableLayout((PartitionBy.TOPIC,))), [SHOP], **FIRST_OFFSETS)
    with pytest.raises(
        OptionError, match="--partition-by: 'day' is not valid, expected topic, as kafkalog"
    ):
        exported(opened(layout=TableLayout((PartitionBy.DAY,))), [SHOP])
    table = opened()
    exported(table, [SHOP])
    assert sorted_rows(scanned(table)) == view_rows([SHOP])


def test_a_partitioning_that_tasks_cannot_write_is_refused(opened: Opened) -> None:
    exported(opened(), [SHOP], **FIRST_OFFSETS)
    with opened().existing().update_spec() as update:
        update.add_field("offset", "bucket[4]")
    with pytest.raises(UnsupportedFormatError, match=r"bucket\[4\] of column offset: records are"):
        exported(opened(), [SHOP])


def test_a_catalog_of_the_configuration_holds_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure_catalog(monkeypatch, tmp_path)
    table = IcebergTable("events.shop", catalog="lake")
    exported(table, [SHOP])
    assert sorted_rows(scanned(table)) == view_rows([SHOP])
    with load_catalog("lake") as lake:
        assert sorted(lake.list_tables("events")) == [
            ("events", "shop"), ("events", "shop_manifest")
        ]  # fmt: skip
    table.catalog.close()
    with pytest.raises(
        OptionError, match=r"--catalog: 'sea' is not valid, expected a catalog of .*: lake"
    ):
        IcebergTable(catalog="sea").recorded()


def test_a_directory_in_an_object_store_needs_a_catalog() -> None:
    with pytest.raises(OptionError, match="tables in an object store need --catalog NAME"):
        IcebergTable(output_dir="s3://bucket/lake").recorded()


@pytest.mark.parametrize("name", ["", "a..b", ".orders"])
def test_a_name_without_a_part_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match=r"--table: .*namespace.name"):
        IcebergTable(name, output_dir="/lake")


def test_looking_for_a_table_makes_no_directory(tmp_path: Path) -> None:
    assert IcebergTable(output_dir=str(tmp_path / "lake")).recorded() is None
    assert not (tmp_path / "lake").exists()


def test_a_directory_that_cannot_be_made_is_an_error_with_its_path() -> None:
    table = IcebergTable(output_dir="/proc/lake")
    with pytest.raises(OSError, match="/proc/lake"):
        exported(table, [SHOP])
