"""What is handed out of logs: several replicas, damage, transactions, a past time, limits."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalog.errors import OffsetOutOfRangeError
from kafkalog.format.batch_header import read_header
from kafkalog.format.record_batch import read_batch
from kafkalog.server.groups.stored_groups import stored_groups
from kafkalog.server.logs import batch_runs
from kafkalog.server.logs.served_cluster import ServedCluster
from kafkalog.server.logs.served_log import ServedLog
from kafkalog.storage.reading.offset_ranges import LARGEST_TIME_MS
from kafkalog.testing import LogDirectory, ProducerRecord
from kafkalog.testing.topics import Topic

SECOND = 1000


def log_of(
    *paths: str, as_of_ms: int | None = None, now_ms: int = LARGEST_TIME_MS
) -> tuple[ServedCluster, ServedLog]:
    cluster = ServedCluster(paths, as_of_ms=as_of_ms, now_ms=now_ms)
    found = cluster.partition("orders", 0)
    assert found is not None
    return cluster, found


def all_values(log: ServedLog, *, read_committed: bool = False, size: int = 200) -> list[str]:
    """The values that a client gets, a few batches at a time."""
    values: list[str] = []
    offset = log.start_offset
    while True:
        fetched = log.fetch(offset, size, read_committed=read_committed)
        data = fetched.data.read()
        if not data:
            return values
        aborted = sorted(fetched.aborted, key=lambda each: each[1])
        active: set[int] = set()
        position = 0
        while position < len(data):
            header = read_header(data, position)
            active |= {producer for producer, first in aborted if first <= header.last_offset}
            aborted = [each for each in aborted if each[1] > header.last_offset]
            if header.is_control:
                active.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in active):
                values += [
                    (record.value or b"").decode()
                    for record in read_batch(data[position : position + header.size], 0)
                    if record.offset >= offset
                ]
            position += header.size
            next_offset = header.last_offset + 1
        offset = next_offset


def replica(path: Path, node_id: int, change: Callable[[Topic], None]) -> str:
    """A broker's directory with records 0 to 9, a batch each, changed in some way."""
    directory = LogDirectory(path, node_id=node_id)
    topic = directory.topic("orders")
    for number in range(10):
        topic.records([(None, str(number))])
    change(topic)
    return directory.write()


def test_what_one_replica_has_lost_comes_from_another(tmp_path: Path) -> None:
    # F174: damage of each is sound in the other.
    one = replica(tmp_path / "1", 1, lambda topic: topic.flip_byte(3))
    two = replica(tmp_path / "2", 2, lambda topic: topic.flip_byte(7))
    cluster, log = log_of(one, two)
    assert all_values(log) == [str(number) for number in range(10)]
    assert not cluster.gaps


def test_what_all_replicas_have_lost_is_a_gap(tmp_path: Path) -> None:
    paths = [
        replica(tmp_path / str(number), number, lambda topic: topic.flip_byte(3))
        for number in (1, 2)
    ]
    cluster, log = log_of(*paths)
    assert all_values(log) == [str(number) for number in range(10) if number != 3]
    (gap,) = cluster.gaps.values()
    assert "from offset 3: checksum: " in gap
    # A client that asks for the damaged offset gets what comes next.
    assert read_header(log.fetch(3, 1).data.read(), 0).base_offset == 4


def test_a_fetch_is_within_the_log_and_has_whole_batches(tmp_path: Path) -> None:
    _, log = log_of(replica(tmp_path / "1", 1, lambda topic: topic.delete_records(4)))
    assert (log.start_offset, log.end_offset) == (4, 10)
    assert len(log.fetch(10, 1000).data) == 0
    one = len(log.fetch(4, 1).data)
    assert read_header(log.fetch(4, 1).data.read(), 0).size == one
    assert len(log.fetch(4, 2 * one + 1).data) == 2 * one
    for offset in (3, 11):
        with pytest.raises(OffsetOutOfRangeError):
            log.fetch(offset, 1000)


