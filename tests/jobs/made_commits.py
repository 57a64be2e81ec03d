"""A log directory with a topic and with groups that commit, of which all is known beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from kafkalog.format.batch_header import CREATE_TIME
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from kafkalog.messages.record_writer import write_record_key, write_record_value
from kafkalog.storage.names import CONSUMER_OFFSETS
from tests.spark.kafka_logs import write_log

_COMMIT_TYPE, _COMMIT_VERSION = 1, 3
_RECORDS_PER_BATCH = 50


class MadeCommit(NamedTuple):
    """A commit for partition 0 of a topic; a tombstone without an offset."""

    group_id: str
    topic: str
    time_ms: int
    committed_offset: int | None


def write_topic(log_dir: Path, topic: str, times_ms: Sequence[int]) -> None:
    """Partition 0 of a topic, with a record for each time."""
    records = [
        Record(offset, time_ms, CREATE_TIME, None, b"value")
        for offset, time_ms in enumerate(times_ms)
    ]
    batches = [
        write_batch(records[start : start + _RECORDS_PER_BATCH])
        for start in range(0, len(records), _RECORDS_PER_BATCH)
    ]
    write_log(log_dir, f"{topic}-0", {0: batches})


def write_commits(log_dir: Path, commits: Iterable[MadeCommit]) -> None:
    """Partition 0 of `__consumer_offsets`, a batch for each commit, in the order of their times."""
    ordered = sorted(commits, key=lambda commit: commit.time_ms)
    batches = [write_batch([_record(*place)]) for place in enumerate(ordered)]
    write_log(log_dir, f"{CONSUMER_OFFSETS}-0", {0: batches})


def _record(record_offset: int, commit: MadeCommit) -> Record:
    key = {"group": commit.group_id, "topic": commit.topic, "partition": 0}
    value = None
    if commit.committed_offset is not None:
        fields = {
            "offset": commit.committed_offset,
            "leaderEpoch": -1,
            "metadata": "",
            "commitTimestamp": commit.time_ms,
        }
        value = write_record_value(CONSUMER_OFFSETS, _COMMIT_TYPE, _COMMIT_VERSION, fields)
    written_key = write_record_key(CONSUMER_OFFSETS, _COMMIT_TYPE, key)
    return Record(record_offset, commit.time_ms, CREATE_TIME, written_key, value)
