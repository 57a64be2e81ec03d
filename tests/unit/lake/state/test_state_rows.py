"""Rows of table `state`, against the meanings of its columns: schemas/tables/state.json."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.columns.records.record_metadata import record_schema
from kafkalog.lake.file_schemas import file_schema, write_no_rows
from kafkalog.lake.layout import TableOutput
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.state.state_rows import STATE, STATE_COLUMNS, StateRows
from kafkalog.lake.table_writer import TableWriter
from kafkalog.schemas import table_json

_PLACE: dict[str, str | int | None] = {
    "topic": "orders",
    "partition": 3,
    "cluster_id": None,
    "input_path": "/logs",
}
_RECORDS: list[dict[str, object]] = [
    {"key": b"", "value": b"", "offset": 4, "timestampMs": -1, "timestampType": -1},
    {"key": b"k", "value": None, "offset": 5, "timestampMs": 7, "timestampType": 0},
    {"key": b"l", "value": b"v", "offset": 9, "timestampMs": 8, "timestampType": 1},
]


def rows() -> pa.RecordBatch:
    records = [{**each, "brokerId": 1} for each in _RECORDS]
    schema = record_schema(STATE_COLUMNS)
    return StateRows(_PLACE).of(pa.RecordBatch.from_pylist(records, schema=schema))


def test_each_column_has_what_its_comment_says() -> None:
    found = [
        {name: row[name] for name in row if row[name] is not None} for row in rows().to_pylist()
    ]
    place = {"topic": "orders", "partition": 3, "input_path": "/logs", "broker_id": 1}
    assert found == [
        {**place, "key": b"", "value": b"", "offset": 4, "is_deleted": False},
        {**place, "key": b"k", "offset": 5, "timestamp_ms": 7, "timestamp_type": "CreateTime",
         "is_deleted": True},
        {**place, "key": b"l", "value": b"v", "offset": 9, "timestamp_ms": 8,
         "timestamp_type": "LogAppendTime", "is_deleted": False},
    ]  # fmt: skip


def test_files_have_the_columns_of_the_table_and_its_schema_for_spark(tmp_path: Path) -> None:
    writer = TableWriter(TableOutput(str(tmp_path), 0))
    writer.write(rows(), ("orders", 3))
    (file,) = writer.close()
    write_no_rows(OutputDirectory(str(tmp_path)), file_schema(STATE))
    tables = [pq.ParquetFile(path) for path in tmp_path.glob("*.parquet")]
    assert sorted(table.metadata.num_rows for table in tables) == [0, 3]
    for table in tables:
        found = [(field.name, field.type) for field in table.schema_arrow]
        assert found == [(field.name, field.type) for field in arrow_schema("state")]
        schema = table.metadata.metadata[b"org.apache.spark.sql.parquet.row.metadata"]
        assert json.loads(schema) == json.loads(table_json("state"))
    assert file.least["offset"] == 4
    # Delta has no bounds of flags.
    assert "is_deleted" not in file.least
    assert file.null_counts["is_deleted"] == 0
