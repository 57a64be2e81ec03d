"""A log directory with a topic and with groups that commit, of which all is known beforehand."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from kafkalog.format.batch_header import CREATE_TIME
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from kafkalog.messages.commit_records import COMMIT_FORMS, GroupCommit, commit_record
from kafkalog.messages.record_writer import write_record_value
from kafkalog.storage.names import CONSUMER_OFFSETS
from tests.support.spark.kafka_logs import write_log

_RECORDS_PER_BATCH = 50


class SampleCommit(NamedTuple):
    """A commit for partition 0 of a topic; a tombstone without an offset. `leader_epoch` is that of
    the last record consumed."""

    group_id: str
    topic: str
    time_ms: int
    committed_offset: int | None
    leader_epoch: int | None = None


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
    records = (_record(each, record_offset) for record_offset, each in enumerate(ordered))
    batches = [write_batch([record]) for record in records]
    write_log(log_dir, f"{CONSUMER_OFFSETS}-0", {0: batches})


def _record(commit: SampleCommit, record_offset: int) -> Record:
    form = COMMIT_FORMS["2.1"]
    record = commit_record(
        GroupCommit(commit.group_id, commit.topic, 0, commit.committed_offset, commit.time_ms),
        form,
        record_offset,
        commit.time_ms,
    )
    if commit.leader_epoch is None:
        return record
    fields = {
        "offset": commit.committed_offset,
        "leaderEpoch": commit.leader_epoch,
        "metadata": "",
        "commitTimestamp": commit.time_ms,
    }
    value = write_record_value(CONSUMER_OFFSETS, form.record_type, form.version, fields)
    return replace(record, value=value)
