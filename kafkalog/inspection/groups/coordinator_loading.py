"""Does a coordinator load its partition of an internal topic, and if not, which record stops it?

Rules: docs/format.md F1000 to F1008.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import booleans, fixed_width, integers
from kafkalog.columns.batches.fault_details import FaultyRange
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.records.record_metadata import IS_CONTROL
from kafkalog.columns.records.segment_reader import SegmentRecords
from kafkalog.coordination.groups.group_loading import GroupLoad, LoadError, group_of
from kafkalog.coordination.groups.state_loading import ShareLoad, TransactionLoad
from kafkalog.coordination.metadata.record_versions import read_versions
from kafkalog.coordination.metadata.releases import is_at_least
from kafkalog.format.faults import Fault, Severity
from kafkalog.inspection.groups import commit_kernels as kinds
from kafkalog.inspection.groups.commit_columns import Commits
from kafkalog.inspection.groups.offset_commits import COMMIT_RECORD_COLUMNS
from kafkalog.messages.internal_records import (
    TOO_LARGE,
    UNKNOWN_TYPE,
    InternalRecord,
    read_internal_record,
)
from kafkalog.storage.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.renamed_files import opened_segment

COORDINATED = (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE)
# The most records passed over that are kept one by one.
MOST_SKIPPED = 100
# Damage at which the iteration of a coordinator over batches and their records throws. It does not
# look at the checksum of a batch.
_STOPPING = (
    *(Fault.ZEROS, Fault.GARBAGE, Fault.LENGTH, Fault.MAGIC, Fault.CODEC, Fault.COMPRESSION),
    *(Fault.RECORD_COUNT, Fault.RECORDS, Fault.INNER_CHECKSUM),
)
# From this release on a transaction coordinator passes over values of unknown versions.
_PASSES_VALUES = "4.3"


class Consequence(Enum):
    """What a broker does that cannot load a partition: none of its groups has a coordinator; it
    answers for them as if there were none; or it knows what was before the record that stops it."""

    WAIT = "wait"
    EMPTY = "empty"
    PARTIAL = "partial"


class SkippedRecord(NamedTuple):
    """A record that the coordinator passes over with a warning, and why."""

    offset: int
    reason: str


@dataclass(slots=True)
class CoordinatorLoad:
    """How a coordinator loads a partition.

    `offset`, `record_name`, `reason` and `consequence` are those of the first record that stops it,
    None without one. `waiting` counts the groups, or transactional ids, that clients cannot use
    then. `skipped` are the first records that it passes over, `skipped_records` counts them.
    `unserved` are groups that have commits, but that a tombstone for a classic group removed.
    `stop` is the first batch that a coordinator cannot read, `damage` the first other damage in the
    log: records there were not judged.
    """

    topic: str
    partition: int
    path: str
    loads: bool = True
    offset: int | None = None
    record_name: str | None = None
    reason: str | None = None
    consequence: Consequence | None = None
    waiting: int = 0
    skipped: list[SkippedRecord] = field(default_factory=list)
    skipped_records: int = 0
    unserved: list[str] = field(default_factory=list)
    damage: str | None = None
    stop: FaultyRange | None = None

    @property
    def is_finding(self) -> bool:
        """Whether the partition does not load, or groups lose their commits."""
        return not self.loads or bool(self.unserved)


@dataclass(frozen=True, slots=True)
class CoordinatorRules:
    """The coordinators of a release. `old_groups` is the group coordinator that brokers until 3.9
    have unless their settings choose the new one."""

    release: str
    old_groups: bool

    @classmethod
    def of(cls, release: str, *, has_new_groups: bool = False) -> CoordinatorRules:
        """Return those of a release; in 3.9 settings can choose the new group coordinator."""
        return cls(release, not (has_new_groups or is_at_least(release, "4.0")))


def coordinator_load(
    log: PartitionLog, rules: CoordinatorRules, end_offset: int | None = None
) -> CoordinatorLoad | None:
    """Return how the coordinator of a partition of COORDINATED loads its log; None where the
    release has no such coordinator. With `end_offset`, where the log ends once a broker has started
    on it, damage before that is read as a coordinator reads it. Raises OSError."""
    if log.topic == SHARE_GROUP_STATE and not is_at_least(rules.release, "4.0"):
        return None
    if log.topic is None or log.partition is None:
        raise ValueError(f"{log.path} is not the log of a partition")
    loading = _LOADINGS[log.topic](log.topic, rules)
    found = CoordinatorLoad(log.topic, log.partition, log.path)
    loading.run(log, found, end_offset)
    if found.stop is not None and (
        found.offset is None or found.stop.expected_offset < found.offset
    ):
        found.loads, found.offset, found.record_name = False, found.stop.expected_offset, None
        found.reason = f"its batch cannot be read: {found.stop.detail}"
    if not found.loads:
        found.consequence = _consequence(log.topic, rules)
        since = found.offset if found.consequence is Consequence.PARTIAL else None
        found.waiting = _waiting(log, end_offset, since)
    return found


def _consequence(topic: str, rules: CoordinatorRules) -> Consequence:
    if topic == TRANSACTION_STATE:
        return Consequence.PARTIAL
    is_old = topic == CONSUMER_OFFSETS and rules.old_groups
    return Consequence.EMPTY if is_old else Consequence.WAIT


class _Loading:
    """Loads a log of `__transaction_state` or `__share_group_state`: the interpreter of messages
    reads all its records."""

    def __init__(self, topic: str, rules: CoordinatorRules) -> None:
        self._topic = topic
        self._rules = rules
        self._versions = read_versions(topic, rules.release)
        self._replay = self._new_replay()

    def _new_replay(self) -> GroupLoad | TransactionLoad | ShareLoad:
        return TransactionLoad() if self._topic == TRANSACTION_STATE else ShareLoad()

    def run(self, log: PartitionLog, found: CoordinatorLoad, end_offset: int | None) -> None:
        """Load a log. Raises OSError."""
        for batch in _records(log, end_offset, found):
            self._take(batch, found)
            if found.loads is False:
                return

    def _take(self, batch: pa.RecordBatch, found: CoordinatorLoad) -> None:
        self._take_rows(batch, np.flatnonzero(~booleans(batch.column(IS_CONTROL))), found)

    def _take_rows(self, batch: pa.RecordBatch, rows: LongArray, found: CoordinatorLoad) -> None:
        for offset, record in _read_rows(self._topic, batch, rows):
            if found.loads is False:
                return
            try:
                self._read(offset, record, found)
            except LoadError as error:
                found.loads, found.offset = False, offset
                found.record_name, found.reason = record.name, str(error)

    def _read(self, offset: int, record: InternalRecord, found: CoordinatorLoad) -> None:
        """Replay a record. Raises LoadError where the coordinator stops."""
        if record.reason == TOO_LARGE:
            return
        number, release = record.record_type, self._rules.release
        if number is None:
            raise LoadError("it has no key that names its type")
        versions = self._versions.get(number)
        if versions is None or (record.name and not self._replay.knows(record.name)):
            self._skip(offset, f"Kafka {release} does not know records of type {number}", found)
            return
        if record.reason == UNKNOWN_TYPE:
            # Only early releases knew it.
            return
        version = record.value_version
        if version is not None and version not in versions:
            words = f"its value has version {version}, and Kafka {release} reads {versions}"
            if self._topic == TRANSACTION_STATE and is_at_least(release, _PASSES_VALUES):
                self._skip(offset, words, found)
                return
            raise LoadError(words)
        if record.reason is not None or record.key is None or record.name is None:
            raise LoadError(f"it cannot be read: {record.detail}")
        self._replay.replay(record.name, record.key, record.value)

    def _skip(self, offset: int, reason: str, found: CoordinatorLoad) -> None:
        found.skipped_records += 1
        if len(found.skipped) < MOST_SKIPPED:
            found.skipped.append(SkippedRecord(offset, reason))


class _GroupLoading(_Loading):
    """Loads a log of `__consumer_offsets`: a kernel reads the commits, which are nearly all."""

    def _new_replay(self) -> GroupLoad:
        self._groups = GroupLoad(self._rules.release, old_coordinator=self._rules.old_groups)
        return self._groups

    def run(self, log: PartitionLog, found: CoordinatorLoad, end_offset: int | None) -> None:
        super().run(log, found, end_offset)
        found.unserved = sorted(self._groups.removed_by_classic)

    def _take(self, batch: pa.RecordBatch, found: CoordinatorLoad) -> None:
        commits = Commits(batch)
        is_commit = commits.kinds == kinds.COMMIT_RECORD
        is_data = ~booleans(batch.column(IS_CONTROL))
        is_read = is_data & ~is_commit & (commits.kinds != kinds.TOMBSTONE)
        begin = 0
        for row in np.flatnonzero(is_read).tolist():
            self._take_commits(commits, np.flatnonzero(is_commit[begin:row]) + begin)
            self._take_rows(batch, np.array([row]), found)
            begin = row + 1
        self._take_commits(commits, np.flatnonzero(is_commit[begin:]) + begin)

    def _take_commits(self, commits: Commits, rows: LongArray) -> None:
        if len(rows):
            self._groups.commits(commits.group_ids(rows))


_LOADINGS: Mapping[str, type[_Loading]] = {
    CONSUMER_OFFSETS: _GroupLoading,
    TRANSACTION_STATE: _Loading,
    SHARE_GROUP_STATE: _Loading,
}


def _read_rows(
    topic: str, batch: pa.RecordBatch, rows: LongArray
) -> Iterator[tuple[int, InternalRecord]]:
    """Yield some records of a batch with their offsets."""
    chosen = batch.take(fixed_width(rows.astype(np.int64), pa.int64()))
    columns = (chosen.column(name).to_pylist() for name in ("offset", "key", "value"))
    for offset, key, value in zip(*columns, strict=True):
        yield offset, read_internal_record(topic, key, value)


def _records(
    log: PartitionLog, end_offset: int | None, found: CoordinatorLoad
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a log from its start on, control records too."""

    def note(damage: FaultyRange) -> None:
        if end_offset is not None and damage.fault in _STOPPING:
            found.stop = found.stop or damage
        elif found.damage is None and damage.severity is Severity.ERROR:
            found.damage = damage.detail

    for segment in log.segments:
        options = SegmentOptions.of(segment, first_offset=log.log_start)
        if end_offset is not None:
            # It takes the offsets of batches as they are, too (F1408).
            options = replace(options, end_offset=end_offset, check_crcs=False)
            options = replace(options, base_offset=None, next_base_offset=None)
        with opened_segment(segment) as file:
            records = SegmentRecords(
                *(FileWindow(file), options, COMMIT_RECORD_COLUMNS, {}, note),
                with_control_records=True,
            )
            yield from records.rows()


def _waiting(log: PartitionLog, end_offset: int | None, since: int | None) -> int:
    """Return how many groups or transactional ids a partition has: those that commits or records
    are about that no tombstone removed, of records from `since` on, if given."""
    live: dict[str, set[bytes]] = {}
    for batch in _records(log, end_offset, CoordinatorLoad("", 0, "")):
        offsets = integers(batch.column("offset"))
        is_counted = ~booleans(batch.column(IS_CONTROL))
        if since is not None:
            is_counted &= offsets >= since
        rows = np.flatnonzero(is_counted)
        keys = batch.column("key").take(fixed_width(rows, pa.int64())).to_pylist()
        for key, (_, record) in zip(keys, _read_rows(log.topic or "", batch, rows), strict=True):
            name = _named(record)
            if name is None:
                continue
            if record.is_tombstone and since is None:
                live.get(name, set()).discard(key)
            else:
                live.setdefault(name, set()).add(key)
    return sum(map(bool, live.values()))


def _named(record: InternalRecord) -> str | None:
    """Return the group or transactional id that a record is about."""
    key = record.key or {}
    name: str | None = key.get("transactionalId") or group_of(key)
    return name
