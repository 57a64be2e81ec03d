"""The log of one partition while a test makes it: batches in memory, and damage to come."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from kafkalog.errors import OptionError
from kafkalog.format.batch_header import BatchHeader, read_header
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.side_files.partition_metadata import write_topic_id
from kafkalog.storage.cleaning.compaction import (
    CleaningRound,
    SourceBatch,
    cleaned_batches,
    last_offsets,
)
from kafkalog.storage.cleaning.log_transactions import log_transactions
from kafkalog.storage.files.output_files import write_file
from kafkalog.storage.partition_log import PARTITION_METADATA
from kafkalog.storage.writing.log_settings import NEVER, LogSettings
from kafkalog.storage.writing.log_writer import LogWriter

# Segments end where a test says; a record may have any size.
_SETTINGS = LogSettings(segment_ms=NEVER, max_message_bytes=2**31 - 1)
# Done to the directory of a partition that was written.
_Damage = Callable[[str], None]


def not_to_disk(_descriptor: int) -> None:
    """In place of a flush: a test's files need not outlive a power cut."""


@dataclass(slots=True)
class MadeSegment:
    """A segment's batches."""

    base_offset: int
    batches: list[bytes] = field(default_factory=list)

    def log_path(self, directory: str) -> str:
        return os.path.join(directory, f"{self.base_offset:020d}.log")


@dataclass(slots=True)
class MadeLog:
    """Grows by batches. `start_offset` is where it begins, `cleaned_to` how far the cleaner got."""

    topic: str
    partition: int
    topic_id: str
    segments: list[MadeSegment] = field(default_factory=lambda: [MadeSegment(0)])
    next_offset: int = 0
    start_offset: int = 0
    cleaned_to: int | None = None
    _damages: list[_Damage] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.partition

    @property
    def batches(self) -> Iterator[bytes]:
        """All of them, from the first segment on."""
        return (batch for segment in self.segments for batch in segment.batches)

    def append_records(self, records: Sequence[Record], fields: BatchFields) -> None:
        """The records, whose offsets begin at the log's end, as a batch."""
        self.append(write_batch(records, fields))

    def append(self, batch: bytes) -> None:
        """Append a complete batch."""
        self.segments[-1].batches.append(batch)
        self.next_offset = read_header(batch, 0).last_offset + 1

    def roll(self) -> None:
        """Begin a new segment, unless the last one is empty."""
        if self.segments[-1].batches:
            self.segments.append(MadeSegment(self.next_offset))

    def delete_records(self, before_offset: int) -> None:
        """Let the log begin at an offset: segments that end before it are deleted."""
        if not self.start_offset <= before_offset <= self.next_offset:
            allowed = f"{self.start_offset} to {self.next_offset}"
            raise OptionError("before_offset", before_offset, allowed)
        self.start_offset = before_offset
        while len(self.segments) > 1 and self.segments[1].base_offset <= before_offset:
            del self.segments[0]

    def compact(self, now_ms: int, delete_retention_ms: int) -> None:
        """Clean the segments that there are, up to the one in which a transaction is open, into
        one, as a broker's cleaner would."""
        self.roll()
        transactions = log_transactions(self.batches)
        stable = transactions.first_open_offset
        bases = [segment.base_offset for segment in self.segments]
        end = bases[-1] if stable is None else max(base for base in bases if base <= stable)
        cleaning = CleaningRound(
            first_dirty_offset=self.start_offset,
            first_uncleanable_offset=end,
            high_watermark=self.next_offset,
            now_ms=now_ms,
            delete_retention_ms=delete_retention_ms,
            producers=transactions.producers,
            aborted=transactions.aborted,
        )
        below = [segment for segment in self.segments if segment.base_offset < end]
        sources = [SourceBatch(batch) for segment in below for batch in segment.batches]
        last = last_offsets(sources, cleaning)
        left = [each.cleaned for each in cleaned_batches(sources, last, cleaning)]
        if below:
            merged = MadeSegment(bases[0], [batch for batch in left if batch is not None])
            self.segments[: len(below)] = [merged]
        self.cleaned_to = end

    def flip_byte(self, offset: int) -> None:
        """Let a byte of the batch that holds an offset be another: its checksum is wrong then."""
        self._batch_at(offset)

        def flip(directory: str) -> None:
            segment, position, header = self._batch_at(offset)
            with open(segment.log_path(directory), "r+b") as file:
                file.seek(position + header.size - 1)
                (last,) = file.read(1)
                file.seek(-1, os.SEEK_CUR)
                file.write(bytes([last ^ 0xFF]))

        self._damages.append(flip)

    def cut_tail(self, size: int) -> None:
        """Let the last `size` bytes of the newest segment that has any be missing."""
        segment = next((each for each in reversed(self.segments) if each.batches), self.segments[0])
        stored = sum(map(len, segment.batches))
        if not 0 < size <= stored:
            raise OptionError("size", size, f"1 to {stored}, the bytes of the newest segment")
        self._damages.append(lambda directory: _cut(segment.log_path(directory), size))

    def _batch_at(self, offset: int) -> tuple[MadeSegment, int, BatchHeader]:
        for segment in self.segments:
            position = 0
            for batch in segment.batches:
                header = read_header(batch, 0)
                if header.base_offset <= offset <= header.last_offset:
                    return segment, position, header
                position += len(batch)
        allowed = f"that of a record of {self.topic}-{self.partition}"
        raise OptionError("offset", offset, allowed)

    def write(self, log_dir: str, now_ms: int) -> None:
        """The partition's directory in a log directory, as a broker that stops leaves it; then the
        damage."""
        directory = os.path.join(log_dir, f"{self.topic}-{self.partition}")
        with LogWriter(
            directory,
            _SETTINGS,
            now_ms=lambda: now_ms,
            flush=not_to_disk,
            start_offset=self.segments[0].base_offset,
        ) as writer:
            for number, segment in enumerate(self.segments):
                if number:
                    writer.roll(segment.base_offset)
                for batch in segment.batches:
                    writer.append(batch)
        text = write_topic_id(self.topic_id)
        write_file(os.path.join(directory, PARTITION_METADATA), text.encode(), not_to_disk)
        for damage in self._damages:
            damage(directory)


def _cut(path: str, size: int) -> None:
    os.truncate(path, os.path.getsize(path) - size)
