"""Records whose keys and values are decoded on their way to a table. Rules: F537, F538, F935, F936.

Avro's bytes are written by hand, see tests/spark/views/test_decoding.py.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import kafkalog
from kafkalog.errors import OptionError
from kafkalog.lake.iceberg.iceberg_table import IcebergTable
from kafkalog.spark.jobs.job import ExitCode
from tests.support.jobs.ingest_runs import run_ingest
from tests.support.jobs.job_runs import needs_delta
from tests.support.messages.registry_records import registered
from tests.support.spark.avro_jar import needs_avro
from tests.support.spark.kafka_logs import write_records

pytestmark = [pytest.mark.spark, needs_delta]

SCHEMA = "id:BIGINT,note:STRING,lines:ARRAY<STRUCT<price:DECIMAL(9,2),day:DATE>>"
LINE = {"price": 9.99, "day": "2026-11-23"}
CARTS: list[tuple[bytes | None, bytes | None]] = [
    (b"a", json.dumps({"id": 1, "note": "new", "lines": [LINE]}).encode()),
    (b"b", b"{"),
    (b"c", None),
    (b"\xff", b'{"id": 4, "lines": []}'),
]
MORE: list[tuple[bytes | None, bytes | None]] = [(b"e", b'{"id": 5, "note": "late", "lines": []}')]
AS_JSON = f"--key-format string --value-format json --value-schema {SCHEMA}"
COLUMNS = ["offset", "key", "value", "key_decoded", "key_error", "value_decoded", "value_error"]


def _table(output: Path, table_format: str, spark: SparkSession) -> pa.Table:
    """What another engine than the writer reads."""
    path = output / "ingested_records"
    if table_format == "iceberg":
        table = IcebergTable(output_dir=str(output)).load()
        assert table is not None
        return table.scan().to_arrow()
    return spark.read.format(table_format).load(str(path)).toArrow()


def _rows(found: pa.Table) -> list[dict[str, Any]]:
    return sorted(found.select(COLUMNS).to_pylist(), key=lambda row: int(row["offset"]))


@pytest.mark.parametrize(
    "table_format",
    [
        "delta",
        pytest.param("iceberg", marks=pytest.mark.deep),
        pytest.param("parquet", marks=pytest.mark.deep),
    ],
)
def test_decoded_values_are_columns_beside_their_bytes(
    table_format: str, spark: SparkSession, tmp_path: Path
) -> None:
    logs, output = tmp_path / "logs", tmp_path / "lake"
    write_records(logs, "carts-0", CARTS)
    given: dict[str, Any] = {
        "format": table_format,
        "isolation_level": "read_uncommitted",
        "key_format": "string",
        "value_format": "json",
        "value_schema": SCHEMA,
    }
    kafkalog.export(spark, logs, str(output), **given)
    first, *others = _rows(_table(output, table_format, spark))
    (line,) = first.pop("value_decoded").pop("lines")
    assert (str(line["price"]), line["day"].isoformat()) == ("9.99", "2026-11-23")
    assert first == {
        "offset": 0,
        "key": b"a",
        "value": CARTS[0][1],
        "key_decoded": "a",
        "key_error": None,
        "value_error": None,
    }
    # Each other row: the bytes, and why they cannot be decoded.
    fourth: dict[str, Any] = {"id": 4, "note": None, "lines": []}
    assert [tuple(row.values()) for row in others] == [
        (1, b"b", b"{", "b", None, None, "not JSON"),
        (2, b"c", None, "c", None, None, None),
        (3, b"\xff", CARTS[3][1], None, "not UTF-8", fourth, None),
    ]
    # Another run adds what is new, by the same schema; one without it, or with another, nothing.
    shutil.rmtree(logs)
    write_records(logs, "carts-0", CARTS + MORE)
    for other in ({"value_format": None, "value_schema": None}, {"value_schema": "id BIGINT"}):
        with pytest.raises(OptionError, match=r"value_(decoded|format)"):
            kafkalog.export(spark, logs, str(output), **{**given, **other})
    # A table that has no bytes of what is decoded takes rows that have them, and the reverse.
    dropped = {**given, "drop_decoded_bytes": True}
    (found,) = kafkalog.export(spark, logs, str(output), **dropped)
    assert found.rows == 1
    rows = _rows(_table(output, table_format, spark))
    assert [row["offset"] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[4]["value_decoded"] == {"id": 5, "note": "late", "lines": []}
    assert [row["value"] for row in rows] == [value for _, value in CARTS] + [None]


@pytest.mark.deep
def test_a_run_that_replaces_rows_decodes_them(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F1341, with Spark's own writer in the second run
    logs, output = tmp_path / "logs", tmp_path / "lake"
    write_records(logs, "carts-0", CARTS)
    arguments = f"--isolation-level read_uncommitted {AS_JSON}"
    assert run_ingest(logs, output=output, arguments=arguments) == ExitCode.DONE
    before = _rows(_table(output, "delta", spark))
    again = f"{arguments} --full-refresh"
    undecoded = "1 value could not be decoded: column value_error has the reason\n"
    assert undecoded in capsys.readouterr().out
    assert run_ingest(logs, output=output, arguments=again) == ExitCode.DONE
    assert undecoded in capsys.readouterr().out
    assert _rows(_table(output, "delta", spark)) == before
    assert len(before) == len(CARTS)


@pytest.mark.deep
@needs_avro
def test_confluents_schema_ids_are_a_column(spark: SparkSession, tmp_path: Path) -> None:
    logs, output = tmp_path / "logs", tmp_path / "lake"
    order = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
    write_records(logs, "_schemas-0", [registered(7, order)])
    by_id = b"\0\0\0\0\x07"
    write_records(logs, "orders-0", [(None, by_id + b"\x02"), (None, b"\0\0\0\0\x08\x02")])
    arguments = "--isolation-level read_uncommitted --topic orders --value-format confluent-avro"
    given = f"{arguments} --format parquet"
    assert run_ingest(logs, output=output, arguments=given) == ExitCode.DONE
    found = _table(output, "parquet", spark)
    names = ["value", "value_decoded", "value_error", "value_schema_id"]
    assert [tuple(row.values()) for row in found.select(names).to_pylist()] == [
        (by_id + b"\x02", {"id": 1}, None, 7),
        (b"\0\0\0\0\x08\x02", None, "schema id 8: its schema is not in _schemas", 8),
    ]


@pytest.mark.deep
def test_bytes_are_dropped_only_where_that_is_requested(
    spark: SparkSession, tmp_path: Path
) -> None:
    logs, output = tmp_path / "logs", tmp_path / "lake"
    write_records(logs, "carts-0", CARTS)
    arguments = f"--isolation-level read_uncommitted {AS_JSON} --drop-decoded-bytes"
    assert run_ingest(logs, output=output, arguments=arguments) == ExitCode.DONE
    rows = _rows(_table(output, "delta", spark))
    assert [(row["key"], row["value"]) for row in rows] == [
        (None, None),
        (None, b"{"),
        (None, None),
        (b"\xff", None),
    ]
