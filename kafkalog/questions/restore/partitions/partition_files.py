"""A partition's directory as it is restored: bytes below the cut as they were, new indexes for the
last segments, and an end that uses no offset twice. Rules: docs/restore.md F1033, F1044 to F1046,
F1049 and F1051.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from uuid import uuid4

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.appended_indexes import AppendedIndexes
from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import LEADER_EPOCH_POSITION, read_header
from kafkalog.format.offsets import MAX_RELATIVE_OFFSET
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.side_files.indexes import (
    OFFSET_ENTRY,
    TIME_ENTRY,
    AbortedTransaction,
    TimeEntry,
    read_transaction_index,
    write_time_index,
    write_transaction_index,
)
from kafkalog.format.side_files.leader_epochs import EpochStart, write_leader_epochs
from kafkalog.format.side_files.partition_metadata import write_topic_id
from kafkalog.format.side_files.producer_snapshot import (
    read_producer_snapshot,
    write_producer_snapshot,
)
from kafkalog.format.transaction_marker import ABORT, COMMIT, TransactionMarker, write_marker
from kafkalog.inspection.erasure.suppression import Suppression
from kafkalog.questions.restore.partitions.copied_bytes import (
    PieceCopies,
    Suppressed,
    is_stored_as_read,
)
from kafkalog.questions.restore.partitions.log_walk import kept_rows
from kafkalog.questions.restore.partitions.partition_plans import PartitionPlan, SegmentPlan
from kafkalog.questions.restore.partitions.read_back import ReadBack, read_back
from kafkalog.storage.files.files import read_bytes
from kafkalog.storage.partition_log import LEADER_EPOCHS, PARTITION_METADATA, SegmentFile
from kafkalog.storage.recovery.framing import LATEST_FORMAT, Frame
from kafkalog.storage.recovery.producer_state import ProducerState
from kafkalog.storage.recovery.segment_recovery import add_to_producers
from kafkalog.storage.writing.log_writer import BatchInMemory

# As large as brokers make a segment.
_PART_BYTES = 1024**3
# How a directory ends that one run of a task writes into.
ATTEMPT = ".attempt"


@dataclass(frozen=True, slots=True)
class Ending:
    """How an open transaction ends in a partition: the marker that is written."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool


@dataclass(frozen=True, slots=True)
class WriteTask:
    """Segments of a partition to write into its directory below the log directory `target`: those
    that `plan` has. The next ones begin at `next_base_offset`; with None the log ends with these,
    and goes on at `next_offset` at the earliest. Records of `suppression` are left out.
    `highest_epoch` is that of the cluster that gets the partition, which has other producers; None
    for a new one."""

    plan: PartitionPlan
    endings: Sequence[Ending]
    target: str
    as_of_ms: int
    next_base_offset: int | None = None
    links: bool = False
    next_offset: int = 0
    suppression: Suppression | None = None
    highest_epoch: int | None = None

    @property
    def is_last(self) -> bool:
        """Whether the log ends with these segments."""
        return self.next_base_offset is None

    def parts(self) -> Iterator[WriteTask]:
        """Yield the task in parts of about a GiB, which can be written at the same time."""
        part: list[SegmentPlan] = []
        size = 0
        for segment in self.plan.segments:
            if part and size + segment.size > _PART_BYTES:
                plan, end = replace(self.plan, segments=tuple(part)), segment.base_offset
                yield replace(self, plan=plan, next_base_offset=end)
                part, size = [], 0
            part.append(segment)
            size += segment.size
        is_all = len(part) == len(self.plan.segments)
        yield self if is_all else replace(self, plan=replace(self.plan, segments=tuple(part)))


@dataclass(frozen=True, slots=True)
class WrittenPartition:
    """What the checkpoints and the manifest say of a partition. A broker verifies the log from
    `recovery_point` on when it starts. `is_whole` is False for a part of its segments, `bytes` are
    those that were copied, and `files` its log files as they were read back, by name."""

    topic: str
    partition: int
    start: int
    end: int
    recovery_point: int
    cleaner: int | None
    bytes: int
    suppressed: Suppressed = field(default_factory=Suppressed)
    is_whole: bool = True
    files: Mapping[str, ReadBack] = field(default_factory=dict)


def write_partition(task: WriteTask) -> Iterator[WrittenPartition]:
    """Write segments of a partition into its directory, after the last ones also what else is in
    it, and yield what was written. Raises OSError."""
    plan = task.plan
    # A task can run twice: its files get their place when they are whole.
    directory = os.path.join(task.target, f"{plan.name}.{uuid4().hex}{ATTEMPT}")
    os.mkdir(directory)
    copies = PieceCopies(task.suppression)
    for number, segment in enumerate(plan.segments):
        is_last = task.is_last and number == len(plan.segments) - 1
        _copy_segment(directory, segment, task, copies, is_last=is_last)
        if not plan.is_united and task.highest_epoch is None:
            _copy_producers(directory, plan, segment.base_offset)
        _write_aborted(directory, segment, plan)
    size = sum(each.size for each in plan.segments)
    start = plan.segments[-1].base_offset if plan.segments else plan.start
    end = _write_end(directory, task) if task.is_last else start
    cleaned = None if plan.cleaned_to is None or plan.is_united else min(plan.cleaned_to, plan.cut)
    is_compacted = cleaned is not None
    files = dict(read_back(directory, task.next_base_offset, is_compacted=is_compacted))
    for name in os.listdir(directory):
        whole = os.path.join(task.target, plan.name, name)
        os.replace(os.path.join(directory, name), whole)
    os.rmdir(directory)
    yield WrittenPartition(
        plan.topic,
        plan.partition,
        plan.start,
        end,
        start,
        cleaned,
        size,
        copies.found,
        task.is_last,
        files,
    )


