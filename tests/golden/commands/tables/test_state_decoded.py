"""`kafkalog state` decodes keys and values without Spark. Rules: F285, F537, F1270, F1271, F1276.

tests/spark/views/test_local_decoding.py compares what is decoded with Spark.
"""

import json
from pathlib import Path

from click.testing import CliRunner
from pyarrow.parquet import read_table

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.testing import LogDirectory
from tests.support.messages.descriptor_sets import descriptor_set
from tests.support.messages.registry_records import registered

OLD = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
NEW = {
    **OLD,
    "fields": [
        *OLD["fields"],
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
    ],
}
BY_ID = ("--value-format", "confluent-avro")
# Ids 1 and 2, then 7 and 8 as Avro's zigzag, and for the second branch 1 and the 20,000th day.
FIRST, SECOND = b"\0\0\0\0\x01\x0e", b"\0\0\0\0\x02\x10\x02\xc0\xb8\x02"
DAY = "2024-10-04"


def logs(place: Path) -> str:
    directory = LogDirectory(place)
    directory.topic("_schemas").records(
        [registered(1, json.dumps(OLD)), registered(2, json.dumps(NEW), version=2)]
    )
    values = [("a", FIRST), ("b", FIRST), ("a", SECOND), ("c", b"x")]
    directory.topic("orders").records(values)
    return directory.write()


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, ["state", *arguments, "--processes", "1"])
    return result.exit_code, result.stdout, result.stderr


def test_the_latest_values_are_decoded_by_their_ids(tmp_path: Path) -> None:
    given = (logs(tmp_path / "logs"), "--topic", "orders", *BY_ID)
    code, out, _ = run(*given, "--format", "json")
    found = {row["key"]: row for row in map(json.loads, out.splitlines())}
    assert code == ExitCode.DONE
    assert {key: row["value_decoded"] for key, row in found.items()} == {
        "a": {"id": 8, "day": DAY},
        "b": {"id": 7, "day": None},
        "c": None,
    }
    assert {key: row["value_schema_id"] for key, row in found.items()} == {
        "a": 2,
        "b": 1,
        "c": None,
    }
    assert found["c"]["value_error"] == "not a schema id: the first byte is 78, not 00"
    _, text, _ = run(*given)
    assert "VALUE-DECODED" in text.splitlines()[0]
    assert f'{{"id": 8, "day": "{DAY}"}}' in text
    _, chosen, _ = run(*given, "--columns", "key,value_error", "--format", "csv")
    assert chosen.splitlines()[0] == "key,value_error"


def test_the_table_has_the_rows_of_state_with_the_decoded_columns(tmp_path: Path) -> None:
    output = tmp_path / "out"
    given = (logs(tmp_path / "logs"), "--topic", "orders", *BY_ID, "--output-dir", str(output))
    assert run(*given)[0] == ExitCode.DONE
    state, decoded = (read_table(output / name) for name in ("state", "state_decoded"))
    added = ["value_decoded", "value_error", "value_schema_id"]
    assert decoded.column_names == [*state.column_names, *added]
    rows = decoded.sort_by("key")
    assert rows.drop_columns(added).equals(state.sort_by("key"))
    assert rows["value_schema_id"].to_pylist() == [2, 1, None]
    spark = json.loads(decoded.schema.metadata[b"org.apache.spark.sql.parquet.row.metadata"])
    assert [field["name"] for field in spark["fields"]] == decoded.column_names
    assert run(*given, "--format", "json")[0] == ExitCode.WRONG_ARGUMENTS
    as_json = tmp_path / "json"
    assert run(*given[:-1], str(as_json), "--format", "json")[0] == ExitCode.DONE
    (file,) = (as_json / "state_decoded").glob("*.json")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {str(line["value_decoded"]) for line in lines} == {
        str({"id": 8, "day": DAY}),
        str({"id": 7, "day": None}),
        "None",
    }


def test_protobuf_is_decoded_by_its_descriptor_set(tmp_path: Path) -> None:
    # F1343: Test1 and its bytes are those of the guide to Protobuf's encoding.
    schema = tmp_path / "guide.desc"
    schema.write_bytes(descriptor_set("guide.proto", "Test1: int32 a = 1"))
    directory = LogDirectory(tmp_path / "logs")
    directory.topic("orders").records([("a", b"\x08\x01"), ("a", bytes.fromhex("089601"))])
    protobuf = ("--value-format", "protobuf", "--value-message", "Test1", "--value-schema")
    given = (directory.write(), "--topic", "orders", "--format", "json", *protobuf)
    code, out, _ = run(*given, str(schema))
    assert code == ExitCode.DONE
    assert [row["value_decoded"] for row in map(json.loads, out.splitlines())] == [{"a": 150}]
    schema.write_bytes(b"")
    code, _, err = run(*given, str(schema))
    assert (code, "it has no message Test1: it is empty" in err) == (ExitCode.WRONG_ARGUMENTS, True)
