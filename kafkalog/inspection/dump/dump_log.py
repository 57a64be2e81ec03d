"""A log file as text: its batches, what is in them, and what is damaged, each at its place.

Rules: docs/command-line.md F580 to F585.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import integers
from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import first_offsets
from kafkalog.columns.batches.fault_details import FaultyRange, faulty_range
from kafkalog.columns.batches.segment_batches import Chunk, SegmentBatches
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import Window
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.columns.records.record_columns import OUTPUT_BYTES, RecordColumns
from kafkalog.format.faults import Severity
from kafkalog.inspection.dump.dump_lines import BatchLines, DumpedFile
from kafkalog.inspection.dump.dump_records import DUMPED_COLUMNS, RecordLines
from kafkalog.inspection.dump.text_kernels import ByteColumn
from kafkalog.inspection.dump.text_lines import LineFormat, escaped_text, of_texts

# A search loads pyarrow.compute, which takes longer than a small dump.
if TYPE_CHECKING:
    from kafkalog.inspection.dump.record_search import RecordFilter, VisibilityJudge


class Piece(NamedTuple):
    """Text of a dump, valid until the next piece is requested, the number of batches or records in
    it, and its findings."""

    text: bytes | memoryview
    rows: int = 0
    findings: tuple[str, ...] = ()


class _Written(NamedTuple):
    """The text of each row of a table, and the findings in it."""

    texts: ByteColumn
    findings: tuple[str, ...]


@dataclass(frozen=True)
class DumpOptions:
    """What a dump shows: at most `most_rows` records, or batches without `is_deep`. `keep` selects
    the records to show; batches without any of them are left out. `judge` finds out what consumers
    see of each record, for JSON."""

    text_format: LineFormat = LineFormat.TEXT
    is_deep: bool = False
    payloads: bool = True
    decodes: bool = True
    show_secrets: bool = False
    most_rows: int = 2**63 - 1
    keep: RecordFilter | None = field(default=None, compare=False)
    judge: VisibilityJudge | None = field(default=None, compare=False)


class LogDump:
    """Dumps one log file, or the part of it that begins after the batch at `resume_position` and
    ends with the one at the segment's `next_position`."""

    def __init__(
        self,
        window: Window,
        segment: SegmentOptions,
        file: DumpedFile,
        options: DumpOptions,
        *,
        decoded_topic: str | None = None,
        resume_position: int = -1,
        is_growing: bool = False,
    ) -> None:
        self._window = window
        self._begins_after = self._resume_position = resume_position
        self._is_growing = is_growing
        self.last_offset = segment.first_offset - 1
        self._left = options.most_rows
        self._segment = segment
        self._file = file
        self._options = options
        self._batch_lines = BatchLines(file, options.text_format)
        self._record_lines = RecordLines(
            file,
            options.text_format,
            payloads=options.payloads,
            decoded_topic=decoded_topic if options.decodes else None,
            show_secrets=options.show_secrets or not options.decodes,
            is_judged=options.judge is not None,
        )
        self._records = RecordColumns(segment, DUMPED_COLUMNS, {}, with_control_records=True)
        self._shows_batches = not (options.is_deep and options.text_format is LineFormat.CSV)

    def pieces(self) -> Iterator[Piece]:
        """Yield the text in the order of the file."""
        for chunk in SegmentBatches(self._window, self._segment).chunks():
            if not self._left:
                return
            owned = replace(chunk, table=self._owned(chunk.table))
            if not len(owned.table):
                continue
            self._note(owned.table)
            if self._options.is_deep:
                yield from self._deep(owned)
            else:
                yield self._shallow(owned.table)

    @property
    def resume_position(self) -> int:
        """Return the position of the last sound batch that was dumped, whose last offset is
        `last_offset`: another dump resumes after it."""
        return self._resume_position

    def _note(self, table: LongArray) -> None:
        sound = table[table[:, column.FAULT] == 0]
        if len(sound):
            self._resume_position = int(sound[-1, column.POSITION])
            self.last_offset = int(sound[-1, column.LAST_OFFSET])

    def _owned(self, table: LongArray) -> LongArray:
        """Return the rows to show: those that begin in this part and can hold requested offsets. If
        the file is growing, leave out an end that may be a batch in the making."""
        count = len(table)
        ends = int(table[-1, column.POSITION] + table[-1, column.SIZE])
        if self._is_growing and ends == self._window.size:
            while count and table[count - 1, column.FAULT]:
                count -= 1
        owned: LongArray = table[:count][self._is_owned(table[:count])]
        return owned

    def _is_owned(self, table: LongArray) -> BoolArray:
        segment = self._segment
        owned = table[:, column.POSITION] > self._begins_after
        if segment.next_position is not None:
            owned &= table[:, column.POSITION] <= segment.next_position
        is_requested = table[:, column.LAST_OFFSET] >= segment.first_offset
        is_requested &= first_offsets(table) < segment.end_offset
        is_owned: BoolArray = owned & (is_requested | (table[:, column.FAULT] != 0))
        return is_owned

    def _deep(self, chunk: Chunk) -> Iterator[Piece]:
        table = chunk.table
        done = 0  # these rows are written, except the fault of the last one
        for records in self._records.batches(chunk):
            kept = records if self._options.keep is None else self._options.keep(records)
            kept = kept.slice(0, self._left)
            if not len(kept):
                continue
            self._left -= len(kept)
            rows = _rows_of(table, integers(kept.column("position")))
            last = int(rows[-1]) + 1
            before = self._written(table, done, last, rows)
            borders = np.zeros(len(rows) + 1, dtype=np.int64)
            borders[1:] = before.texts.borders[np.maximum(rows + 1 - done, 0)]
            texts = ByteColumn(before.texts.data, borders, np.zeros(len(rows), dtype=np.int64))
            seen = self._seen(kept, table[rows])
            if _is_large(kept):
                for text in self._record_lines.pieces(kept, texts, seen):
                    yield Piece(text)
                yield Piece(b"", len(kept), before.findings)
            else:
                lines = self._record_lines.lines(kept, texts, seen)
                yield Piece(_bytes(lines), len(kept), before.findings)
            done = last
            # The next ones take their place.
            del records, kept
        if self._left:
            yield self._end(table, done, np.zeros(0, dtype=np.int64))

    def _seen(self, records: pa.RecordBatch, batches: LongArray) -> ByteColumn | None:
        """Return what consumers see of each record, None where it is not requested."""
        if self._options.judge is None:
            return None
        seen = self._options.judge.judged(integers(records.column("offset")), batches)
        return of_texts([each.value.encode() for each in seen])

    def _shallow(self, table: LongArray) -> Piece:
        batches = np.flatnonzero(table[:, column.IS_BATCH])
        if len(batches) > self._left:
            table = table[: batches[self._left - 1] + 1]
        self._left -= min(len(batches), self._left)
        piece = self._end(table, 0, np.arange(len(table)))
        return piece._replace(rows=int((table[:, column.IS_BATCH] == 1).sum()))

    def _end(self, table: LongArray, done: int, rows: LongArray) -> Piece:
        """Return the rest of a table's text."""
        left = self._written(table, done, len(table), rows)
        text, findings = self._fault(table[-1].tolist())
        text_before = _bytes(left.texts)
        return Piece(
            bytes(text_before) + text if text else text_before, 0, left.findings + findings
        )

    def _written(self, table: LongArray, done: int, last: int, rows: LongArray) -> _Written:
        """Return the text of table[done:last]: for each row the fault of the row before, and its
        batch. If records are selected, only the batches in `rows` are shown."""
        shown = (table[done:last, column.IS_BATCH] == 1) & self._shows_batches
        if self._options.keep is not None:
            is_named = np.zeros(len(table), dtype=np.bool_)
            is_named[rows] = True
            shown &= is_named[done:last]
        lines = self._batch_lines.lines(table[done:last][shown])
        sizes = np.zeros(last - done + 1, dtype=np.int64)
        sizes[1:][shown] = np.diff(lines.borders)
        texts = ByteColumn(lines.data, np.cumsum(sizes), np.zeros(last - done, dtype=np.int64))
        if not table[max(done - 1, 0) : max(last - 1, 0), column.FAULT].any():
            return _Written(texts, ())
        pieces: list[bytes] = []
        found: list[str] = []
        for row in range(done, last):
            fault, findings = self._fault(table[row - 1].tolist()) if row else (b"", ())
            begin, end = texts.borders[row - done : row - done + 2].tolist()
            pieces.append(fault + texts.data[begin:end].tobytes())
            found += findings
        return _Written(of_texts(pieces), tuple(found))

    def _fault(self, row: list[int]) -> tuple[bytes, tuple[str, ...]]:
        """Return the text of a row's fault, empty if it has none, and its findings."""
        if not row[column.FAULT]:
            return b"", ()
        ends_file = row[column.POSITION] + row[column.SIZE] == self._window.size
        ends_log = ends_file and self._segment.next_base_offset is None
        fault = faulty_range(row, self._window.unreadable, ends_log=ends_log)
        text = _fault_text(fault, self._file.path, ends_file=ends_file)
        findings = (text,) if fault.severity > Severity.INFORMATION else ()
        text_format = self._options.text_format
        if text_format is LineFormat.TEXT:
            return f"{text}\n".encode("utf-8", "surrogateescape"), findings
        if text_format is LineFormat.CSV:
            return b"", findings
        front = self._file.in_front("fault", text_format)
        return f"{front}{_fault_json(fault)}\n".encode("utf-8", "surrogateescape"), findings


