"""`kafkalog export` decodes keys and values without Spark. Rules: F537, F935, F1090, F1270.

tests/spark/views/test_local_decoding.py compares what is decoded with Spark.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
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
    "fields": [*OLD["fields"], {"name": "note", "type": ["null", "string"], "default": None}],
}
BY_ID = ("--value-format", "confluent-avro")


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(kafkalog, ["export", *map(str, arguments), "--processes", "1"])
    return result.exit_code, result.stderr


def rows(output: Path, *columns: str, table: str = "ingested_records") -> list[dict[str, Any]]:
    files = sorted((output / table).glob("*.parquet"))
    # The files of later runs can have more columns.
    found = pa.concat_tables(map(read_table, files), promote_options="permissive")
    return found.select(list(columns)).sort_by(columns[0]).to_pylist()


def logs_with(place: Path, *values: bytes | None) -> Path:
    directory = LogDirectory(place)
    directory.topic("_schemas").records(
        [registered(1, json.dumps(OLD)), registered(2, json.dumps(NEW), version=2)]
    )
    directory.topic("orders").records([("k", value) for value in values])
    return Path(directory.write())


def test_a_later_schema_adds_a_column(tmp_path: Path) -> None:
    output, first = tmp_path / "lake", b"\0\0\0\0\x01\x0e"
    given = ("--topic", "orders", "--output-dir", output, *BY_ID)
    assert run(logs_with(tmp_path / "logs", first), *given)[0] == 0
    assert rows(output, "offset", "value_decoded") == [{"offset": 0, "value_decoded": {"id": 7}}]
    later = b"\0\0\0\0\x02\x10\x02\x04hi"
    assert run(logs_with(tmp_path / "more", first, later, b"x", None), *given)[0] == 0
    found = rows(output, "offset", "value", "value_decoded", "value_error", "value_schema_id")
    assert [tuple(row.values()) for row in found] == [
        (0, first, {"id": 7, "note": None}, None, 1),
        (1, later, {"id": 8, "note": "hi"}, None, 2),
        (2, b"x", None, "not a schema id: the first byte is 78, not 00", None),
        (3, None, None, None, None),
    ]


def test_bytes_are_left_out_where_asked(tmp_path: Path) -> None:
    # F935
    logs = logs_with(tmp_path / "logs", b'{"id": 1}', b"{")
    output = tmp_path / "lake"
    schema = ("--value-format", "json", "--value-schema", "id BIGINT", "--drop-decoded-bytes")
    given = ("--topic", "orders", "--output-dir", output, "--key-format", "string", *schema)
    assert run(logs, *given)[0] == 0
    found = rows(output, "offset", "key", "key_decoded", "value", "value_decoded")
    assert [tuple(row.values()) for row in found] == [
        (0, None, "k", None, {"id": 1}),
        (1, None, "k", b"{", None),
    ]


def test_dead_letters_have_a_table_of_their_own(tmp_path: Path) -> None:
    # F1275
    output, sound = tmp_path / "lake", b"\0\0\0\0\x01\x0e"
    given = ("--topic", "orders", "--output-dir", output, "--dead-letters", "dead")
    logs = logs_with(tmp_path / "logs", sound, b"x", None)
    assert run(logs, *given, *BY_ID)[0] == 0
    reason = "not a schema id: the first byte is 78, not 00"
    dead = [{"offset": 1, "value": b"x", "value_error": reason}]
    assert rows(output, "offset", "value", "value_error", table="dead") == dead
    # A run without anything new adds nothing.
    assert run(logs, *given, *BY_ID)[0] == 0
    assert rows(output, "offset", "value", "value_error", table="dead") == dead
    more = logs_with(tmp_path / "more", sound, b"x", None, b"y", sound)
    assert run(more, *given, *BY_ID)[0] == 0
    assert [row["offset"] for row in rows(output, "offset", table="dead")] == [1, 3]
    assert [row["offset"] for row in rows(output, "offset")] == [0, 1, 2, 3, 4]
    # A table that was removed is made again.
    shutil.rmtree(output / "dead")
    assert run(more, *given, *BY_ID)[0] == 0
    assert [row["offset"] for row in rows(output, "offset", table="dead")] == [1, 3]


def test_dead_letters_need_a_format_and_a_name(tmp_path: Path) -> None:
    logs = logs_with(tmp_path / "logs", b"x")
    given = (logs, "--output-dir", tmp_path / "lake", "--dead-letters")
    code, said = run(*given, "dead")
    assert (code, "--value-format" in said) == (2, True)
    for name, reason in (
        ("ingested_records", "another name"),
        ("orders", "another name"),
        ("a.b", "a name of letters"),
    ):
        code, said = run(*given, name, "--value-format", "string", "--table-per-topic")
        assert (code, reason in said) == (2, True), said
    assert not (tmp_path / "lake").exists()


def test_each_topic_of_a_file_has_its_own_format(tmp_path: Path) -> None:
    # F1090
    logs = logs_with(tmp_path / "logs", b"\0\0\0\0\x01\x0e")
    file = tmp_path / "topics.yaml"
    file.write_text(
        "topics:\n"
        "  orders: {value_format: confluent-avro, output_dir: OUT}\n"
        "  _schemas: {value_format: string, output_dir: OUT}\n".replace(
            "OUT", str(tmp_path / "lake")
        )
    )
    assert run(logs, "--topics-file", file)[0] == 0
    assert rows(tmp_path / "lake", "value_decoded", table="orders") == [
        {"value_decoded": {"id": 7}}
    ]
    texts = rows(tmp_path / "lake", "offset", "value_decoded", table="_schemas")
    assert [json.loads(row["value_decoded"])["id"] for row in texts] == [1, 2]


def test_tables_that_cannot_be_are_refused_before_any_topic_is_read(tmp_path: Path) -> None:
    # F1090: a name in Spark's catalogs is not for this command.
    file = tmp_path / "topics.yaml"
    file.write_text("topics: {orders: {}, _schemas: {format: delta, table: a.b}}")
    logs = logs_with(tmp_path / "logs", b"x")
    code, said = run(logs, "--output-dir", tmp_path / "lake", "--topics-file", file)
    assert code == ExitCode.WRONG_ARGUMENTS
    assert f"--topics-file {file}: _schemas: --table: not with --format delta here" in said
    assert not (tmp_path / "lake").exists()


def test_what_could_not_be_decoded_is_counted(tmp_path: Path) -> None:
    # F1341: three of five values; a null value is none.
    logs = logs_with(tmp_path / "logs", b'{"a": 1}', b"{", b"x", None, b"\xff")
    given = ["--topic", "orders", "--output-dir", tmp_path / "lake", "--key-format", "string"]
    given += ["--value-format", "json", "--value-schema", "a INT"]
    result = CliRunner().invoke(kafkalog, ["export", *map(str, (logs, *given))])
    assert result.exit_code == 0
    said = [line for line in result.stdout.splitlines() if "could not" in line]
    assert said == ["3 values could not be decoded: column value_error has the reason"]


def test_protobuf_is_decoded_by_its_descriptor_set(tmp_path: Path) -> None:
    logs = logs_with(tmp_path / "logs", bytes.fromhex("089601"), b"\x08", None)
    schema, output = tmp_path / "guide.desc", tmp_path / "lake"
    schema.write_bytes(descriptor_set("guide.proto", "Test1: int32 a = 1"))
    given = ("--value-format", "protobuf", "--value-schema", schema, "--value-message", "Test1")
    assert run(logs, "--topic", "orders", "--output-dir", output, *given)[0] == 0
    found = [tuple(row.values()) for row in rows(output, "offset", "value_decoded", "value_error")]
    assert found == [
        (0, {"a": 150}, None),
        (1, None, "not Protobuf of message Test1"),
        (2, None, None),
    ]
    code, said = run(logs, "--output-dir", tmp_path / "other", *given[:-1], "Tset1")
    assert code == ExitCode.WRONG_ARGUMENTS
    assert "it has no message Tset1: did you mean Test1?" in said


def test_a_missing_schema_is_named_with_an_example(tmp_path: Path) -> None:
    log_dir = logs_with(tmp_path / "logs", b"{}")
    code, error = run(log_dir, "--output-dir", tmp_path / "out", "--value-format", "json")
    assert code == ExitCode.WRONG_ARGUMENTS
    assert "--value-schema: missing" in error
    assert "such as 'customer STRING, amount DOUBLE'" in error
