"""Commits of consumer groups as batches of `__consumer_offsets`. Rules: docs/migration.md F480 and
F481.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

from kafkalog.format.batch_header import CREATE_TIME, NO_TIMESTAMP_TYPE, NO_VALUE
from kafkalog.format.message_set import write_message_set
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.messages.record_writer import write_record_key, write_record_value

_TOPIC = "__consumer_offsets"
# Far below what brokers allow a batch, `max.message.bytes`.
_BATCH_BYTES = 64 * 1024


class GroupCommit(NamedTuple):
    """An offset that a group commits for a partition, None for a tombstone; the time is that of
    the commit, in milliseconds."""

    group_id: str
    topic: str
    partition: int
    committed_offset: int | None
    commit_timestamp_ms: int


class CommitForm(NamedTuple):
    """How commits are written: record type, version of the value, format of the messages."""

    record_type: int
    version: int
    magic: int


# By the first release of brokers that load them; later ones do as well.
COMMIT_FORMS = {
    "0.8.2": CommitForm(0, 0, 0),
    "0.9": CommitForm(1, 1, 0),
    "0.10": CommitForm(1, 1, 1),
    "0.11": CommitForm(1, 1, 2),
    "2.1": CommitForm(1, 3, 2),
}


def form_of_magic(magic: int) -> CommitForm:
    """Return the form that every broker loads that has messages of this format."""
    return next(form for form in COMMIT_FORMS.values() if form.magic == magic)


def commit_batches(
    commits: Iterable[GroupCommit],
    form: CommitForm,
    *,
    base_offset: int,
    leader_epoch: int,
    now_ms: int,
) -> Iterator[bytes]:
    """Yield the commits as batches, from `base_offset` on, as a leader of this epoch writes them at
    this time. Raises SchemaError for names that no record can have."""
    waiting: list[Record] = []
    size = 0
    for offset, commit in zip(count(base_offset), commits):
        record = commit_record(commit, form, offset, now_ms)
        waiting.append(record)
        size += len(record.key or b"") + len(record.value or b"")
        if size >= _BATCH_BYTES or form.magic < 2:
            yield _batch(waiting, form, leader_epoch)
            waiting, size = [], 0
    if waiting:
        yield _batch(waiting, form, leader_epoch)


def commit_record(commit: GroupCommit, form: CommitForm, offset: int, now_ms: int) -> Record:
    """Return the record of a commit at an offset of the topic, written at this time. Raises
    SchemaError for names that no record can have."""
    key = {"group": commit.group_id, "topic": commit.topic, "partition": commit.partition}
    has_time = form.magic > 0
    return Record(
        offset,
        now_ms if has_time else NO_VALUE,
        CREATE_TIME if has_time else NO_TIMESTAMP_TYPE,
        write_record_key(_TOPIC, form.record_type, key),
        _value(commit, form),
    )


def _value(commit: GroupCommit, form: CommitForm) -> bytes | None:
    if commit.committed_offset is None:
        return None
    fields = {
        "offset": commit.committed_offset,
        "metadata": "",
        "commitTimestamp": commit.commit_timestamp_ms,
    }
    return write_record_value(_TOPIC, form.record_type, form.version, fields)


def _batch(records: list[Record], form: CommitForm, leader_epoch: int) -> bytes:
    if form.magic < 2:
        # Write messages without a codec, each in its own batch.
        return write_message_set(records, form.magic)
    return write_batch(records, BatchFields(leader_epoch=leader_epoch))
