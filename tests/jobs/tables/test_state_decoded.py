"""State with its keys and values decoded. Rules: F285, F287 to F290, F292.

Avro's bytes are written by hand, see tests/spark/views/test_decoding.py.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from jobs.reconstruct_state import main
from kafkalog.spark.jobs.job import ExitCode
from kafkalog.spark.session import VERSION
from tests.support.jobs.job_runs import needs_delta, written_schema
from tests.support.jobs.state_runs import run_state
from tests.support.messages.registry_records import (
    noop,
    reference,
    registered,
    removed,
    subject_deleted,
)
from tests.support.repository import ROOT, delta_jars
from tests.support.spark.avro_jar import needs_avro
from tests.support.spark.kafka_logs import write_records

AS_ASKED = "--format parquet --isolation-level read_uncommitted"
KeyAndValue = tuple[bytes | None, bytes | None]

MONEY = (
    '{"type":"record","name":"Money","namespace":"shop","fields":[{"name":"cents","type":"long"}]}'
)
FIRST = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
SECOND = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "total", "type": ["null", "shop.Money"], "default": None},
        ],
    }
)
JSON_ORDER = '{"type":"object","properties":{"id":{"type":"integer"},"note":{"type":"string"}}}'
SCHEMAS = [
    noop(),
    registered(1, FIRST),
    registered(2, MONEY, "money"),
    registered(3, SECOND, version=2, references=[reference("shop.Money", "money")]),
    registered(4, JSON_ORDER, "carts-value", schemaType="JSON"),
    registered(5, FIRST, "gone-value"),
    subject_deleted(version=1),
    removed("gone-value"),
]


def behind_id(schema_id: int, payload: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + payload


def decoded(spark: SparkSession, output: Path, table_format: str = "parquet") -> list[Row]:
    rows = spark.read.format(table_format).load(str(output / "state_decoded"))
    names = [name for name in rows.columns if name.startswith(("key_", "value_"))]
    return rows.orderBy("key").select(*names).collect()


@pytest.mark.deep
@needs_avro
def test_each_value_is_read_by_the_schema_that_its_id_names(
    spark: SparkSession, tmp_path: Path
) -> None:
    orders: list[KeyAndValue] = [
        (b"a", behind_id(1, b"\x02")),
        (b"b", behind_id(3, b"\x04\x02\x0a")),  # id 2, branch 1: 5 cents
        (b"c", behind_id(5, b"\x06")),  # its schema was removed, and is still in the topic
        (b"d", behind_id(4, b"{}")),
        (b"e", behind_id(6, b"\x08")),
        (b"f", b"{}"),
        (b"\xff", behind_id(1, b"\x02\x00")),
    ]
    write_records(tmp_path / "logs", "_schemas-0", SCHEMAS)
    write_records(tmp_path / "logs", "orders-0", orders)
    arguments = f"{AS_ASKED} --topic orders --key-format string --value-format confluent-avro"
    assert (
        run_state(tmp_path / "logs", output=tmp_path / "out", arguments=arguments) == ExitCode.DONE
    )
    assert decoded(spark, tmp_path / "out") == [
        ("a", None, (1, None), None, 1),
        ("b", None, (2, (5,)), None, 3),
        ("c", None, (3, None), None, 5),
        ("d", None, None, "schema id 4: its schema is JSON, not AVRO", 4),
        ("e", None, None, "schema id 6: its schema is not in _schemas", 6),
        ("f", None, None, "not a schema id: the first byte is 7B, not 00", None),
        (None, "not UTF-8", None, "schema id 1: not Avro of the schema", 1),
    ]
    state = spark.read.parquet(str(tmp_path / "out" / "state"))
    assert state.schema == written_schema("state")
    by_first = f"{arguments} --value-schema-id 1"
    assert (
        run_state(tmp_path / "logs", output=tmp_path / "first", arguments=by_first) == ExitCode.DONE
    )
    values = [row.value_decoded for row in decoded(spark, tmp_path / "first")]
    assert values == [(1,), (2,), (3,), None, None, None, None]


@pytest.mark.deep
def test_json_by_the_registrys_json_schema(spark: SparkSession, tmp_path: Path) -> None:
    write_records(tmp_path / "schemas", "_schemas-0", SCHEMAS)
    pairs: list[KeyAndValue] = [
        (b"1", behind_id(4, b'{"id":1,"note":"a"}')),
        (b"2", behind_id(4, b'{"id":"1"}')),
    ]
    write_records(tmp_path / "logs", "carts-0", pairs)
    arguments = f"{AS_ASKED} --key-format json --key-schema BIGINT --value-format confluent-json"
    arguments += f" --schemas-topic {tmp_path}/schemas/_schemas-0"
    done = run_state(tmp_path / "logs", output=tmp_path / "out", arguments=arguments)
    assert done == ExitCode.DONE
    assert decoded(spark, tmp_path / "out") == [
        (1, None, (1, "a"), None, 4),
        (2, None, None, "schema id 4: JSON, but not of the schema", 4),
    ]


@pytest.mark.deep
def test_what_was_decoded_is_shown(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_records(tmp_path / "logs", "carts-0", [(b"1", b'{"id":1}'), (b"2", b"{")])
    given = f"{AS_ASKED} --value-format json --value-schema id:BIGINT --show 2"
    assert run_state(tmp_path / "logs", output=tmp_path / "out", arguments=given) == ExitCode.DONE
    shown = [
        line.split("|")[3:] for line in capsys.readouterr().out.splitlines() if "carts" in line
    ]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in shown[:2]]
    assert [(row[0], *row[-2:]) for row in cells] == [
        ("2", "NULL", "not JSON"),
        ("1", "{1}", "NULL"),
    ]


@pytest.mark.deep
@needs_delta
def test_another_decoding_takes_the_place_of_the_last(spark: SparkSession, tmp_path: Path) -> None:
    write_records(tmp_path / "logs", "carts-0", [(b"1", b'{"id":1}')])
    schema = tmp_path / "cart.json"
    schema.write_text(JSON_ORDER)
    kind = "--isolation-level read_uncommitted --value-format"
    first, second = f"{kind} string", f"{kind} json --value-schema {schema}"
    results = []
    for arguments in (first, second):
        assert run_state(tmp_path / "logs", output=tmp_path, arguments=arguments) == ExitCode.DONE
        results.append(decoded(spark, tmp_path, "delta"))
    assert results == [[('{"id":1}', None)], [((1, None), None)]]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--value-format json --value-schema BIGIN", "--value-schema: 'BIGIN'"),
        ('--value-format json --value-schema {"$ref":"x"}', "refers to 'x'"),
        ("--value-format confluent-avro", "a log directory with it; there is none in"),
        ("--value-format avro --value-schema bytes", "not an Avro schema"),
        ("--value-format protobuf --value-message M --value-schema no.desc", "'no.desc' is not"),
    ],
)
def test_schemas_that_cannot_be_used_are_wrong_arguments(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: str,
    said: str,
) -> None:
    write_records(tmp_path / "logs", "carts-0", [(b"1", b"2")])
    given = f"{AS_ASKED} {arguments}"
    done = run_state(tmp_path / "logs", output=tmp_path / "out", arguments=given)
    assert (done, said in capsys.readouterr().err) == (ExitCode.WRONG_ARGUMENTS, True)
    assert not (tmp_path / "out").exists()


@pytest.mark.deep
@needs_avro
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            "--value-schema-id 9",
            "--value-schema-id: 9 is not valid, expected an id in _schemas: 1, 2, 3, 4",
        ),
        ("--value-schema-id 4", "its schema is JSON, not AVRO"),
        ("", "no payload has the id of a usable schema, found: 9 (not in _schemas)"),
    ],
)
def test_ids_that_lead_to_no_schema_are_wrong_arguments(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: str,
    said: str,
) -> None:
    write_records(tmp_path / "logs", "_schemas-0", SCHEMAS)
    write_records(tmp_path / "logs", "orders-0", [(b"1", behind_id(9, b"2"))])
    given = f"{AS_ASKED} --topic orders --value-format confluent-avro {arguments}"
    done = run_state(tmp_path / "logs", output=tmp_path / "out", arguments=given)
    assert (done, said in capsys.readouterr().err) == (ExitCode.WRONG_ARGUMENTS, True)


@pytest.mark.deep
@needs_avro
def test_avro_schemas_that_spark_cannot_use_are_wrong_arguments(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_records(tmp_path / "logs", "carts-0", [(b"1", b"2")])
    within_itself = '{"type":"record","name":"N","fields":[{"name":"n","type":["null","N"]}]}'
    for schema in (within_itself, '{"type":"record"}'):
        given = f"{AS_ASKED} --value-format avro --value-schema {schema}"
        done = run_state(tmp_path / "logs", output=tmp_path / "out", arguments=given)
        assert done == ExitCode.WRONG_ARGUMENTS
    said = capsys.readouterr().err
    assert "recursive reference" in said
    assert "No name in schema" in said


@pytest.mark.deep
def test_without_its_jar_protobuf_says_what_to_add(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_records(tmp_path / "logs", "carts-0", [(b"1", b"2")])
    (tmp_path / "cart.desc").write_bytes(b"")
    given = f"{AS_ASKED} --value-format protobuf --value-schema {tmp_path}/cart.desc"
    given += " --value-message shop.Cart"
    done = run_state(tmp_path / "logs", output=tmp_path / "out", arguments=given)
    said = capsys.readouterr().err
    assert done == ExitCode.WRONG_ARGUMENTS
    assert "--value-format: 'protobuf' is not valid, expected the jar" in said
    assert f"spark.jars.packages=org.apache.spark:spark-protobuf_2.13:{spark.version}" in said


DOCUMENT = (ROOT / "docs" / "decoding.md").read_text()
COMMANDS = [
    line.removeprefix("kafkalog job reconstruct-state ")
    for line in DOCUMENT.splitlines()
    if line.startswith("kafkalog job reconstruct-state ")
]


@pytest.mark.deep
@needs_avro
def test_the_commands_of_the_document_decode_everything(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, other = tmp_path / "logs", tmp_path / "other"
    for log_dir in (logs, other):
        write_records(log_dir, "_schemas-0", SCHEMAS)
    write_records(logs, "carts-0", [(b"1", b'{"id":1,"note":"a"}')])
    write_records(logs, "names-0", [(b"1", b"a")])
    write_records(logs, "plain-0", [(b"1", b"\x02")])
    write_records(
        logs, "orders-0", [(b"1", behind_id(1, b"\x02")), (b"2", behind_id(3, b"\x04\0"))]
    )
    (tmp_path / "order.avsc").write_text(FIRST)
    monkeypatch.chdir(tmp_path)
    assert len(COMMANDS) == 5
    for number, command in enumerate(COMMANDS):
        text = command.replace("/var/lib/kafka/data", str(logs))
        text = text.replace("/mnt/broker2/kafka-logs", str(other))
        text = text.replace("/tmp/state", str(tmp_path / str(number)))
        assert main([*shlex.split(text), *AS_ASKED.split(), "--show", "0"]) == ExitCode.DONE
        for row in decoded(spark, tmp_path / str(number)):
            assert (row.value_decoded is None, row.value_error) == (False, None)


@pytest.mark.deep
def test_without_its_jar_avro_says_what_to_add(tmp_path: Path) -> None:
    # A session of its own, with jars of the user's choice: none is fetched then.
    write_records(tmp_path / "logs", "plain-0", [(b"1", b"\x02")])
    job, output = str(ROOT / "jobs" / "reconstruct_state.py"), str(tmp_path / "out")
    given = [*AS_ASKED.split(), "--output-dir", output, "--value-format", "avro"]
    environment = {name: text for name, text in os.environ.items() if "SPARK" not in name}
    jars = ",".join(str(jar) for jar in delta_jars() if "avro" not in jar.name)
    done = subprocess.run(
        [sys.executable, job, str(tmp_path / "logs"), *given, "--value-schema", '"long"'],
        env=environment | {"PYSPARK_SUBMIT_ARGS": f"--jars {jars} pyspark-shell"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == ExitCode.WRONG_ARGUMENTS
    wanted = f"spark.jars.packages={VERSION.avro_package}"
    assert wanted in done.stderr.splitlines()[-1]
