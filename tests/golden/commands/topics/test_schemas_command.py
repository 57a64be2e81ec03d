"""`kafkalog schemas`: which schema ids records name. Rules: F285, F286, F1159, F1160."""

import json
import struct
import uuid
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.schemas import table_fields
from kafkalog.testing import LogDirectory, ProducerRecord
from tests.support.golden.fixture_sets import consumed
from tests.support.repository import Unpack

GUID = uuid.UUID("12345678-1234-5678-1234-567812345678")


def framed(schema_id: int, payload: bytes = b"payload") -> bytes:
    # F285: a zero byte and the id, int32.
    return b"\0" + struct.pack(">i", schema_id) + payload


def registered(subject: str, version: int, schema_id: int) -> ProducerRecord:
    key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    value = {"subject": subject, "version": version, "id": schema_id, "schema": '"string"'}
    return ProducerRecord(json.dumps(key), json.dumps(value))


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, ["schemas", *map(str, arguments), "--processes", "1"])
    return result.exit_code, result.stdout, result.stderr


def rows(*arguments: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(*arguments, "--format", "json")[1].splitlines()]


@pytest.fixture
def log_dir(tmp_path: Path) -> LogDirectory:
    made = LogDirectory(tmp_path / "logs")
    orders = made.topic("orders", partitions=2, compression="zstd")
    orders.records([ProducerRecord("a", framed(1)), ProducerRecord("b", framed(1))], partition=0)
    orders.records([ProducerRecord(framed(3), framed(2))], partition=1)
    header = [("__value_schema_id", b"\x01" + GUID.bytes)]
    orders.records([ProducerRecord("c", framed(9), headers=header)], partition=1)
    made.topic("plain").records([("a", '{"json": true}'), ("b", None), ("c", "")])
    return made


def test_records_of_mirror_maker_name_no_schema(unpacked: Unpack) -> None:
    # F1320: MirrorMaker 4.3 wrote them, no serializer of Confluent's.
    code, out, _ = run(unpacked("connect43.logs") / "log-dirs")
    assert code == ExitCode.DONE
    assert out.splitlines()[-1].startswith("0 schema ids in use in 0 topics: ")


def test_topics_in_which_few_payloads_begin_with_an_id_are_named(unpacked: Unpack) -> None:
    # F1320: keys and values at random, written with no serializer of Confluent's.
    logs, golden = unpacked("kafka44.logs") / "log-dirs", unpacked("kafka44.golden")
    received = consumed(golden, "shop.multi-3-part-0", "read_uncommitted")
    _, out, _ = run(logs, "--topic", "shop.multi-3-part-0")
    assert "perhaps none: shop.multi-3-part-0 (1 of 1," in out
    (row,) = rows(logs, "--topic", "shop.multi-3-part-0", "--by", "partition")
    values = [each for each in received if each["partition"] == row["partition"]]
    assert row["field_records"] == sum(each["value"] is not None for each in values)


def test_ids_have_their_first_and_last_offset(log_dir: LogDirectory) -> None:
    # F1159; a header counts before a prefix (F286).
    found = rows(log_dir.write(), "--by", "partition")
    assert list(found[0]) == [field["name"] for field in table_fields("schema_ids")]
    named = [
        tuple(row[name] for name in ("partition", "field", "framing", "schema_id", "records"))
        for row in found
    ]
    assert sorted(named, key=str) == [
        (0, "value", "prefix", 1, 2),
        (1, "key", "prefix", 3, 1),
        (1, "value", "header", None, 1),
        (1, "value", "prefix", 2, 1),
    ]
    (first,) = [row for row in found if row["schema_id"] == 1]
    assert (first["first_offset"], first["last_offset"]) == (0, 1)
    (by_guid,) = [row for row in found if row["guid"]]
    assert by_guid["guid"] == str(GUID)
    assert {row["topic"] for row in found} == {"orders"}


def test_ids_without_a_schema_and_schemas_in_no_topic_are_named(log_dir: LogDirectory) -> None:
    # F1160
    log_dir.topic("_schemas").records(
        [
            registered("orders-value", 1, 1),
            registered("orders-value", 2, 2),
            registered("users-value", 1, 7),
        ]
    )
    code, out, _ = run(log_dir.write())
    assert code == ExitCode.FINDINGS
    # Of "plain" one value is null.
    assert "3 schema ids and 1 GUID in use in 1 topic: 13 keys and values were read" in out
    assert "without a schema: 3 in orders" in out
    assert "1 schema in no record that is here: users-value version 1" in out
    found = {row["schema_id"]: row for row in rows(log_dir.write()) if row["schema_id"]}
    assert (found[2]["subject"], found[2]["version"], found[2]["state"]) == (
        *("orders-value", 2, "registered"),
    )
    by_schema = {row["schema_id"]: row for row in rows(log_dir.write(), "--by", "schema")}
    assert (by_schema[1]["records"], by_schema[1]["topics"]) == (2, ["orders"])
    assert (by_schema[7]["records"], by_schema[7]["topics"]) == (0, [])


def test_without_the_registry_no_id_is_a_finding(log_dir: LogDirectory) -> None:
    code, out, _ = run(log_dir.write())
    assert code == ExitCode.DONE
    assert "which schemas they are is not known: the input has no topic _schemas" in out


def test_payloads_of_other_formats_are_not_taken_for_thousands_of_ids(tmp_path: Path) -> None:
    # F1159: numbers of 8 bytes begin with zero bytes.
    made = LogDirectory(tmp_path / "logs")
    made.topic("numbers").records(
        [ProducerRecord(None, struct.pack(">q", number << 24)) for number in range(1, 1500)]
    )
    (row,) = rows(made.write(), "--by", "partition")
    assert (row["schema_id"], row["records"], row["state"]) == (None, 1499, None)


def test_only_the_topics_that_are_meant_are_read(log_dir: LogDirectory) -> None:
    assert rows(log_dir.write(), "--topic", "plain") == []
