"""Compile all kernels, so that the first read does not have to.

`python -m kafkalog.inspection.compile_kernels`; the machine code is kept beside the modules or,
where that cannot be written, in the user's cache directory.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kafkalog.columns.batches.batch_table import new_table
from kafkalog.columns.batches.scan import set_header_rows
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import MemoryWindow, WindowBytes
from kafkalog.columns.keys.key_hashes import SECRET_BYTES
from kafkalog.columns.keys.key_offsets import KEY_COLUMNS, KeyOffsets
from kafkalog.columns.records.payload_pieces import find_record_fields, piece_end
from kafkalog.columns.records.record_metadata import IS_CONTROL, record_schema
from kafkalog.columns.records.segment_reader import Constants, SegmentBatchRows, SegmentRecords
from kafkalog.columns.writing.batch_encoder import BatchEncoder
from kafkalog.coordination.groups.burrow import BurrowSettings
from kafkalog.coordination.groups.lag_status import LagSettings
from kafkalog.format.batch_header import V2_HEADER_BYTES
from kafkalog.format.message_set import write_message_set
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.inspection.dump.text_lines import LineFormat, Template, escaped, of_texts
from kafkalog.inspection.groups.latest_commits import LatestCommits
from kafkalog.inspection.groups.offset_commits import COMMIT_RECORD_COLUMNS, CommitRows
from kafkalog.inspection.lag.burrow_statuses import BurrowEvents, BurrowWindows
from kafkalog.inspection.lag.lag_statuses import LagEvents, LagWindows
from kafkalog.schemas import table_fields
from kafkalog.wire.compression import CompressionType


def compile_kernels() -> None:
    """Read a few records in every format, search for a batch as after damage, and so on."""
    records = [Record(offset, 1, 0, b"key", b"value", (("name", None),)) for offset in range(2)]
    gzip = CompressionType.GZIP
    segments = (
        write_batch(records),
        write_batch(records, BatchFields(compression=gzip)),
        *(write_message_set(records, magic) for magic in (0, 1)),
        *(write_message_set(records, magic, gzip) for magic in (0, 1)),
    )
    columns = tuple(field["name"] for field in table_fields("records"))
    constants: Constants = {"topic": "", "partition": 0, "file": "", "brokerId": 0}
    for segment in segments:
        window = MemoryWindow(np.frombuffer(bytearray(segment), dtype=np.uint8))
        for _ in SegmentRecords(
            window, SegmentOptions(0), columns, constants, lambda fault: None
        ).rows():
            pass
        for _ in SegmentBatchRows(window, SegmentOptions(0), ("size",), {}).rows():
            pass
        source = WindowBytes(window)
        source.zero_run(0, source.size)
        source.next_candidate(0, source.size)
    _compile_pieces()
    _compile_statuses()
    _compile_commits()
    _compile_encoder()
    _compile_texts()
    _compile_keys()
    header = np.frombuffer(bytearray(segments[0][:V2_HEADER_BYTES]), dtype=np.uint8)
    set_header_rows(header, np.zeros(1, dtype=np.int64), new_table(1), 0)


def _compile_pieces() -> None:
    """A piece of a large payload, without a whole record."""
    payload = np.zeros(16, dtype=np.uint8)
    piece_end(payload, 0, len(payload), 2, 1)
    find_record_fields(payload, 0, len(payload), 2)


def _compile_statuses() -> None:
    """One event, of no partition."""
    numbers, flags = np.ones(1, dtype=np.int64), np.ones(1, dtype=np.bool_)
    BurrowWindows(BurrowSettings()).verdicts(BurrowEvents(flags, *[numbers] * 5))
    four, three = (numbers, numbers, numbers, numbers), (numbers, numbers, numbers)
    facts = LagEvents(flags, *four, flags, flags, flags, *three, *three)
    LagWindows(LagSettings()).verdicts(facts)


def _compile_commits() -> None:
    """One tombstone."""
    record = {"key": bytes(10), "value": None, "offset": 0, "timestampMs": 0}
    flags = {IS_CONTROL: False, "isTransactional": False}
    records = pa.RecordBatch.from_pylist(
        [{**record, **flags}], schema=record_schema(COMMIT_RECORD_COLUMNS)
    )
    for rows in (CommitRows, LatestCommits):
        for _ in rows(None, {}, ("group_id",)).batches([records]):
            pass


def _compile_encoder() -> None:
    """One record."""
    columns = {"value": b"value", "headers": [{"key": "name", "value": None}]}
    row = pa.RecordBatch.from_pylist([columns], schema=record_schema(tuple(columns)))
    for _ in BatchEncoder(CompressionType.NONE).batches(row, 0):
        pass


def _compile_texts() -> None:
    """One value, as a line."""
    value = escaped(of_texts([b"\x1b"]), LineFormat.TEXT)
    Template().bytes_of("value").lines(1, {}, {"value": value})


def _compile_keys() -> None:
    """One key, by its hash."""
    records = pa.RecordBatch.from_pylist(
        [{"key": b"key", "offset": 0}], schema=record_schema(KEY_COLUMNS)
    )
    keys = KeyOffsets(bytes(SECRET_BYTES))
    keys.add(records)
    keys.highest_of(records.column("key"))


if __name__ == "__main__":
    compile_kernels()
