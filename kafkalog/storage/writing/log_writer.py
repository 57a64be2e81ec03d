"""Writing a partition's log as a broker does: appends at its end, segments, flushes.

Rules: docs/format.md F149 to F151 and F158.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from kafkalog.arguments import known_arguments
from kafkalog.errors import CorruptDataError, LogDirError
from kafkalog.format.batch_header import BatchHeader, computed_crc
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import MAX_RELATIVE_OFFSET
from kafkalog.format.record_batch import framing_fault
from kafkalog.format.side_files.leader_epochs import EpochStart, with_epoch, write_leader_epochs
from kafkalog.format.side_files.producer_snapshot import write_producer_snapshot
from kafkalog.storage.files.output_files import Flush, flush_directory, new_directory, write_file
from kafkalog.storage.names import partition_name
from kafkalog.storage.partition_log import LEADER_EPOCHS
from kafkalog.storage.recovery.framing import LATEST_FORMAT, Frame
from kafkalog.storage.recovery.producer_state import ProducerState
from kafkalog.storage.recovery.segment_recovery import add_to_producers
from kafkalog.storage.writing.log_settings import LogSettings
from kafkalog.storage.writing.segment_appender import SegmentAppender


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
