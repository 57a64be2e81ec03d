"""The small files beside a partition's segments: producer snapshots, leader epochs, topic id,
and the state of the quorum beside the log of the cluster's metadata.

Rules: docs/format.md F105 to F107, F109, F124, F135, F921 and F929.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from kafkalog.errors import CorruptDataError
from kafkalog.format.faults import Severity
from kafkalog.format.side_files.leader_epochs import (
    CarriedEpoch,
    EpochStart,
    epochs_text,
    first_contradiction,
    read_leader_epochs,
    rising,
    with_epoch,
)
from kafkalog.format.side_files.partition_metadata import read_topic_id
from kafkalog.format.side_files.producer_snapshot import producer_entries
from kafkalog.format.side_files.quorum_state import QUORUM_STATE, read_quorum_state
from kafkalog.inspection.indexes.index_findings import EPOCHS, NOT_RISING, OFFSET, IndexFinding
from kafkalog.storage.names import snapshot_offset
from kafkalog.storage.partition_log import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    PartitionLog,
    segment_base_offsets,
)


def snapshot_findings(name: str, data: bytes) -> Iterator[IndexFinding]:
    """Yield what is wrong with a producer snapshot: it cannot be read, or it speaks of offsets that
    it is to be named after."""
    offset = snapshot_offset(name)
    try:
        for number, entry in enumerate(producer_entries(data)):
            latest = max(entry.last_offset, entry.transaction_first_offset)
            if offset is not None and latest >= offset:
                detail = f"producer {entry.producer_id} with offset {latest}, not below {offset}"
                yield IndexFinding(name, OFFSET, Severity.ERROR, detail, number, 1)
                return
    except CorruptDataError as error:
        yield _unreadable(name, error, "a broker drops it and reads the log instead")


def leader_epoch_findings(text: str) -> Iterator[IndexFinding]:
    """Yield what is wrong with the leader epochs of a partition by themselves; a file of no byte is
    not written yet."""
    try:
        entries = read_leader_epochs(text) if text else []
    except CorruptDataError as error:
        yield _unreadable(LEADER_EPOCHS, error, "a broker does not start with it")
        return
    for number in range(1, len(entries)):
        before, entry = entries[number - 1], entries[number]
        if entry.epoch <= before.epoch or entry.start_offset <= before.start_offset:
            detail = (
                f"epoch {entry.epoch} from offset {entry.start_offset} after epoch {before.epoch} "
                f"from {before.start_offset}"
            )
            yield IndexFinding(LEADER_EPOCHS, NOT_RISING, Severity.WARNING, detail, number, 1)
            return


def quorum_state_findings(text: str) -> Iterator[IndexFinding]:
    """Yield what is wrong with the state of a quorum beside the log of the cluster's metadata."""
    try:
        read_quorum_state(text)
    except CorruptDataError as error:
        yield _unreadable(QUORUM_STATE, error, "a broker does not start with it")


def carried_epoch_findings(
    log: PartitionLog, text: str | None, carried: Sequence[CarriedEpoch]
) -> Iterator[IndexFinding]:
    """Yield where a broker that starts does not have the leader epochs that batches carry: by the
    file, and where it recovers the log by what it finds then. A file that cannot be read or
    contradicts itself is not compared. Rule: F929."""
    try:
        entries = read_leader_epochs(text) if text else []
    except CorruptDataError:
        return
    if rising(entries) != entries:
        return
    known, start = entries, log.log_start
    if log.is_recovered_at_start:
        # The checkpoint of the log start can be older than the file.
        start = max(start, entries[0].start_offset if entries else 0)
        known = _recovered(log, entries, carried)
    if first_contradiction(known, carried, start) is not None:
        has = "is not there" if text is None else f"has {epochs_text(entries)}"
        detail = (
            f"{has}, the batches have {epochs_text(carried)}: a broker truncates replicas by this "
            "file; while it is stopped, write the epochs of the batches into it"
        )
        yield IndexFinding(LEADER_EPOCHS, EPOCHS, Severity.ERROR, detail)


def _recovered(
    log: PartitionLog, entries: Sequence[EpochStart], carried: Sequence[CarriedEpoch]
) -> list[EpochStart]:
    """Return the epochs once a broker has recovered what is not flushed (F113): of batches there
    it takes over each epoch that is later than all."""
    bases = segment_base_offsets(log.segments)
    number = bisect_right(bases, log.recovery_point)
    first = bases[number - 1] if number else 0
    known = list(entries)
    for each in carried:
        if each.last_offset >= first and (not known or each.epoch > known[-1].epoch):
            known = with_epoch(known, EpochStart(each.epoch, max(each.start_offset, first)))
    return known


def topic_id_findings(text: str) -> Iterator[IndexFinding]:
    """Yield what is wrong with the file that has the topic's id."""
    try:
        read_topic_id(text)
    except CorruptDataError as error:
        yield IndexFinding(PARTITION_METADATA, error.fault, Severity.ERROR, error.detail)


def _unreadable(name: str, error: CorruptDataError, consequence: str) -> IndexFinding:
    return IndexFinding(name, error.fault, Severity.ERROR, f"{error.detail}; {consequence}")
