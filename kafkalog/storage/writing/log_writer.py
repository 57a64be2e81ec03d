"""Writing a partition's log as a broker does: appends at its end, segments and their indexes.

Rules: docs/format.md F100, F101, F104, F149 to F151 and F158.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from kafkalog.arguments import known_arguments
from kafkalog.errors import CorruptDataError, LogDirError
from kafkalog.format.batch_header import NO_VALUE, BatchHeader, computed_crc
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import MAX_RELATIVE_OFFSET
from kafkalog.format.record_batch import framing_fault
from kafkalog.format.side_files.indexes import (
    OFFSET_ENTRY,
    TIME_ENTRY,
    AbortedTransaction,
    OffsetEntry,
    TimeEntry,
    write_offset_index,
    write_time_index,
    write_transaction_index,
)
from kafkalog.format.side_files.leader_epochs import EpochStart, with_epoch, write_leader_epochs
from kafkalog.format.side_files.producer_snapshot import write_producer_snapshot
from kafkalog.storage.files.output_files import (
    Flush,
    OutputFile,
    flush_directory,
    new_directory,
    write_file,
)
from kafkalog.storage.names import partition_name
from kafkalog.storage.partition_log import LEADER_EPOCHS
from kafkalog.storage.recovery.framing import LATEST_FORMAT, Frame
from kafkalog.storage.recovery.producer_state import ProducerState
from kafkalog.storage.recovery.segment_recovery import add_to_producers
from kafkalog.storage.writing.log_settings import LogSettings


@known_arguments
class LogWriter:
    """Appends batches to a new partition directory; a context manager that closes it.

    `now_ms` returns the time, `flush` forces what was written through a file descriptor to disk.
    The log begins at `start_offset`.
    """

    def __init__(
        self,
        directory: str,
        settings: LogSettings,
        *,
        now_ms: Callable[[], int],
        flush: Flush = os.fsync,
        start_offset: int = 0,
    ) -> None:
        name = partition_name(os.path.basename(directory))
        # One that is marked as deleted is a log's until it is whole.
        if name is None or name.mark not in (None, "delete"):
            raise LogDirError(f"{directory}: a log is written to a directory <topic>-<partition>")
        new_directory(directory)
        self._directory = directory
        self._settings = settings
        self._now_ms = now_ms
        self._flush_file = flush
        self._producers = ProducerState()
        self._epochs: list[EpochStart] = []
        self._names_are_flushed = False
        self._last_flush_ms = now_ms()
        self._is_closed = False
        self._start_offset = start_offset
        self.next_offset = self.recovery_point = start_offset
        self._segment = self._new_segment(start_offset)

    def append(self, batch: bytes) -> None:
        """Append one whole batch.

        Raises, without writing it, CorruptDataError if it is not a batch, is larger than allowed,
        or begins below the log's end, and BrokerStartError if it contradicts an open transaction.
        """
        header = self._checked(batch)
        if self._segment.is_full_for(header, self._now_ms()):
            self.roll(_segment_base(header, self.next_offset))
        if header.magic == LATEST_FORMAT:
            self._note_producer(batch, header)
            self._note_epoch(header)
        self._segment.append(batch, header)
        self.next_offset = header.last_offset + 1
        self.flush_if_due()

    @property
    def leader_epoch(self) -> int:
        """The newest epoch that was written, 0 before any."""
        return self._epochs[-1].epoch if self._epochs else 0

    @property
    def segment_size(self) -> int:
        """Bytes in the newest segment."""
        return self._segment.size

    def flush_if_due(self) -> None:
        """Flush if the limit of unflushed messages or of their age is reached; call it in time when
        waiting between appends."""
        unflushed = self.next_offset - self.recovery_point
        is_late = self._now_ms() - self._last_flush_ms >= self._settings.flush_ms
        if unflushed >= self._settings.flush_messages or (unflushed and is_late):
            self.flush()

    def flush(self) -> None:
        """Force all that was appended to disk: the recovery point comes up to the log's end."""
        self._segment.flush(self._flush_file)
        if not self._names_are_flushed:
            flush_directory(self._directory, self._flush_file)
            self._names_are_flushed = True
        self.recovery_point = self.next_offset
        self._last_flush_ms = self._now_ms()

    def close(self) -> None:
        """Leave the directory as a broker that was stopped cleanly does."""
        if self._is_closed:
            return
        self._is_closed = True
        self._end_segment(self.next_offset)
        flush_directory(self._directory, self._flush_file)

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def _checked(self, batch: bytes) -> BatchHeader:
        fault, header = framing_fault(batch, 0)
        if header is None:
            raise _refused(fault, f"{len(batch)} bytes are not a whole batch")
        if header.size != len(batch):
            raise _refused(Fault.LENGTH, f"{len(batch) - header.size} bytes after a batch")
        limit = min(self._settings.max_message_bytes, self._settings.segment_bytes)
        if header.size > limit:
            raise _refused(Fault.TOO_LARGE, f"{header.size} bytes, at most {limit} are allowed")
        if not self.next_offset <= header.base_offset <= header.last_offset:
            detail = f"offsets {header.base_offset} to {header.last_offset}, "
            raise _refused(Fault.OFFSET_ORDER, f"{detail}the log ends at {self.next_offset}")
        computed = computed_crc(batch, 0, header)
        if computed != header.crc:
            detail = f"stored {header.crc:#010x}, computed {computed:#010x}"
            raise _refused(Fault.CHECKSUM, detail)
        return header

    def roll(self, base_offset: int) -> None:
        """Go on in a new segment. The old one is flushed: only the last can lose anything."""
        self._end_segment(base_offset)
        self._segment = self._new_segment(base_offset)

    def _new_segment(self, base_offset: int) -> SegmentAppender:
        self._names_are_flushed = False
        return SegmentAppender(self._directory, base_offset, self._settings, self._now_ms())

    def _end_segment(self, end_offset: int) -> None:
        self._segment.finish()
        if end_offset > self._start_offset:
            self._write_producers(end_offset)
        self.flush()
        self._segment.close()

    def _write_producers(self, offset: int) -> None:
        """The known producers at an offset."""
        path = os.path.join(self._directory, f"{offset:020d}.snapshot")
        data = write_producer_snapshot(self._producers.producers.values())
        write_file(path, data, self._flush_file)

    def _note_producer(self, batch: bytes, header: BatchHeader) -> None:
        aborted = add_to_producers(BatchInMemory(batch), Frame(0, header), self._producers)
        if aborted is not None:
            self._segment.add_aborted(aborted)

    def _note_epoch(self, header: BatchHeader) -> None:
        latest = self._epochs[-1].epoch if self._epochs else -1
        if header.leader_epoch > latest:
            added = EpochStart(header.leader_epoch, header.base_offset)
            self._epochs = with_epoch(self._epochs, added)
            text = write_leader_epochs(self._epochs)
            path = os.path.join(self._directory, LEADER_EPOCHS)
            write_file(path, text.encode(), self._flush_file)


