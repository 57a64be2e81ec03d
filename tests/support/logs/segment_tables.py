"""What the tests of the fast reader read, in few words."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.columns.batches.fault_details import FaultyRange
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.records.segment_reader import Constants, SegmentByteRanges, SegmentRecords
from kafkalog.storage.reading.log_bounds import RecordedEnd
from tests.support.logs.both_readers import memory_window


def records_table(
    data: bytes,
    columns: Sequence[str],
    *,
    constants: Constants | None = None,
    faults: list[FaultyRange] | None = None,
    with_control_records: bool = False,
    **options: Any,
) -> pa.Table:
    """View `records` of one segment; damaged ranges go into `faults`."""
    batches = SegmentRecords(
        memory_window(data),
        SegmentOptions(**options),
        columns,
        constants or {},
        (faults if faults is not None else []).append,
        with_control_records=with_control_records,
    ).rows()
    return pa.Table.from_batches(batches, schema=arrow_schema("records", tuple(columns)))


def byte_ranges(
    data: bytes,
    *,
    is_compacted: bool = False,
    recorded_end: RecordedEnd | None = None,
    **options: Any,
) -> list[dict[str, Any]]:
    """View `byte_ranges` of one segment."""
    window = memory_window(data)
    return list(
        SegmentByteRanges(
            window, SegmentOptions(**options), is_compacted=is_compacted, recorded_end=recorded_end
        ).rows()
    )
