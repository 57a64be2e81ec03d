"""`kafkalog.scan` and `kafkalog.sql`: what is read for what is asked. Rules: docs/sql.md F1070 to
F1073."""

import json
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import kafkalog
from kafkalog.errors import CorruptDataError, KafkaLogError, LogDirError, OptionError
from kafkalog.storage.files.read_counts import read_counts
from kafkalog.tables.database import RECORDS, opened_database
from kafkalog.tables.scan import TABLES
from kafkalog.testing import LogDirectory, ProducerRecord
from tests.support.messages.descriptor_sets import descriptor_set
from tests.support.messages.registry_records import registered

# A segment of a topic has so many records, of about a KiB.
SEGMENT, SEGMENTS = 1000, 4
START_MS = 1_767_225_600_000


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Topics orders, in four segments, and users, in one: the time of a record is START_MS and its
    offset in seconds. Group billing has committed offset 1500 of orders."""
    directory = LogDirectory(tmp_path_factory.mktemp("scan") / "logs")
    randomness = random.Random(1)
    for name, segments in (("orders", SEGMENTS), ("users", 1)):
        topic = directory.topic(name)
        for number in range(segments):
            if number:
                topic.roll()
            for first in range(number * SEGMENT, (number + 1) * SEGMENT, 20):
                topic.records(
                    ProducerRecord(
                        f"key-{offset}",
                        randomness.randbytes(1000),
                        timestamp_ms=START_MS + 1000 * offset,
                    )
                    for offset in range(first, first + 20)
                )
    directory.commit_offsets("billing", {("orders", 0): 1500})
    return directory.write()


def bytes_read(run: Callable[[], Any]) -> tuple[Any, int]:
    before = read_counts.copy()
    found = run()
    return found, int(read_counts.since(before)["bytes_read"])


@pytest.fixture(scope="module")
def database(log_dir: str) -> duckdb.DuckDBPyConnection:
    return kafkalog.sql(log_dir, processes=1)


@pytest.mark.parametrize(
    ("condition", "rows", "most"),
    [
        ("topic = 'orders' and \"offset\" between 3010 and 3019", 10, 0.06),
        ("\"offset\" = 42 and topic = 'orders'", 1, 0.06),
        ("topic = 'users'", SEGMENT, 0.25),
        ("topic = 'absent'", 0, 0.001),
        ("partition = 7", 0, 0.001),
        (
            f"\"timestamp\" < make_timestamptz({START_MS + 50_000} * 1000) and topic = 'orders'",
            50,
            0.85,
        ),
        ("\"timestamp\" >= '2026-01-01 01:06:00Z'", 40, 0.05),
    ],
)
def test_a_query_reads_what_its_filter_leaves(
    database: duckdb.DuckDBPyConnection, log_dir: str, condition: str, rows: int, most: float
) -> None:
    # F1070, F1071
    whole = sum(path.stat().st_size for path in Path(log_dir).glob("*/*.log"))
    query = f"select count(*), sum(octet_length(value)) from records where {condition}"
    found, read = bytes_read(lambda: database.execute(query).fetchone())
    assert found == (rows, 1000 * rows or None)
    assert read < most * whole


def test_columns_of_headers_decompress_nothing(
    database: duckdb.DuckDBPyConnection, log_dir: str
) -> None:
    # F1070
    before = read_counts.copy()
    (found,) = database.execute("select count(*) from records").fetchall()
    assert found == ((SEGMENTS + 1) * SEGMENT + 1,)
    assert read_counts.since(before)["batches_decompressed"] == "0"


def test_a_scan_has_the_options_of_read(log_dir: str) -> None:
    scan = kafkalog.scan(log_dir, topics={"orders": [0]}, offsets=(10, 20), columns="offset,key")
    assert scan.schema.names == ["offset", "key"]
    assert scan.to_table().to_pydict() == {
        "offset": list(range(10, 20)),
        "key": [f"key-{offset}".encode() for offset in range(10, 20)],
    }
    late = kafkalog.scan(log_dir, topics="orders", from_time="2026-01-01T01:06:00Z")
    assert late.to_table()["offset"].to_pylist() == list(range(3960, 4000))
    committed = kafkalog.scan(log_dir, topics="users", isolation_level="read_committed")
    assert committed.to_reader(["partition"]).read_all().num_rows == SEGMENT


def test_processes_read_and_end(log_dir: str) -> None:
    # F1073: bounded memory, in the order of the logs; who stops early leaves no process.
    scan = kafkalog.scan(log_dir, columns="topic,offset", max_partition_bytes=100_000, processes=2)
    rows = scan.to_table()
    assert rows["offset"].to_pylist() == [*range(SEGMENTS * SEGMENT), *range(SEGMENT)]
    reader = scan.to_reader()
    assert len(reader.read_next_batch()) > 0
    del reader
    connection = duckdb.connect()
    scan.to_duckdb("rows_of_scan", connection)
    assert connection.execute("select * from rows_of_scan limit 1").fetchall() == [("orders", 0)]
    connection.close()
    assert _children() == []


def _children() -> list[str]:
    """The processes of this one that have not ended."""
    pid = str(os.getpid())
    found = subprocess.run(
        ["ps", "-o", "stat=,comm=", "--ppid", pid], capture_output=True, text=True, check=False
    )
    return [
        line
        for line in found.stdout.splitlines()
        # A session of Spark that other tests share is a process too.
        if not line.startswith("Z") and line.split()[-1] not in ("ps", "java")
    ]


def test_libraries_get_rows_in_their_forms(log_dir: str) -> None:
    scan = kafkalog.scan(log_dir, columns=["topic", "offset"], topics="users")
    assert scan.to_pandas()["offset"].tolist() == list(range(SEGMENT))
    assert scan.to_polars()["offset"].to_list() == list(range(SEGMENT))
    lazy = pl.scan_pyarrow_dataset(scan.to_dataset())
    assert lazy.filter(pl.col("offset") < 3).collect()["offset"].to_list() == [0, 1, 2]
    dataset = scan.to_dataset()
    assert dataset.count_rows() == SEGMENT
    assert dataset.head(3, columns=["offset"])["offset"].to_pylist() == [0, 1, 2]
    filtered = dataset.to_table(filter=pc.field("offset") == 5)
    assert filtered == pa.table({"topic": ["users"], "offset": [5]}, schema=scan.schema)


def test_every_table_has_the_columns_of_its_schema_and_is_read(log_dir: str) -> None:
    connection = kafkalog.sql(log_dir, processes=1)
    found = {row[0] for row in connection.execute("show tables").fetchall()}
    assert found == set(TABLES)
    for table in TABLES:
        result = connection.execute(f"select * from {table}")
        names = [column[0] for column in result.description or ()]
        result.fetchall()
        if table == RECORDS:
            assert names[:4] == ["topic", "partition", "offset", "timestamp"]
        whole = kafkalog.scan(
            log_dir, table, as_of=START_MS, include_headers=True, include_metadata=True
        )
        assert sorted(names) == sorted(whole.schema.names)


def test_lag_is_that_of_the_commit(log_dir: str) -> None:
    # F310: the group has 1500 of 4000 offsets.
    rows = kafkalog.scan(log_dir, "consumer_lag", columns="group_id,topic,lag").to_table()
    assert rows.to_pylist() == [{"group_id": "billing", "topic": "orders", "lag": 2500}]
    of_users = kafkalog.scan(log_dir, "consumer_lag", topics="users").to_table()
    assert len(of_users) == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"isolation_levl": "read_committed"}, "isolation_levl: there is no such argument: did you "
         "mean isolation_level?"),
        ({"timestamps": (1, 2)}, "timestamps: there is no such argument: use from_time and "),
        ({"columns": "ofset"}, "did you mean offset?"),
        ({"topics": "ordres"}, "did you mean orders?"),
        ({"view": "recods"}, "did you mean records?"),
        ({"from_time": "Monday"}, "from_time: 'Monday' is not a time: milliseconds since "),
        ({"isolationLevel": "read_committed"}, "no such argument: did you mean isolation_level"),
        ({"value_formt": "json"}, "did you mean value_format, "),
        ({"proceses": 1}, "did you mean processes?"),
        ({"value_format": "jsn"}, "; did you mean json?"),
        ({"value_format": "xml"}, "'xml' is not valid, expected one of string, json, avro, "),
        ({"value_format": "json", "view": "batches"}, "only view records has values"),
        ({"value_format": "json", "columns": "offset"}, "column value has to be among"),
    ],
)  # fmt: skip
def test_what_is_misspelled_is_named_before_anything_is_read(
    log_dir: str, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(OptionError) as raised:
        kafkalog.scan(log_dir, **given)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"columns": "value"}, "columns: a query chooses them"),
        ({"offsets": (1, 2)}, "offsets: a query chooses them"),
        ({"proceses": 1}, "did you mean processes?"),
    ],
)
def test_what_a_query_stands_for_is_no_argument_of_sql(
    log_dir: str, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(OptionError) as raised:
        kafkalog.sql(log_dir, **given)
    assert said in str(raised.value)


def test_a_path_without_logs_is_an_error_at_once(tmp_path: Path) -> None:
    for call in (kafkalog.scan, kafkalog.sql):
        with pytest.raises(LogDirError):
            call(tmp_path / "absent")


def test_damage_is_an_error_with_its_type_and_only_where_it_is_read(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path / "logs")
    topic = directory.topic("orders")
    for number in range(3):
        topic.records([("key", f"value {number}")])
        topic.roll()
    topic.flip_byte(1)
    place = directory.write()
    with pytest.raises(CorruptDataError, match="checksum"):
        kafkalog.scan(place, processes=1).to_table()
    database = opened_database([place], {})
    with (
        pytest.raises(KafkaLogError, match="checksum"),
        database.reader("select value from records", 100) as reader,
    ):
        reader.read_all()
    with database.reader('select value from records where "offset" = 2', 100) as reader:
        assert reader.read_all()["value"].to_pylist() == [b"value 2"]
    sound = kafkalog.scan(place, mode="PERMISSIVE", columns="offset", processes=1)
    assert sound.to_table()["offset"].to_pylist() == [0, 2]


def test_json_values_are_columns(tmp_path: Path) -> None:
    # F1072
    directory = LogDirectory(tmp_path / "logs")
    directory.topic("orders").records(
        [("a", '{"id": 1, "price": 2.5}'), ("b", '{"id": 2}'), ("c", "{"), ("d", None)]
    )
    directory.topic("binary").records([("a", b"\xff\x00")])
    place = directory.write()
    scan = kafkalog.scan(place, topics="orders", value_format="json", columns="offset,value")
    assert scan.to_table().select(["value_decoded", "value_error"]).to_pylist() == [
        {"value_decoded": {"id": 1, "price": 2.5}, "value_error": None},
        {"value_decoded": {"id": 2, "price": None}, "value_error": None},
        {"value_decoded": None, "value_error": "not JSON"},
        {"value_decoded": None, "value_error": None},
    ]
    connection = kafkalog.sql(place, value_format="json")
    query = "select \"offset\" from records where value_decoded.id > 1 and topic = 'orders'"
    assert connection.execute(query).fetchall() == [(1,)]
    counts = "select value_error, count(*) from records group by 1 order by 1 nulls first"
    assert connection.execute(counts).fetchall() == [(None, 3), ("not JSON", 2)]


ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
LATER = {**ORDER, "fields": [*ORDER["fields"], {"name": "unit", "type": "string", "default": "?"}]}


def test_avro_is_read_by_its_schema_ids(tmp_path: Path) -> None:
    # F1274: all are read as version 2 of the subject, whose id no value has.
    directory = LogDirectory(tmp_path / "logs")
    directory.topic("_schemas").records(
        [
            registered(1, json.dumps(ORDER)),
            registered(2, json.dumps(LATER), version=2),
            registered(9, '"string"', "other-value"),
        ]
    )
    values = [b"\0\0\0\0\x01\x0e", b"\0\0\0\0\x01", b"\0\0\0\0\x08\x02a", None]
    directory.topic("orders").records([("a", value) for value in values])
    place = directory.write()
    scan = kafkalog.scan(place, topics="orders", value_format="confluent-avro")
    names = ["value_decoded", "value_error", "value_schema_id"]
    found = [tuple(row.values()) for row in scan.to_table().select(names).to_pylist()]
    assert found == [
        ({"id": 7, "unit": "?"}, None, 1),
        (None, "schema id 1: not Avro of the schema", 1),
        (None, "schema id 8: its schema is not in _schemas", 8),
        (None, None, None),
    ]


def test_protobuf_is_read_by_its_descriptor_set(tmp_path: Path) -> None:
    # F1343, F1344; the first message is that of the guide to the encoding.
    directory = LogDirectory(tmp_path / "logs")
    directory.topic("orders").records([("a", bytes.fromhex("089601")), ("a", b"\x08"), ("a", None)])
    schema = tmp_path / "guide.desc"
    schema.write_bytes(descriptor_set("guide.proto", "Test1: int32 a = 1"))
    given = {"value_format": "protobuf", "value_schema": str(schema), "value_message": "Test1"}
    connection = kafkalog.sql(directory.write(), **given)  # type: ignore[arg-type]
    found = connection.sql("select value_decoded.a, value_error from records").fetchall()
    assert found == [(150, None), (None, "not Protobuf of message Test1"), (None, None)]