class BatchInMemory:
    """A batch in memory, to be read like a file."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read(self, position: int, size: int) -> bytes:
        return self._data[position : position + size]


def _segment_base(header: BatchHeader, next_offset: int) -> int:
    """Return the offset that names a segment beginning with this batch: the first offset of
    messages of formats 0 and 1 is not known without decompression, so the log's end is used if it
    is near enough."""
    if header.magic == LATEST_FORMAT:
        return max(header.base_offset, next_offset)
    return max(header.last_offset - MAX_RELATIVE_OFFSET, next_offset)


def _refused(fault: Fault, detail: str) -> CorruptDataError:
    return CorruptDataError(fault.label, f"not appended: {detail}", position=0)


class SegmentAppender:
    """Appends batches to a new segment. Index entries go to their files as they come up."""

    def __init__(
        self, directory: str, base_offset: int, settings: LogSettings, created_ms: int
    ) -> None:
        self.base_offset = base_offset
        self._stem = os.path.join(directory, f"{base_offset:020d}")
        self._settings = settings
        self._created_ms = created_ms
        self._log = OutputFile(f"{self._stem}.log")
        self._index = OutputFile(f"{self._stem}.index")
        self._time_index = OutputFile(f"{self._stem}.timeindex")
        self._transactions: OutputFile | None = None
        self._first_timestamp_ms: int | None = None
        self._latest = TimeEntry(NO_VALUE, base_offset)
        self._indexed_ms = NO_VALUE
        self._since_last_entry = 0

    @property
    def size(self) -> int:
        """Bytes in the log file."""
        return self._log.size

    def is_full_for(self, header: BatchHeader, now_ms: int) -> bool:
        """Return whether a batch belongs in another segment."""
        settings = self._settings
        relative = header.last_offset - self.base_offset
        return (
            self.size > settings.segment_bytes - header.size
            or (self.size > 0 and self._waited_ms(header, now_ms) > settings.segment_ms)
            or self._index.size // OFFSET_ENTRY.size >= settings.index_entries
            or self._time_index.size // TIME_ENTRY.size >= settings.time_index_entries - 1
            or not 0 <= relative <= MAX_RELATIVE_OFFSET
        )

    def _waited_ms(self, header: BatchHeader, now_ms: int) -> int:
        """From the first batch's time to this one's; without times, since the file was made."""
        if self._first_timestamp_ms is not None and self._first_timestamp_ms >= 0:
            return header.max_timestamp_ms - self._first_timestamp_ms
        return now_ms - self._created_ms

    def append(self, batch: bytes, header: BatchHeader) -> None:
        """Write a batch and, if it is time for them, the entries of the indexes."""
        if self._first_timestamp_ms is None:
            self._first_timestamp_ms = header.max_timestamp_ms
        position = self.size
        self._log.append(batch)
        if header.max_timestamp_ms > self._latest.timestamp_ms:
            self._latest = TimeEntry(header.max_timestamp_ms, header.last_offset)
        if self._since_last_entry > self._settings.index_interval_bytes:
            entry = OffsetEntry(header.last_offset, position)
            self._index.append(write_offset_index([entry], self.base_offset))
            self._add_time_entry()
            self._since_last_entry = 0
        self._since_last_entry += len(batch)

    def _add_time_entry(self) -> None:
        if self._latest.timestamp_ms > self._indexed_ms:
            self._time_index.append(write_time_index([self._latest], self.base_offset))
            self._indexed_ms = self._latest.timestamp_ms

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        """Write a transaction whose abort marker is in the segment to its index."""
        if self._transactions is None:
            self._transactions = OutputFile(f"{self._stem}.txnindex")
        self._transactions.append(write_transaction_index([transaction]))

    def flush(self, flush: Flush) -> None:
        """Force all files to disk."""
        for file in self._files():
            file.flush(flush)

    def finish(self) -> None:
        """Write the last entry of the time index: nothing is appended any more."""
        self._add_time_entry()

    def close(self) -> None:
        """Close all files."""
        for file in self._files():
            file.close()

    def _files(self) -> list[OutputFile]:
        files = [self._log, self._index, self._time_index]
        return files if self._transactions is None else [*files, self._transactions]