def _write_end(directory: str, task: WriteTask) -> int:
    """Write what comes after the cut, and the files beside segments; return the log end."""
    plan = task.plan
    end = _Ending(task)
    end.write(directory, has_segments=bool(plan.segments))
    epochs = plan.epochs
    if not epochs and end.next_offset > plan.start:
        epochs = (EpochStart(end.epoch, plan.start),)
    _write(directory, LEADER_EPOCHS, write_leader_epochs(epochs).encode())
    _write(directory, PARTITION_METADATA, write_topic_id(plan.topic_id).encode())
    return end.next_offset


def _copy_segment(
    directory: str, segment: SegmentPlan, task: WriteTask, copies: PieceCopies, *, is_last: bool
) -> None:
    stem = os.path.join(directory, f"{segment.base_offset:020d}")
    target = f"{stem}.log"
    # A broker appends to the last segment: a link would change the input.
    whole = segment.whole_path
    before = copies.found.records
    is_as_it_was = task.suppression is None and task.highest_epoch is None
    can_link = whole is not None and is_stored_as_read(whole) and is_as_it_was
    if task.links and can_link and whole is not None and not is_last:
        os.link(whole, target)
    else:
        copies.copy(segment.pieces, target, segment.next_offset if is_last else None)
    if task.highest_epoch is not None:
        _lower_epochs(target, segment, task.highest_epoch)
    is_changed = is_last or copies.found.records > before
    if is_changed or whole is None or not _copied_indexes(whole, segment, stem):
        _write_indexes(segment, stem)


