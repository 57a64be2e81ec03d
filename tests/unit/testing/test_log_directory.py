"""Log directories for users' tests: the reader finds what was requested."""

import subprocess
import sys
from pathlib import Path

import pytest

from kafkalog.errors import CorruptDataError, KafkaLogError, LogDirError, OptionError, RowError
from kafkalog.format.record_batch import framing_fault
from kafkalog.format.side_files.checkpoints import read_offset_checkpoint
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.testing import LogDirectory, ProducerRecord
from kafkalog.testing.made_records import START_MS
from kafkalog.wire.murmur2 import murmur2, partition_of_key
from tests.support.logs.committed_reads import Row, committed_options, committed_rows


def rows(
    written: str,
    columns: tuple[str, ...] = ("offset", "key", "value"),
    isolation: str = "read_uncommitted",
    **options: str,
) -> list[Row]:
    """What the reader finds, topics of Kafka's own left out."""
    parsed = committed_options([Path(written)], isolationLevel=isolation, **options)
    asked = tuple(dict.fromkeys(("topic", "partition", "offset", *columns)))
    found = (dict(zip(asked, row, strict=True)) for row in committed_rows(parsed, columns=asked))
    mine = (row for row in found if not row["topic"].startswith("__"))
    return [tuple(row[name] for name in columns) for row in mine]


def log_of(written: str, name: str = "orders-0") -> PartitionLog:
    (found,) = find_partitions([f"{written}/{name}"])
    return found


@pytest.fixture
def log_dir(tmp_path: Path) -> LogDirectory:
    return LogDirectory(tmp_path)


def test_records_are_what_was_sent_nulls_headers_and_times_included(log_dir: LogDirectory) -> None:
    orders = log_dir.topic("orders")
    orders.records([("key", "größe"), (b"\xff", None), (None, b"")])
    orders.records([ProducerRecord("k", "v", [("a", "1"), ("a", b"\x00"), ("b", None)], 7)])
    headers = [{"key": "a", "value": b"1"}, {"key": "a", "value": b"\x00"}]
    assert rows(log_dir.write(), ("offset", "timestampMs", "key", "value", "headers")) == [
        (0, START_MS, b"key", "größe".encode(), None),
        (1, START_MS + 1000, b"\xff", None, None),
        (2, START_MS + 2000, None, b"", None),
        (3, 7, b"k", b"v", [*headers, {"key": "b", "value": None}]),
    ]


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        # As Kafka's own test has them, UtilsTest.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_keys_are_hashed_as_by_kafkas_producers(key: bytes, hashed: int) -> None:
    # F610
    assert murmur2(key) == hashed % 2**32
    assert partition_of_key(key, 7) == (hashed & 0x7FFFFFFF) % 7


def test_a_key_chooses_its_partition_and_what_has_none_goes_to_the_first(
    log_dir: LogDirectory,
) -> None:
    # F610: "foobar" and "abc" by the numbers above.
    orders = log_dir.topic("orders", partitions=2)
    orders.records([("abc", "1"), ("foobar", "2"), (None, "3")])
    orders.records([("abc", "4")], partition=0)
    assert ((-790332482 & 0x7FFFFFFF) % 2, 479470107 % 2) == (0, 1)
    assert rows(log_dir.write(), ("partition", "offset", "value")) == [
        (0, 0, b"2"),
        (0, 1, b"3"),
        (0, 2, b"4"),
        (1, 0, b"1"),
    ]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_call_is_a_batch_in_the_topics_codec(log_dir: LogDirectory, codec: str) -> None:
    orders = log_dir.topic("orders", compression=codec)
    orders.records([("a", "x" * 500), ("b", "x" * 500)])
    orders.records([("c", "x" * 500)])
    assert rows(log_dir.write(), ("offset", "compression", "batchBaseOffset")) == [
        (0, codec, 0),
        (1, codec, 0),
        (2, codec, 2),
    ]


