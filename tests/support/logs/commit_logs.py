"""A log directory with a topic and with groups that commit, of which all is known beforehand."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from kafkalog.format.batch_header import CREATE_TIME
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from kafkalog.messages.commit_records import COMMIT_FORMS, GroupCommit, commit_record
from kafkalog.storage.names import CONSUMER_OFFSETS
from tests.support.spark.kafka_logs import write_log

_RECORDS_PER_BATCH = 50


class SampleCommit(NamedTuple):
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


def write_commits(log_dir: Path, commits: Iterable[SampleCommit]) -> None:
    """Partition 0 of `__consumer_offsets`, a batch for each commit, in the order of their times."""
    ordered = sorted(commits, key=lambda commit: commit.time_ms)
    records = (
        commit_record(
            GroupCommit(each.group_id, each.topic, 0, each.committed_offset, each.time_ms),
            COMMIT_FORMS["2.1"],
            record_offset,
            each.time_ms,
        )
        for record_offset, each in enumerate(ordered)
    )
    batches = [write_batch([record]) for record in records]
    write_log(log_dir, f"{CONSUMER_OFFSETS}-0", {0: batches})
