"""What salvage reports of lost offsets, and what it keeps where it compacts. F182, F183, F253."""

from dataclasses import replace
from pathlib import Path

import pytest

from kafkalog.format.message_set import write_old_message
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.inspection.partitions.salvage import SalvageSettings, salvage_partition
from kafkalog.storage.log_dir.log_dir import find_partitions
from tests.support.logs.samples import record
from tests.support.spark.kafka_logs import write_log

SETTINGS = SalvageSettings(now_ms=1, index_interval_bytes=4096)
LONGEST = "o" * 249  # as long as a topic's name can be


@pytest.mark.parametrize("magic", [0, 1])
def test_the_offset_of_a_damaged_old_message_is_reported(magic: int, tmp_path: Path) -> None:
    # F40, F182: not compressed, each message says its own offset, the one behind the damage too.
    messages = [bytearray(write_old_message(offset, magic, b"k", b"value")) for offset in range(5)]
    messages[2][-1] ^= 1
    source = tmp_path / "source" / "orders-0"
    source.mkdir(parents=True)
    (source / f"{0:020d}.log").write_bytes(b"".join(messages))
    (log,) = find_partitions([str(source.parent)])
    row = salvage_partition(log, str(tmp_path / "target" / "orders-0"), SETTINGS)
    assert isinstance(row["lost_ranges"], list)
    (lost,) = row["lost_ranges"]
    assert (lost["kind"], lost["first_offset"], lost["last_offset"]) == ("checksum", 2, 2)


def test_an_end_that_is_missing_is_reported(tmp_path: Path) -> None:
    # F76, F182
    write_log(tmp_path / "source", "orders-0", {0: [write_batch([record(0)], BatchFields())]})
    (tmp_path / "source" / "replication-offset-checkpoint").write_text("0\n1\norders 0 4\n")
    (log,) = find_partitions([str(tmp_path / "source")])
    row = salvage_partition(log, str(tmp_path / "target" / "orders-0"), SETTINGS)
    assert isinstance(row["lost_ranges"], list)
    (lost,) = row["lost_ranges"]
    assert (lost["kind"], lost["first_offset"], lost["last_offset"]) == ("missing_end", 1, 3)


def test_what_is_known_of_epochs_and_producers_outlives_compaction(tmp_path: Path) -> None:
    # F183, F253: of the first epoch no batch is left, nor of the producer's first transaction.
    fields = BatchFields(producer_id=9, producer_epoch=0, base_sequence=0)
    batches = [
        write_batch([record(0, key=b"a")], replace(fields, leader_epoch=1)),
        write_batch([record(1, key=b"a")], replace(fields, leader_epoch=4, base_sequence=1)),
    ]
    write_log(tmp_path / "source", f"{LONGEST}-0", {0: batches})
    (log,) = find_partitions([str(tmp_path / "source")])
    found: list[list[str]] = []
    for compacted in ({}, {LONGEST: 1}):
        directory = tmp_path / f"target-{len(found)}" / f"{LONGEST}-0"
        row = salvage_partition(log, str(directory), replace(SETTINGS, compacted=compacted))
        assert row["broker_starts"]
        known = ("leader-epoch-checkpoint", f"{2:020d}.snapshot")
        found.append([(directory / name).read_bytes().hex() for name in known])
        assert sorted(path.name for path in directory.parent.iterdir()) == [f"{LONGEST}-0"]
    assert found[0] == found[1]