def _lower_epochs(path: str, segment: SegmentPlan, highest: int) -> None:
    """Set leader epochs above the highest to it; no checksum covers the field. The time of the
    last change stays."""
    times = os.stat(path)
    written = SegmentFile(path, segment.base_offset, None, times.st_size, path)
    with open(path, "r+b") as file:
        for rows in kept_rows(written, segment.next_offset):
            is_higher = rows[:, column.LEADER_EPOCH] > highest
            is_higher &= rows[:, column.MAGIC] >= LATEST_FORMAT
            for position in rows[is_higher, column.POSITION].tolist():
                file.seek(position + LEADER_EPOCH_POSITION)
                file.write(highest.to_bytes(4, "big"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def _copied_indexes(whole: str, segment: SegmentPlan, stem: str) -> bool:
    """Copy the offset and time index of a whole segment; return False for ones that are missing,
    padded, or contradict the segment."""
    source = whole.removesuffix(".log")
    try:
        offsets, times = read_bytes(f"{source}.index"), read_bytes(f"{source}.timeindex")
    except (OSError, CorruptDataError):
        return False
    if not _is_sound(offsets, times, segment):
        return False
    _write_file(f"{stem}.index", offsets)
    _write_file(f"{stem}.timeindex", times)
    return True


def _is_sound(offsets: bytes, times: bytes, segment: SegmentPlan) -> bool:
    if len(offsets) % OFFSET_ENTRY.size or len(times) % TIME_ENTRY.size or not times:
        return False
    entries = np.frombuffer(offsets, dtype=">i4").reshape(-1, 2)
    if len(entries):
        rises = (np.diff(entries, axis=0) > 0).all()
        last_offset, last_position = entries[-1].tolist()
        reach = segment.next_offset - segment.base_offset
        if not rises or last_offset >= reach or not 0 < last_position < segment.size:
            return False
    stamps = np.frombuffer(times, dtype=np.dtype([("ms", ">i8"), ("offset", ">i4")]))
    rising = (np.diff(stamps["ms"]) > 0).all() and (np.diff(stamps["offset"]) >= 0).all()
    return bool(rising and int(stamps["ms"][-1]) == segment.max_ms)


def _write_indexes(segment: SegmentPlan, stem: str) -> None:
    """Write the offset and the time index again, as a broker that appends the batches does."""
    position, indexes = 0, AppendedIndexes(segment.base_offset)
    path = f"{stem}.log"
    written = SegmentFile(path, segment.base_offset, None, os.path.getsize(path), stem)
    for rows in kept_rows(written, segment.next_offset):
        ends = position + np.cumsum(rows[:, column.SIZE])
        indexes.add(rows, ends - rows[:, column.SIZE])
        position = int(ends[-1])
    _write_file(f"{stem}.index", indexes.index)
    _write_file(f"{stem}.timeindex", indexes.timeindex)


def _write_aborted(directory: str, segment: SegmentPlan, plan: PartitionPlan) -> None:
    """Write the index of aborted transactions of a segment: from the batches where producers were
    followed, else that of the copy."""
    low, high = segment.base_offset, segment.next_offset
    entries: Sequence[AbortedTransaction] = plan.aborted
    if low < plan.producers_from and segment.pieces:
        entries = _aborted_of_copy(segment.pieces[0].path)
    entries = [each for each in entries if low <= each.last_offset < high]
    if entries:
        path = os.path.join(directory, f"{low:020d}.txnindex")
        _write_file(path, write_transaction_index(entries))


def _aborted_of_copy(path: str) -> list[AbortedTransaction]:
    try:
        return read_transaction_index(read_bytes(path.removesuffix(".log") + ".txnindex"))
    except (FileNotFoundError, CorruptDataError):
        return []


def _copy_producers(directory: str, plan: PartitionPlan, offset: int) -> None:
    """Copy a sound producer snapshot of the copy."""
    name = f"{offset:020d}.snapshot"
    with suppress(FileNotFoundError, CorruptDataError):
        data = read_bytes(os.path.join(plan.directory, name))
        read_producer_snapshot(data)
        _write_file(os.path.join(directory, name), data)


class _Ending:
    """What comes after the cut: a batch without records over the offsets that are not used again,
    and the markers that end transactions."""

    def __init__(self, task: WriteTask) -> None:
        self._task = task
        plan = task.plan
        self.epoch = plan.epochs[-1].epoch if plan.epochs else max(plan.max_epoch, 0)
        # Offsets that the cleaner has removed can be between the last batch and the cut.
        self.base_offset = plan.segments[-1].next_offset if plan.segments else plan.cut
        self.next_offset = self.base_offset if self._goes_on else plan.cut

    @property
    def _goes_on(self) -> bool:
        return self._task.next_offset > self.base_offset

    def write(self, directory: str, *, has_segments: bool) -> None:
        """Write the last segment, if one is needed, and the producers at the end."""
        plan = self._task.plan
        batches: list[bytes] = []
        if self._goes_on:
            batches += self._without_records(self._task.next_offset)
        producers = ProducerState(plan.producers)
        aborted = []
        for each in self._task.endings:
            kind = COMMIT if each.is_commit else ABORT
            marker = TransactionMarker(kind, each.coordinator_epoch, self._task.as_of_ms)
            fields = BatchFields(
                leader_epoch=self.epoch,
                producer_id=each.producer_id,
                producer_epoch=each.producer_epoch,
            )
            batch = write_marker(marker, self.next_offset, fields)
            batches.append(batch)
            header = read_header(batch, 0)
            found = add_to_producers(BatchInMemory(batch), Frame(0, header), producers)
            aborted += [] if found is None else [found]
            self.next_offset += 1
        if batches or not has_segments:
            self._write_segment(directory, batches, aborted)
        if self.next_offset > plan.start:
            # To a producer of another cluster the same id is given again (F1313).
            is_new = self._task.highest_epoch is None
            known = producers.producers.values() if is_new else ()
            snapshot = write_producer_snapshot(known)
            _write(directory, f"{self.next_offset:020d}.snapshot", snapshot)

    def _write_segment(
        self, directory: str, batches: Sequence[bytes], aborted: Sequence[AbortedTransaction]
    ) -> None:
        base = read_header(batches[0], 0).base_offset if batches else self.next_offset
        stem = os.path.join(directory, f"{base:020d}")
        _write_file(f"{stem}.log", b"".join(batches))
        _write_file(f"{stem}.index", b"")
        latest = TimeEntry(-1, base)
        for batch in batches:
            header = read_header(batch, 0)
            if header.max_timestamp_ms > latest.timestamp_ms:
                latest = TimeEntry(header.max_timestamp_ms, header.last_offset)
        times = [latest] if latest.timestamp_ms >= 0 else []
        _write_file(f"{stem}.timeindex", write_time_index(times, base))
        if aborted:
            _write_file(f"{stem}.txnindex", write_transaction_index(aborted))

    def _without_records(self, end: int) -> Iterator[bytes]:
        """Yield batches without records up to an offset: consumers go over them to what comes
        next, as over those that the cleaner leaves."""
        plan = self._task.plan
        # A segment has no offset further from its base.
        end = min(end, self.base_offset + MAX_RELATIVE_OFFSET - len(self._task.endings))
        if self.next_offset < end:
            fields = BatchFields(
                leader_epoch=self.epoch,
                base_offset=self.next_offset,
                last_offset=end - 1,
                max_timestamp_ms=plan.last_ms if plan.last_ms >= 0 else self._task.as_of_ms,
            )
            self.next_offset = end
            yield write_batch([], fields)


def _write(directory: str, name: str, data: bytes) -> None:
    _write_file(os.path.join(directory, name), data)


def _write_file(path: str, data: bytes) -> None:
    """Write a small file of a directory that no reader sees yet. Raises OSError with its path."""
    try:
        with open(path, "xb") as file:
            file.write(data)
    except OSError as error:
        error.filename = error.filename or path
        raise
