"""What salvage tells of lost offsets where old messages stand alone. F182."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.columns.salvage import SalvageSettings, salvage_partition
from kafkalog.format.message_set import write_message
from kafkalog.storage.log_dir import find_partitions

SETTINGS = SalvageSettings(now_ms=1, index_interval_bytes=4096)


@pytest.mark.parametrize("magic", [0, 1])
def test_the_offset_of_a_damaged_old_message_is_told(magic: int, tmp_path: Path) -> None:
    # F40, F182: not compressed, each message says its own offset, the one behind the damage too.
    messages = [bytearray(write_message(offset, magic, b"k", b"value")) for offset in range(5)]
    messages[2][-1] ^= 1
    source = tmp_path / "source" / "orders-0"
    source.mkdir(parents=True)
    (source / f"{0:020d}.log").write_bytes(b"".join(messages))
    (log,) = find_partitions([str(source.parent)])
    row = salvage_partition(log, str(tmp_path / "target" / "orders-0"), SETTINGS)
    assert isinstance(row["lost_ranges"], list)
    (lost,) = row["lost_ranges"]
    assert (lost["kind"], lost["first_offset"], lost["last_offset"]) == ("checksum", 2, 2)
