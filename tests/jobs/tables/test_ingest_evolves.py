"""Tables of decoded values whose schema changes between runs. Rules: F935 to F938.

Avro's bytes are written by hand, see tests/spark/views/test_decoding.py.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyarrow import parquet
from pyspark.sql import SparkSession

import kafkalog
from kafkalog.command_line.main import kafkalog as command_line
from kafkalog.errors import OptionError
from kafkalog.lake.iceberg.iceberg_table import IcebergTable
from kafkalog.spark.jobs.job import ExitCode
from tests.support.jobs.ingest_runs import run_ingest
from tests.support.jobs.job_runs import needs_delta
from tests.support.messages.registry_records import registered
from tests.support.spark.avro_jar import needs_avro
from tests.support.spark.kafka_logs import write_records

pytestmark = [pytest.mark.spark, needs_delta]

FORMATS = [
    "delta",
    pytest.param("iceberg", marks=pytest.mark.deep),
    pytest.param("parquet", marks=pytest.mark.deep),
]
Records = Sequence[tuple[bytes | None, bytes | None]]


def _record(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": list(fields)})


def _lines(*fields: dict[str, Any]) -> dict[str, Any]:
    line = {"type": "record", "name": "Line", "fields": list(fields)}
    return {"name": "lines", "type": {"type": "array", "items": line}}


ID, PRICE = {"name": "id", "type": "long"}, {"name": "price", "type": "int"}
NOTE = {"name": "note", "type": "string"}
UNIT = {"name": "unit", "type": "string", "default": "EUR"}
TAX = {"name": "tax", "type": ["null", "int"], "default": None}
# Version 2 has no note any more, and a unit; its lines have a tax.
FIRST, SECOND = _record(ID, NOTE, _lines(PRICE)), _record(ID, _lines(PRICE, TAX), UNIT)
# An id, a note "a", a block of one line that costs 5; an id, a line with a tax of 2, unit "kg".
OF_FIRST = b"\0\0\0\0\x01" + b"\x02" + b"\x02a" + b"\x02\x0a\x00"
OF_SECOND = b"\0\0\0\0\x02" + b"\x04" + b"\x02\x0a\x02\x04\x00" + b"\x04kg"
AVRO: dict[str, Any] = {
    "isolation_level": "read_uncommitted",
    "topics": "orders",
    "value_format": "confluent-avro",
}


def _logs(path: Path, orders: Records, *schemas: str, kind: str = "AVRO") -> Path:
    shutil.rmtree(path, ignore_errors=True)
    numbered = enumerate(schemas, 1)
    types = {} if kind == "AVRO" else {"schemaType": kind}
    write_records(
        path, "_schemas-0", [registered(n, text, version=n, **types) for n, text in numbered]
    )
    write_records(path, "orders-0", orders)
    return path


def _rows(output: Path, table_format: str, spark: SparkSession) -> list[dict[str, Any]]:
    """What another engine than the writer reads, by offset."""
    path = output / "ingested_records"
    if table_format == "iceberg":
        table = IcebergTable(output_dir=str(output)).load()
        assert table is not None
        found = table.scan().to_arrow()
    else:
        reader = spark.read.format(table_format).option("mergeSchema", "true")
        found = reader.load(str(path)).toArrow()
    return sorted(found.to_pylist(), key=lambda row: int(row["offset"]))


def _values(output: Path, table_format: str, spark: SparkSession) -> list[Any]:
    return [row["value_decoded"] for row in _rows(output, table_format, spark)]


def _order(number: int, note: str | None, line: dict[str, Any], unit: str | None) -> dict[str, Any]:
    return {"id": number, "note": note, "lines": [line], "unit": unit}


@needs_avro
@pytest.mark.parametrize("table_format", FORMATS)
def test_a_table_gets_the_fields_of_a_new_schema_version(
    table_format: str, spark: SparkSession, tmp_path: Path
) -> None:
    output = tmp_path / "lake"
    logs = _logs(tmp_path / "logs", [(None, OF_FIRST)], FIRST)
    given = {**AVRO, "format": table_format}
    kafkalog.export(spark, logs, str(output), **given)
    assert _values(output, table_format, spark) == [{"id": 1, "note": "a", "lines": [{"price": 5}]}]
    # The day on which producers register version 2; one of them still writes version 1.
    _logs(logs, [(None, OF_FIRST), (None, OF_SECOND), (None, OF_FIRST)], FIRST, SECOND)
    (row,) = kafkalog.export(spark, logs, str(output), **given)
    assert row.rows == 2
    rows = _rows(output, table_format, spark)
    assert [row["value_decoded"] for row in rows] == [
        _order(1, "a", {"price": 5, "tax": None}, None),
        _order(2, None, {"price": 5, "tax": 2}, "kg"),
        _order(1, "a", {"price": 5, "tax": None}, "EUR"),
    ]
    assert [row["value"] for row in rows] == [OF_FIRST, OF_SECOND, OF_FIRST]
    # Runs whose data has one version only change nothing more.
    _logs(logs, [(None, OF_FIRST), (None, OF_SECOND)] + [(None, OF_FIRST)] * 2, FIRST, SECOND)
    kafkalog.export(spark, logs, str(output), **given)
    assert _values(output, table_format, spark)[3] == _order(
        1, "a", {"price": 5, "tax": None}, None
    )


@needs_avro
@pytest.mark.deep
def test_a_pinned_schema_loses_no_bytes_and_changes_no_table(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "lake"
    logs = _logs(tmp_path / "logs", [(None, OF_FIRST)], FIRST)
    kafkalog.export(spark, logs, str(output), **AVRO)
    _logs(logs, [(None, OF_FIRST), (None, OF_SECOND)], FIRST, SECOND)
    arguments = "--topic orders --isolation-level read_uncommitted --value-format confluent-avro"
    refused = f"{arguments} --value-schema-id 2"
    assert run_ingest(logs, output=output, arguments=refused) == ExitCode.WRONG_ARGUMENTS
    *_, line = capsys.readouterr().err.splitlines()
    assert "value_decoded.unit (string) is new" in line
    assert "this run reads schema id 2 as 2" in line
    assert "--merge-schema" in line
    refused = f"{arguments} --no-merge-schema"
    assert run_ingest(logs, output=output, arguments=refused) == ExitCode.WRONG_ARGUMENTS
    pinned = f"{arguments} --value-schema-id 1"
    assert run_ingest(logs, output=output, arguments=pinned) == ExitCode.DONE
    (_, row) = _rows(output, "delta", spark)
    # Version 2 has no note: Avro has no value for it, so that the row says why, and keeps all.
    assert (row["value"], row["value_decoded"]) == (OF_SECOND, None)
    assert row["value_error"] == "schema id 2: not Avro of the schema"


JSON_FIRST = {"id": {"type": "integer"}}
AT = {"type": "object", "properties": {"city": {"type": "string"}}}
JSON_SECOND = {**JSON_FIRST, "at": AT}


@pytest.mark.parametrize("table_format", FORMATS)
def test_json_with_more_fields(table_format: str, spark: SparkSession, tmp_path: Path) -> None:
    logs, output = tmp_path / "logs", tmp_path / "lake"
    payload = b'{"id": 1, "at": {"city": "Bern"}}'
    write_records(logs, "orders-0", [(b"k", payload)])
    given: dict[str, Any] = {
        "format": table_format,
        "isolation_level": "read_uncommitted",
        "key_format": "string",
        "value_format": "json",
        "value_schema": "id BIGINT",
    }
    kafkalog.export(spark, logs, str(output), **given)
    assert _values(output, table_format, spark) == [{"id": 1}]
    # A field that the schema does not name is in the bytes.
    assert _rows(output, table_format, spark)[0]["value"] == payload
    shutil.rmtree(logs)
    write_records(logs, "orders-0", [(b"k", payload)] * 2)
    more = {**given, "value_schema": "id BIGINT, at STRUCT<city: STRING>"}
    with pytest.raises(OptionError, match=r"value_decoded\.at \(struct<city.*merge_schema"):
        kafkalog.export(spark, logs, str(output), **more)
    kafkalog.export(spark, logs, str(output), **more, merge_schema=True)
    assert _values(output, table_format, spark) == [
        {"id": 1, "at": None},
        {"id": 1, "at": {"city": "Bern"}},
    ]
    # A run without a format, whose rows would look like nulls.
    without = {**more, "value_format": None, "value_schema": None, "merge_schema": True}
    shutil.rmtree(logs)
    write_records(logs, "orders-0", [(b"k", payload)] * 3)
    with pytest.raises(OptionError, match="has column value_decoded, and this run would leave"):
        kafkalog.export(spark, logs, str(output), **without)


@pytest.mark.deep
def test_registered_json_schemas_of_one_run_are_read_as_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    schemas = [
        json.dumps({"type": "object", "properties": fields})
        for fields in ({**JSON_FIRST, "old": {"type": "string"}}, JSON_SECOND)
    ]
    payloads = [b'{"id": 1, "old": "x"}', b'{"id": 2, "at": {"city": "Bern"}}']
    orders = [(None, b"\0\0\0\0" + bytes([n]) + each) for n, each in enumerate(payloads, 1)]
    logs = _logs(tmp_path / "logs", orders, *schemas, kind="JSON")
    given = {**AVRO, "value_format": "confluent-json", "format": "parquet"}
    kafkalog.export(spark, logs, str(tmp_path / "lake"), **given)
    assert _values(tmp_path / "lake", "parquet", spark) == [
        {"id": 1, "at": None, "old": "x"},
        {"id": 2, "at": {"city": "Bern"}, "old": None},
    ]


@pytest.mark.deep
def test_keys_too_and_each_table_of_a_topic(spark: SparkSession, tmp_path: Path) -> None:
    logs, output = tmp_path / "logs", tmp_path / "lake"
    given: dict[str, Any] = {
        "format": "parquet",
        "table_per_topic": True,
        "isolation_level": "read_uncommitted",
        "key_format": "json",
        "merge_schema": True,
    }
    write_records(logs, "old-0", [(b'{"id": 1}', b"")])
    kafkalog.export(spark, logs, str(output), **given, key_schema="id INT")
    shutil.rmtree(logs)
    write_records(logs, "old-0", [(b'{"id": 1}', b"")] * 2)
    write_records(logs, "new-0", [(b'{"at": 2}', b"")])
    kafkalog.export(spark, logs, str(output), **given, key_schema="at INT")
    for name, fields in (("old", ["id", "at"]), ("new", ["at"])):
        newest = max((output / name).glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
        columns = parquet.read_schema(newest).field("key_decoded").type
        assert [field.name for field in columns] == fields


@pytest.mark.deep
@pytest.mark.parametrize("table_format", ["delta", "iceberg", "parquet"])
def test_wider_numbers(
    table_format: str, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs, output = tmp_path / "logs", tmp_path / "lake"
    write_records(logs, "orders-0", [(None, b"5")])
    arguments = (
        f"--format {table_format} --isolation-level read_uncommitted --value-format json "
        "--merge-schema --value-schema "
    )
    assert run_ingest(logs, output=output, arguments=f"{arguments} n:INT") == ExitCode.DONE
    shutil.rmtree(logs)
    records: Records = [(None, b"5"), (None, b'{"n":5000000000}')]
    write_records(logs, "orders-0", records)
    code = run_ingest(logs, output=output, arguments=f"{arguments} n:BIGINT")
    if table_format != "iceberg":
        assert code == ExitCode.WRONG_ARGUMENTS
        assert (
            "value_decoded.n is int32 in the table and int64 in this run" in capsys.readouterr().err
        )
    if table_format == "delta":
        place = f"delta.`{output / 'ingested_records'}`"
        spark.sql(f"ALTER TABLE {place} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
        code = run_ingest(logs, output=output, arguments=f"{arguments} n:BIGINT")
    if table_format == "parquet":
        # The values that the older type holds, the others with their bytes and the reason.
        code = run_ingest(logs, output=output, arguments=f"{arguments} n:INT")
    assert code == ExitCode.DONE
    if table_format == "iceberg":
        optimize = ["optimize", str(output / "kafkalog" / "ingested_records")]
        assert CliRunner().invoke(command_line, optimize).exit_code == 0
    last = _rows(output, table_format, spark)[1]
    expected = None if table_format == "parquet" else {"n": 5_000_000_000}
    assert (last["value"], last["value_decoded"]) == (records[1][1], expected)
    assert (last["value_error"] is None) == (expected is not None)


@pytest.mark.parametrize("schema", ["n:INTERVAL DAY", "n:BIGIN", "n:VOID"])
def test_a_schema_that_no_table_can_have_is_a_wrong_argument(
    schema: str, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = write_records(tmp_path / "logs", "orders-0", [(None, b'{"n":1}')])
    file = tmp_path / "schema.ddl"
    file.write_text(schema)
    arguments = f"--isolation-level read_uncommitted --value-format json --value-schema {file}"
    output = tmp_path / "lake"
    assert run_ingest(logs, output=output, arguments=arguments) == ExitCode.WRONG_ARGUMENTS
    *_, line = capsys.readouterr().err.splitlines()
    assert "--value-schema" in line
    assert not (output / "ingested_records").exists()


@pytest.mark.deep
@pytest.mark.parametrize("table_format", ["iceberg", "parquet"])
def test_small_files_with_other_columns_become_one(
    table_format: str, spark: SparkSession, tmp_path: Path
) -> None:
    logs, output = tmp_path / "logs", tmp_path / "lake"
    given: dict[str, Any] = {
        "format": table_format,
        "isolation_level": "read_uncommitted",
        "value_format": "json",
        "merge_schema": True,
    }
    # pyiceberg reads a list that is null as an empty one: it is never null here.
    schemas = [
        "l ARRAY<STRUCT<a: INT>>",
        "b STRING, s STRUCT<t: INT>, l ARRAY<STRUCT<c: INT, a: INT>>",
        "b STRING, l ARRAY<STRUCT<c: INT>>",
    ]
    payload = b'{"l": [{"a": 1, "c": 2}], "b": "x", "s": {"t": 3}}'
    for count, schema in enumerate(schemas, 1):
        shutil.rmtree(logs, ignore_errors=True)
        write_records(logs, "orders-0", [(None, payload)] * count)
        kafkalog.export(spark, logs, str(output), **given, value_schema=schema)
    before = _rows(output, table_format, spark)
    namespace = "kafkalog/" if table_format == "iceberg" else ""
    table = f"{output}/{namespace}ingested_records"
    for command in (["optimize", table], ["vacuum", table, "--older-than", "1ms"]):
        done = CliRunner().invoke(command_line, command)
        assert done.exit_code == 0, done.output
    assert _rows(output, table_format, spark) == before
    assert [row["value_decoded"] for row in before] == [
        {"l": [{"a": 1, "c": None}], "b": None, "s": None},
        {"l": [{"a": 1, "c": 2}], "b": "x", "s": {"t": 3}},
        {"l": [{"a": None, "c": 2}], "b": "x", "s": None},
    ]
    # Rows of a file with fewer columns are written again where a run replaces others of it.
    again = {**given, "value_schema": schemas[1]}
    kafkalog.export(spark, logs, str(output), **again, full_refresh=True)
    assert _values(output, table_format, spark) == [before[1]["value_decoded"]] * 3
