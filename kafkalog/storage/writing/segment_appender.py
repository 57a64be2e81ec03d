"""A segment while it is written: its log file and indexes, and when it is full.

Rules: docs/format.md F100, F101, F104 and F150.
"""

from __future__ import annotations

import os

from kafkalog.format.batch_header import NO_VALUE, BatchHeader
from kafkalog.format.offsets import MAX_RELATIVE_OFFSET
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
from kafkalog.storage.files.output_files import Flush, OutputFile
from kafkalog.storage.writing.log_settings import LogSettings


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
