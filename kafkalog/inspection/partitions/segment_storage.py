"""What a segment holds and what it takes, by its batch headers, or by all its payloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.records.record_metadata import COMPRESSION_NAMES
from kafkalog.columns.records.segment_reader import SegmentBatchRows
from kafkalog.inspection.partitions.segments import HeaderAccount
from kafkalog.storage.partition_log import SegmentFile
from kafkalog.storage.reading.renamed_files import opened

_SIZES = ("uncompressed_size", "size", "is_valid")


@dataclass(frozen=True, slots=True)
class Storage:
    """One segment or several: bytes of the log files; the first and the last offset and the first,
    the largest and the least time by batch headers, None without any; how many batches; how many
    records, unless old compressed messages hide that, and control records, which are not among
    them; bytes of batches by codec; and, where payloads were decompressed, those bytes as they are
    and as they would be without compression."""

    size: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    first_timestamp_ms: int | None = None
    max_timestamp_ms: int | None = None
    batches: int = 0
    records: int | None = 0
    control_records: int = 0
    codec_bytes: dict[str, int] = field(default_factory=dict)
    read_bytes: int = 0
    uncompressed_bytes: int = 0
    least_timestamp_ms: int | None = None

    @property
    def ratio(self) -> float | None:
        """How many bytes would be there without compression for each that is; None where payloads
        were not looked at, or none could be decompressed."""
        return self.uncompressed_bytes / self.read_bytes if self.read_bytes else None


def segment_storage(segment: SegmentFile, *, decompress: bool) -> Storage:
    """Return what headers say; with `decompress` all payloads are read, without a look at
    checksums."""
    account = HeaderAccount()
    options = SegmentOptions.of(segment)
    with opened(segment.path) as file:
        for chunk in SegmentHeaders(FileWindow(file), options).chunks():
            account.noted(chunk.table)
        size = file.size
    columns: Mapping[str, Any] = account.columns()
    records = columns["records"]
    found = Storage(
        size,
        columns["base_offset"],
        columns["last_offset"],
        columns["first_timestamp_ms"],
        columns["max_timestamp_ms"],
        columns["batches"],
        None if records is None else records - account.control_records,
        account.control_records,
        {
            _codec(number): count
            for number, count in enumerate(account.codec_bytes.tolist())
            if count
        },
        least_timestamp_ms=columns["least_timestamp_ms"],
    )
    return _with_payloads(found, segment, options) if decompress else found


def _codec(number: int) -> str:
    return COMPRESSION_NAMES[number] if number < len(COMPRESSION_NAMES) else f"codec {number}"


def _with_payloads(found: Storage, segment: SegmentFile, options: SegmentOptions) -> Storage:
    import pyarrow.compute as pc  # costs as much as to read a small log by headers

    stored = uncompressed = 0
    with opened(segment.path) as file:
        for batch in SegmentBatchRows(FileWindow(file), options, _SIZES, {}).rows():
            known = batch.filter(batch.column("is_valid"))
            uncompressed += pc.sum(known.column("uncompressed_size")).as_py() or 0
            is_known = known.column("uncompressed_size").is_valid()
            stored += pc.sum(known.column("size").filter(is_known)).as_py() or 0
    return replace(found, read_bytes=stored, uncompressed_bytes=uncompressed)


def summed_storage(parts: Sequence[Storage]) -> Storage:
    """Return all of it together; offsets are those of the first and the last that has any."""
    codecs: dict[str, int] = {}
    for part in parts:
        for name, count in part.codec_bytes.items():
            codecs[name] = codecs.get(name, 0) + count
    first_times = [p.first_timestamp_ms for p in parts if p.first_timestamp_ms is not None]
    last_times = [p.max_timestamp_ms for p in parts if p.max_timestamp_ms is not None]
    records = [part.records for part in parts]
    return Storage(
        sum(part.size for part in parts),
        next((p.first_offset for p in parts if p.first_offset is not None), None),
        next((p.last_offset for p in reversed(parts) if p.last_offset is not None), None),
        min(first_times, default=None),
        max(last_times, default=None),
        sum(part.batches for part in parts),
        None if None in records else sum(count for count in records if count is not None),
        sum(part.control_records for part in parts),
        codecs,
        sum(part.read_bytes for part in parts),
        sum(part.uncompressed_bytes for part in parts),
    )
