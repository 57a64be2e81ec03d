"""`kafkalog export` of real brokers' files: tables hold what real consumers received."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyarrow import dataset

import kafkalog as kafkalog_of_python
from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.lake.record_rows import RECORD_COLUMNS
from kafkalog.storage.reading.read_plan import SegmentRead
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.planning import planned_groups
from kafkalog.views.reading.reading import read_segment
from tests.support.golden.fixture_sets import consumed, topics
from tests.support.messages.avro_orders import ORDERS, PERSON, SCHEMA, write_schemas
from tests.support.repository import ROOT
from tests.support.spark.kafka_logs import write_records

COLUMNS = ("topic", "partition", "offset", "timestamp_ms", "timestamp_type", "key", "value",
           "headers", "leader_epoch")  # fmt: skip
EXAMPLES = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "examples" / "shop-week", *(ROOT / "examples" / "log-dirs").iterdir())
    if path.is_dir()
)
Rows = list[dict[str, Any]]


def exported(output: Path, *arguments: object, code: int = ExitCode.DONE) -> Rows:
    given = ["export", *map(str, arguments), "--output-dir", str(output), "--processes", "1"]
    result = CliRunner().invoke(kafkalog, given)
    assert result.exit_code == code, result.stderr
    rows = dataset.dataset(output / "ingested_records").to_table(columns=list(COLUMNS))
    return in_order(rows.to_pylist())


def in_order(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def received(golden: Path, consumer: str) -> Rows:
    """What a real consumer received of all ordinary topics."""
    rows = [
        {"topic": topic, **row, "timestamp_ms": None if time == -1 else time}
        for topic in topics(golden, consumer)
        if not topic.startswith("__")
        for row in consumed(golden, topic, consumer)
        for time in [row.pop("timestamp")]
    ]
    return in_order(rows)


@pytest.mark.parametrize(
    ("name", "consumer"),
    [
        ("kafka44", "read_committed"),
        ("kafka44", "read_uncommitted"),
        ("kafka39zk", "read_uncommitted"),
        ("kafka010", "simple"),
        ("kafka08", "simple"),
    ],
)
def test_a_table_holds_what_a_consumer_received(
    name: str, consumer: str, unpacked: Callable[[str], Path], tmp_path: Path
) -> None:
    # F530
    logs, golden = unpacked(f"{name}.logs"), unpacked(f"{name}.golden")
    given = sorted({path.parent.parent for path in logs.rglob("*.log")})
    level = "read_committed" if consumer == "read_committed" else "read_uncommitted"
    assert exported(tmp_path, *given, "--isolation-level", level) == received(golden, consumer)


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_table_holds_the_rows_of_view_records(example: str, tmp_path: Path) -> None:
    options = read_options(
        {
            "path": str(ROOT / example),
            "mode": "PERMISSIVE",
            "stopAt": "highWatermark",
            "isolationLevel": "read_committed",
        }
    )
    expected = [
        {"topic": read.topic, "partition": read.partition, **row}
        for group in planned_groups(options)
        for read in group
        if isinstance(read, SegmentRead)
        for batch in read_segment(read, options, RECORD_COLUMNS)
        for row in batch.to_pylist()
    ]
    names = {"timestampMs": "timestamp_ms", "timestampType": "timestamp_type",
             "leaderEpoch": "leader_epoch"}  # fmt: skip
    renamed = [{names.get(name, name): row[name] for name in row} for row in expected]
    rows = exported(tmp_path, ROOT / example, "--mode", "PERMISSIVE")
    assert rows == in_order(
        [
            {name: row[name] for name in COLUMNS}
            | {"timestamp_ms": None if row["timestamp_ms"] == -1 else row["timestamp_ms"]}
            for row in renamed
        ]
    )


def test_records_of_erased_persons_are_left_out_and_counted(tmp_path: Path) -> None:
    # F1124: the customer c-01 has 5 records with the key, and orders that name it.
    persons = tmp_path / "persons.txt"
    persons.write_text('c-01\n{"value-path": "$.customer", "value": "c-01"}\n')
    shop = ROOT / "examples" / "shop-week"
    every = exported(tmp_path / "every", shop)
    left = exported(tmp_path / "left", shop, "--suppress", persons)

    def is_persons(row: dict[str, Any]) -> bool:
        return row["key"] == b"c-01" or b'"customer": "c-01"' in (row["value"] or b"")

    assert [row["offset"] for row in left] == [
        row["offset"] for row in every if not is_persons(row)
    ]
    given = ["export", str(shop), "--output-dir", str(tmp_path / "again")]
    result = CliRunner().invoke(kafkalog, [*given, "--suppress", str(persons)])
    for topic in ("customers", "orders"):
        count = sum(row["topic"] == topic and is_persons(row) for row in every)
        assert count
        assert f"{topic}: {count} records suppressed" in result.stderr


@pytest.mark.parametrize("place", ["in the input", "--schemas-topic", "--schema-registry"])
def test_values_are_decoded_by_a_registry_s_schemas(
    place: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # F1124, F1262: the order whose schema is not known is kept, and counted.
    logs, person, schemas = tmp_path / "logs", tmp_path / "person", tmp_path / "schemas"
    write_records(logs, "orders-0", [(b"k", value) for value in ORDERS])
    person.write_text(PERSON)
    schemas.mkdir()
    (schemas / "1.avsc").write_text(SCHEMA)
    write_schemas(logs if place == "in the input" else schemas)
    given = [] if place == "in the input" else [place, schemas]
    given += ["--topic", "orders", "--isolation-level", "read_uncommitted", "--suppress", person]
    given.append("--fail-on-findings")
    rows = exported(tmp_path / "tables", logs, *given, code=ExitCode.FINDINGS)
    assert [row["value"] for row in rows] == [*ORDERS[1:]]
    arguments = ["export", str(logs), "--output-dir", str(tmp_path / "more"), *map(str, given)]
    result = CliRunner().invoke(kafkalog, arguments)
    assert "orders: 1 record suppressed" in result.stderr
    assert "orders: 1 value not decoded" in result.stderr
    # From Python, without a session, the same is logged.
    named: dict[str, Any] = {"topics": "orders", "isolation_level": "read_uncommitted"}
    if place != "in the input":
        named[place.removeprefix("--").replace("-", "_")] = str(schemas)
    python = {"format": "parquet", "suppress": str(person), **named}
    kafkalog_of_python.export(None, str(logs), str(tmp_path / "python"), **python)
    said = [each for each in caplog.messages if each.startswith("orders: 1 ")]
    assert [each.split(" ")[2] for each in said] == ["record", "value"]