def test_readers_of_committed_records_get_what_was_committed(tmp_path: Path) -> None:
    # F210 to F214
    directory = LogDirectory(tmp_path / "data")
    topic = directory.topic("orders")
    commits, aborts, hangs = (directory.transactional_producer(name) for name in "cah")
    for number in range(3):
        commits.records(topic, [(None, f"committed {number}")])
        aborts.records(topic, [(None, f"aborted {number}")])
        topic.records([(None, f"plain {number}")])
        commits.commit()
        aborts.abort()
    aborts.records(topic, [(None, "committed at last")])
    aborts.commit()
    open_since = topic.log(0).next_offset
    hangs.records(topic, [(None, "never ended")])
    topic.records([(None, "after it")])
    _, log = log_of(directory.write())
    assert log.stable_offset == open_since
    expected = [
        value for number in range(3) for value in (f"committed {number}", f"plain {number}")
    ]
    for size in (1, 200, 100_000):
        found = all_values(log, read_committed=True, size=size)
        assert found == [*expected, "committed at last"], size
    assert all_values(log)[-2:] == ["never ended", "after it"]


def test_a_marker_that_is_lost_aborts_nothing_that_comes_later(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path / "data")
    topic = directory.topic("orders")
    producer = directory.transactional_producer("p")
    producer.records(topic, [(None, "aborted")])
    marker = topic.log(0).next_offset
    producer.abort()
    producer.records(topic, [(None, "committed")])
    producer.commit()
    topic.flip_byte(marker)
    _, log = log_of(directory.write())
    # The index of aborted transactions tells; a client must not take what follows for aborted too.
    assert all_values(log, read_committed=True, size=100_000) == ["committed"]


def test_the_state_at_a_past_time(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path / "data")
    topic = directory.topic("orders")
    producer = directory.transactional_producer("p")
    topic.records([(None, "first")])
    directory.commit_offsets("group", {("orders", 0): 1})
    producer.records(topic, [(None, "in doubt")])
    then_ms = directory.now_ms
    directory.now_ms += 10 * SECOND
    producer.commit()
    topic.records([(None, "later")])
    directory.commit_offsets("group", {("orders", 0): 4})
    path = directory.write()

    cluster, log = log_of(path, as_of_ms=then_ms)
    assert all_values(log) == ["first", "in doubt"]
    assert (log.end_offset, log.stable_offset) == (2, 1)
    assert all_values(log, read_committed=True) == ["first"]
    groups = stored_groups(cluster.paths, cluster.logs, cluster.as_of_ms)
    assert groups.commits["group"]["orders", 0].offset == 1

    cluster, log = log_of(path)
    assert (log.end_offset, log.stable_offset) == (4, 4)
    groups = stored_groups(cluster.paths, cluster.logs, None)
    assert groups.commits["group"]["orders", 0].offset == 4


def test_a_record_of_the_future_is_no_end_at_a_past_time(tmp_path: Path) -> None:
    # F930
    directory = LogDirectory(tmp_path / "data")
    topic = directory.topic("orders")
    began_ms = directory.now_ms
    topic.records([(None, "first")])
    topic.records([ProducerRecord(None, "of 2099", timestamp_ms=4_070_908_800_000)])
    for number in range(3):
        topic.records([(None, str(number))])
    path = directory.write()
    # The records after it are of 1, 2 and 3 seconds later.
    _, log = log_of(path, as_of_ms=began_ms + 2 * SECOND, now_ms=began_ms + 60 * SECOND)
    assert all_values(log) == ["first", "of 2099", "0", "1"]


def test_the_first_record_at_a_time(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path / "data")
    topic = directory.topic("orders", compression="zstd")
    began_ms = directory.now_ms
    topic.records([(None, str(number)) for number in range(5)])
    _, log = log_of(directory.write())
    found = log.offset_for_time(began_ms + 2 * SECOND)
    assert found is not None
    assert (found.offset, found.timestamp_ms) == (2, began_ms + 2 * SECOND)
    assert log.offset_for_time(began_ms + 60 * SECOND) is None


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_segment_that_is_closed_meanwhile_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_damaged: bool
) -> None:
    # As if it were large, and others were read in between.
    monkeypatch.setattr(batch_runs, "SMALL_BYTES", 0)
    directory = LogDirectory(tmp_path / "data")
    topic = directory.topic("orders")
    for number in range(3000):
        topic.records([(None, f"{number} " + "x" * 5000)])
    if is_damaged:
        topic.flip_byte(1500)
    cluster, log = log_of(directory.write())
    offset, values = 0, []
    while data := log.fetch(offset, 300_000).data.read():
        position = 0
        while position < len(data):
            header = read_header(data, position)
            records = read_batch(data[position : position + header.size], 0)
            values += [int((record.value or b"").split()[0]) for record in records]
            position += header.size
        offset = values[-1] + 1
        cluster.close_files()
    assert values == [number for number in range(3000) if not (is_damaged and number == 1500)]
    assert len(cluster.gaps) == is_damaged
