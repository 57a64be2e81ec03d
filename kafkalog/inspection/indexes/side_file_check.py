"""The small files beside a partition's segments: producer snapshots, leader epochs, topic id,
and the state of the quorum beside the log of the cluster's metadata.

Rules: docs/format.md F105 to F107, F109, F124, F135 and
F921.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkalog.errors import CorruptDataError
from kafkalog.format.faults import Severity
from kafkalog.format.side_files.leader_epochs import read_leader_epochs
from kafkalog.format.side_files.partition_metadata import read_topic_id
from kafkalog.format.side_files.producer_snapshot import producer_entries
from kafkalog.format.side_files.quorum_state import QUORUM_STATE, read_quorum_state
from kafkalog.inspection.indexes.index_findings import NOT_RISING, OFFSET, IndexFinding
from kafkalog.storage.names import snapshot_offset
from kafkalog.storage.partition_log import LEADER_EPOCHS, PARTITION_METADATA


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
    """Yield what is wrong with the leader epochs of a partition; a file of no byte is not written
    yet."""
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


def topic_id_findings(text: str) -> Iterator[IndexFinding]:
    """Yield what is wrong with the file that has the topic's id."""
    try:
        read_topic_id(text)
    except CorruptDataError as error:
        yield IndexFinding(PARTITION_METADATA, error.fault, Severity.ERROR, error.detail)


def _unreadable(name: str, error: CorruptDataError, consequence: str) -> IndexFinding:
    return IndexFinding(name, error.fault, Severity.ERROR, f"{error.detail}; {consequence}")