def _is_large(records: pa.RecordBatch) -> bool:
    """Return whether this is one record that is too large for one piece of text."""
    return len(records) == 1 and records.nbytes > OUTPUT_BYTES


def _bytes(texts: ByteColumn) -> memoryview:
    return memoryview(texts.data[: texts.borders[-1]])  # type: ignore[arg-type]


def _rows_of(table: LongArray, positions: LongArray) -> LongArray:
    """Return the row of each record's batch; `positions` are those of the batches."""
    is_first = np.ones(len(positions), dtype=np.bool_)
    np.not_equal(positions[1:], positions[:-1], out=is_first[1:])
    first = np.flatnonzero(is_first)
    rows = np.searchsorted(table[:, column.POSITION], positions[first])
    return np.repeat(rows, np.diff(first, append=len(positions)))


def _fault_text(fault: FaultyRange, path: str, *, ends_file: bool) -> str:
    place = f"the end of {os.path.basename(path)}, " if ends_file else f"{os.path.basename(path)}, "
    return escaped_text(
        f"Found {fault.length} invalid bytes at {place}position: {fault.position} "
        f"{fault.fault.label}: {fault.detail}",
        LineFormat.TEXT,
    )


def _fault_json(fault: FaultyRange) -> str:
    fields = {
        "position": fault.position,
        "size": fault.length,
        "fault": fault.fault.label,
        "severity": fault.severity.name.lower(),
        "detail": fault.detail,
        "expectedOffset": fault.expected_offset,
        "baseOffset": fault.base_offset,
        "lastOffset": fault.last_offset,
    }
    return "," + json.dumps(fields, ensure_ascii=False, separators=(",", ":"))[1:]
