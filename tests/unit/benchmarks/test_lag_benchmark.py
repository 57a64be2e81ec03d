"""The inputs of the lag benchmark: sound logs in which every group has what was requested, and of
which lag reads headers and little more."""

import json
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.inputs.lag_inputs import (
    SPAN_MS,
    START_MS,
    LagInput,
    group_name,
    offsets_partition,
    write_lag_inputs,
)
from kafkalog.inspection.lag.lag_columns import lag_accounts
from kafkalog.messages.consumer_protocol import read_assignment
from kafkalog.messages.internal_records import read_internal_record
from kafkalog.schemas import table_fields
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.log_reader import LogReader
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.planning import planned_groups
from kafkalog.views.reading.commit_reading import CommitsRead, read_commits

NOW_MS = time.time_ns() // 1_000_000

SIZE = LagInput(groups=60, partitions=4, commits=60 * 4 * 5, records=40 * 550)


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lag_inputs(tmp_path_factory.mktemp("lag"), SIZE)


def logs(log_dir: Path) -> dict[str, PartitionLog]:
    return {log.name: log for log in find_partitions([str(log_dir)])}


def commits(log_dir: Path) -> pa.Table:
    options = read_options({"paths": json.dumps([str(log_dir)]), "view": "offset_commits"})
    columns = tuple(field["name"] for field in table_fields("offset_commits"))
    reads = [read for group in planned_groups(options) for read in group]
    return pa.Table.from_batches(
        batch
        for read in reads
        if isinstance(read, CommitsRead)
        for batch in read_commits(read, options, columns)
    )


def test_all_batches_are_sound_and_end_where_the_checkpoint_says(log_dir: Path) -> None:
    for name, log in logs(log_dir).items():
        reader = LogReader(log)
        offsets = [record.offset for chunk in reader.chunks(0, 2**20) for record in chunk.records()]
        end = log.log_dir.high_watermarks[log.topic_partition or ("", 0)]
        assert offsets == list(range(end)), name


def test_groups_are_kept_where_their_hash_in_java_says() -> None:
    # "hello".hashCode() is 99162322, that of "polygenelubricants" -2147483648.
    assert offsets_partition("hello") == 99162322 % 50
    assert offsets_partition("polygenelubricants") == 0
    assert offsets_partition("") == 0


def test_each_group_commits_as_often_as_asked_where_its_coordinator_is(log_dir: Path) -> None:
    rows = commits(log_dir).to_pylist()
    assert len(rows) == SIZE.commits
    keys = Counter((row["group_id"], row["topic"], row["partition"]) for row in rows)
    assert set(keys.values()) == {SIZE.rounds}
    assert {group for group, _, _ in keys} == {group_name(number) for number in range(60)}
    assert {row["effect"] for row in rows} == {"applied"}
    assert {row["version"] for row in rows} == {3, 4}
    assert sum(row["is_transactional"] for row in rows) == 2 * 4 * SIZE.rounds
    for row in rows:
        assert row["internal_partition"] == offsets_partition(row["group_id"])
        assert START_MS <= row["commit_timestamp_ms"] < START_MS + SPAN_MS
        assert 0 <= row["committed_offset"] <= SIZE.log_end


def test_of_a_topic_headers_are_read_and_one_batch_for_a_position_and_one_at_either_end(
    log_dir: Path,
) -> None:
    # F317: eleven batches of 50 records, in the first topic two markers more.
    for topic in ("topic-01-0", "topic-00-0"):
        log = logs(log_dir)[topic]
        positions = np.array([120, 125, 130, 410])
        found = lag_accounts(log, positions, read_committed=True, now_ms=NOW_MS)
        assert found.work.headers <= 13
        assert found.work.decoded_batches <= 4
        assert found.work.decompressed_sets == 0
        assert found.next_offset.tolist() == positions.tolist()
        assert (found.readable_records + found.control_records).tolist() == found.lag.tolist()


def test_the_groups_have_their_members(log_dir: Path) -> None:
    number = offsets_partition(group_name(0))
    (chunk, *_) = LogReader(logs(log_dir)[f"{CONSUMER_OFFSETS}-{number}"]).chunks(0, 2**20)
    record = next(record for record in chunk.records() if b"group-00000" in (record.key or b""))
    group = read_internal_record(CONSUMER_OFFSETS, record.key, record.value).value or {}
    assigned = [
        read_assignment(member["assignment"])["assignedPartitions"] for member in group["members"]
    ]
    assert assigned == [[{"topic": "topic-00", "partitions": [0, 1, 2, 3]}]]