def test_transactions_end_by_markers_in_each_partition_and_offsets_count_with_them(
    log_dir: LogDirectory,
) -> None:
    # F111, F112.
    orders = log_dir.topic("orders", partitions=2)
    producer = log_dir.transactional_producer("payments")
    assert log_dir.transactional_producer("payments") is producer
    producer.records(orders, [("a", "kept"), ("b", "kept")], partition=0)
    producer.records(orders, [("a", "kept")], partition=1)
    producer.commit_offsets("billing", {("orders", 0): 2})
    producer.commit()
    producer.records(orders, [("a", "dropped")], partition=0)
    producer.abort()
    log_dir.transactional_producer("hangs").records(orders, [("a", "open")], partition=1)
    written = log_dir.write()
    columns = ("partition", "offset", "value", "sequence", "isTransactional")
    assert rows(written, columns, "read_committed") == [
        (0, 0, b"kept", 0, True),
        (0, 1, b"kept", 1, True),
        (1, 0, b"kept", 0, True),
    ]
    assert [row[:4] for row in rows(written, columns)][2:] == [
        (0, 3, b"dropped", 2),
        (1, 0, b"kept", 0),
        (1, 2, b"open", 0),
    ]
    assert sorted(Path(written).glob("*/*.txnindex")) == [
        Path(written, "orders-0", "00000000000000000000.txnindex")
    ]


def test_the_end_of_no_transaction_writes_nothing(log_dir: LogDirectory) -> None:
    orders = log_dir.topic("orders")
    log_dir.transactional_producer("idle").commit()
    log_dir.write()
    assert orders.log(0).next_offset == 0


def test_segments_are_rolled_and_deleted_as_requested(log_dir: LogDirectory) -> None:
    orders = log_dir.topic("orders")
    for number in range(3):
        orders.records([("k", f"{number}"), ("k", f"{number}")])
        orders.roll()
        orders.roll()
    orders.delete_records(3)
    written = log_dir.write()
    assert [segment.base_offset for segment in log_of(written).segments] == [2, 4, 6]
    checkpoint = Path(written, "log-start-offset-checkpoint").read_text()
    assert read_offset_checkpoint(checkpoint) == {("orders", 0): 3}
    assert rows(written, ("offset",)) == [(3,), (4,), (5,)]


def test_compaction_leaves_gaps_and_takes_tombstones_when_their_time_has_come(
    log_dir: LogDirectory,
) -> None:
    # F240 to F251 by what they mean: the last record of each key stays, where it is.
    orders = log_dir.topic("orders")
    orders.records([("a", "1"), ("b", "1"), ("a", "2"), ("c", "1"), ("c", None)])
    orders.roll()
    orders.records([("b", "2")])
    orders.compact()
    orders.records([("a", "3")])
    written = log_dir.write()
    assert rows(written) == [(2, b"a", b"2"), (4, b"c", None), (5, b"b", b"2"), (6, b"a", b"3")]
    assert [segment.base_offset for segment in log_of(written).segments] == [0, 6]
    cleaned = Path(written, "cleaner-offset-checkpoint").read_text()
    assert read_offset_checkpoint(cleaned) == {("orders", 0): 6}
    log_dir.now_ms += 24 * 60 * 60 * 1000 + 1
    orders.compact()
    assert rows(log_dir.write()) == [(5, b"b", b"2"), (6, b"a", b"3")]


def test_the_cleaner_stops_where_a_transaction_is_open(log_dir: LogDirectory) -> None:
    # F243
    orders = log_dir.topic("orders")
    orders.records([("a", "1"), ("a", "2")])
    orders.roll()
    log_dir.transactional_producer("hangs").records(orders, [("b", "1")])
    orders.records([("a", "3"), ("a", "4")])
    orders.compact()
    assert rows(log_dir.write(), ("offset",)) == [(1,), (2,), (3,), (4,)]


def test_a_flipped_byte_makes_one_batch_unreadable(log_dir: LogDirectory) -> None:
    orders = log_dir.topic("orders")
    for number in range(3):
        orders.records([("k", f"{number}"), ("k", f"{number}")])
    orders.flip_byte(3)
    with pytest.raises(CorruptDataError, match="base offset 2: checksum"):
        rows(log_dir.write())


def test_a_cut_tail_is_a_batch_that_does_not_end(log_dir: LogDirectory) -> None:
    orders = log_dir.topic("orders")
    orders.records([("k", "0")])
    orders.records([("k", "1")])
    orders.cut_tail(1)
    written = log_dir.write()
    assert rows(written, mode="PERMISSIVE") == [(0, b"k", b"0")]
    # F76: by its checkpoints the log had more when the broker stopped.
    with pytest.raises(CorruptDataError, match="missing_end: offsets 1 to 1 "):
        rows(written)
    data = Path(log_of(written).segments[0].path).read_bytes()
    _, header = framing_fault(data, 0)
    assert header is not None
    assert framing_fault(data, header.size)[1] is None


