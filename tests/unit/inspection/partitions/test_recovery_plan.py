"""What a recovery costs, of logs that claim anything."""

import struct
from pathlib import Path

import pytest

from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from kafkalog.inspection.partitions.recovery_plan import recovery_row
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.recovery.recovery import RecoverySettings

_BASE_TIMESTAMP_POSITION = 27


@pytest.mark.parametrize(
    ("base_ms", "expected"), [(0, 5), (5, 0), (9, None), (-(2**63), None), (2**63 - 1, None)]
)
def test_a_time_that_is_none_is_not_told(
    tmp_path: Path, base_ms: int, expected: int | None
) -> None:
    batch = bytearray(write_batch([Record(0, 5, 0, b"k", b"v", ())]))
    struct.pack_into(">q", batch, _BASE_TIMESTAMP_POSITION, base_ms)
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").write_bytes(batch)
    (log,) = find_partitions([str(tmp_path)], strict=False)
    row = recovery_row(log, RecoverySettings(is_clean_shutdown=False))
    assert row["unflushed_ms"] == expected
