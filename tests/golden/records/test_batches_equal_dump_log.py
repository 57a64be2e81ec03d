"""Every batch of every fixture against the line that kafka-dump-log printed of it."""

from typing import Any

import pytest

from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.records.batch_columns import _COLUMNS
from kafkalog.columns.records.segment_reader import SegmentBatchRows
from tests.support.golden.fixture_sets import CONSUMERS, dumped_batches, unique_segments
from tests.support.logs.both_readers import memory_window
from tests.support.repository import Unpack


@pytest.mark.parametrize("name", CONSUMERS)
def test_every_batch_is_what_kafka_dump_log_printed(name: str, unpacked: Unpack) -> None:
    # F10 to F16, F30, F31, F40 to F42; T5 to T7, T10, T19.
    logs, golden = unpacked(f"{name}.logs"), unpacked(f"{name}.golden")
    compared = 0
    for segment in unique_segments(logs):
        expected = dumped_batches(golden, segment)
        assert expected is not None, segment.path
        window = memory_window(segment.path.read_bytes())
        rows = [
            row
            for batch in SegmentBatchRows(
                window,
                SegmentOptions(segment.base_offset, segment.next_base_offset),
                tuple(_COLUMNS),
                {},
            ).rows()
            for row in batch.to_pylist()
        ]
        assert [_as_dumped(row) for row in rows] == expected, segment.path
        assert all(row["fault"] is None for row in rows)
        compared += len(rows)
    assert compared > 100


def _as_dumped(row: dict[str, Any]) -> dict[str, str]:
    timestamp_type = row["timestamp_type"] or "NoTimestampType"
    common = {
        "position": row["position"],
        timestamp_type: -1 if row["max_timestamp_ms"] is None else row["max_timestamp_ms"],
        "size": row["size"],
        "magic": row["magic"],
        "compresscodec": row["compression"],
        "crc": row["crc"],
        "isvalid": row["is_valid"],
    }
    if row["magic"] < 2:
        return _printed({"offset": row["last_offset"], **common})
    horizon = row["delete_horizon_ms"]
    header = {
        "baseOffset": row["base_offset"],
        "lastOffset": row["last_offset"],
        "count": row["records"],
        "baseSequence": row["base_sequence"],
        "lastSequence": row["last_sequence"],
        "producerId": row["producer_id"],
        "producerEpoch": row["producer_epoch"],
        "partitionLeaderEpoch": row["leader_epoch"],
        "isTransactional": row["is_transactional"],
        "isControl": row["is_control"],
        "deleteHorizonMs": ".empty" if horizon is None else f"[{horizon}]",
    }
    return _printed({**header, **common})


def _printed(values: dict[str, Any]) -> dict[str, str]:
    """As Java prints them, with -1 for what is not there."""
    return {
        name: str(-1 if value is None else value).lower()
        if isinstance(value, bool)
        else str(-1 if value is None else value)
        for name, value in values.items()
    }