def test_groups_commit_in_the_partition_that_they_belong_to(tmp_path: Path) -> None:
    # F323: the id "billing" has Java's hash -109829509, by its definition.
    code = 0
    for unit in "billing".encode("utf-16-be")[1::2]:
        code = (31 * code + unit) % 2**32
    assert code - 2**32 == -109829509
    log_dir = LogDirectory(tmp_path, offsets_topic_partitions=50)
    log_dir.commit_offsets("billing", {("orders", 0): 3, ("orders", 1): None})
    ends = read_offset_checkpoint(
        Path(log_dir.write(), "replication-offset-checkpoint").read_text()
    )
    assert {key: end for key, end in ends.items() if end} == {("__consumer_offsets", 9): 2}


def test_writing_again_writes_what_was_added_and_the_same_bytes(log_dir: LogDirectory) -> None:
    orders = log_dir.topic("orders")
    orders.records([("k", "0")])
    before = {path.name: path.read_bytes() for path in Path(log_dir.write()).glob("*/*")}
    assert before == {path.name: path.read_bytes() for path in Path(log_dir.write()).glob("*/*")}
    orders.records([("k", "1")])
    assert rows(log_dir.write(), ("offset",)) == [(0,), (1,)]


def test_nothing_of_others_is_written_over(log_dir: LogDirectory, tmp_path: Path) -> None:
    log_dir.topic("orders").records([("k", "0")])
    log_dir.write()
    mine = tmp_path / "orders-0" / "mine.txt"
    mine.write_text("keep")
    with pytest.raises(LogDirError, match=r"orders-0/mine\.txt is there already"):
        log_dir.write()
    assert mine.read_text() == "keep"
    (tmp_path / "file").touch()
    with pytest.raises(LogDirError, match="is there already"):
        LogDirectory(tmp_path / "file").write()


def test_nothing_is_written_into_a_brokers_directory(tmp_path: Path) -> None:
    broker = LogDirectory(tmp_path / "broker")
    broker.topic("orders")
    inside = LogDirectory(Path(broker.write(), "inside"))
    inside.topic("orders")
    with pytest.raises(LogDirError, match="is a broker's log directory"):
        inside.write()


def wrong_things(log_dir: LogDirectory) -> list[tuple[type[KafkaLogError], str, object]]:
    topic = log_dir.topic("t", partitions=2)
    topic.records([("k", "v")], partition=0)
    return [
        (OptionError, "name", lambda: log_dir.topic("t")),
        (OptionError, "name", lambda: log_dir.topic("__consumer_offsets")),
        (RowError, "a/b", lambda: log_dir.topic("a/b")),
        (OptionError, "compression", lambda: log_dir.topic("u", compression="ZIP")),
        (OptionError, "partitions", lambda: log_dir.topic("u", partitions=0)),
        (OptionError, "0 to 1 of t", lambda: topic.records([("k", "v")], partition=2)),
        (OptionError, "before_offset", lambda: topic.delete_records(2)),
        (OptionError, "offset", lambda: topic.flip_byte(1)),
        (OptionError, "size", lambda: topic.cut_tail(100_000)),
        (RowError, "'kv': a record is", lambda: topic.records(["kv"])),  # type: ignore[list-item]
        (RowError, "5: keys, values", lambda: topic.records([("k", 5)])),  # type: ignore[list-item]
    ]


def test_what_cannot_be_is_refused_at_once(log_dir: LogDirectory) -> None:
    for kind, words, action in wrong_things(log_dir):
        with pytest.raises(kind, match=words):
            action()  # type: ignore[operator]


def test_it_needs_neither_spark_nor_what_reading_needs() -> None:
    program = "import sys, kafkalog.testing; print(sorted({n.split('.')[0] for n in sys.modules}))"
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    loaded = {name.strip(" '") for name in said.strip("[]\n").split(",")}
    assert not loaded & {"pyspark", "pyarrow", "numpy", "numba", "pandas"}
