"""Where a consumer stops once the broker runs, and what damage stays in what it serves: against
what a broker and a consumer did with damaged copies of a log."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkalog.format.record_batch import MAX_BATCH_BYTES, BatchFields, with_checksum, write_batch
from kafkalog.format.records import MOST_HEADERS
from kafkalog.inspection.partitions.recovery_plan import recovery_row
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.recovery.recovery import RecoverySettings
from tests.support.golden.damaged_log_dirs import broker_actions, one_log_dir
from tests.support.logs.hostile_files import batch as hostile_batch
from tests.support.logs.hostile_files import compressed
from tests.support.logs.hostile_files import record as hostile_record
from tests.support.logs.log_dirs import log_name
from tests.support.logs.samples import batch, record
from tests.support.repository import Unpack
from tests.support.spark.kafka_logs import write_log

CLEAN = RecoverySettings(is_clean_shutdown=True)
UNCLEAN = RecoverySettings(is_clean_shutdown=False)
BATCH = len(batch(0))


@pytest.fixture(scope="module")
def said(unpacked: Unpack) -> dict[str, dict[str, Any]]:
    return broker_actions(unpacked("unclean.golden"))


def test_a_consumer_stops_where_it_did_behind_a_broker(
    said: dict[str, dict[str, Any]], unpacked: Unpack, tmp_path: Path
) -> None:
    # F128; T3, T4, T12, T13: each copy was started after a kill, and read by a Java consumer.
    log_dir = one_log_dir(unpacked("unclean.logs") / "variants", said, tmp_path / "logs")
    found = {}
    for log in find_partitions([str(log_dir)]):
        assert log.topic_partition is not None
        point = log.log_dir.recovery_points[log.topic_partition]
        settings = replace(UNCLEAN, recovery_point=point, index_interval_bytes=1024)
        found[log.topic] = recovery_row(log, settings)
    stopped = {name for name, told in said.items() if told.get("consume", {}).get("error")}
    assert {name for name, row in found.items() if row["consumers_stop_at"] is not None} == stopped
    for name in stopped:
        told, row = said[name]["consume"], found[name]
        assert row["remaining_faults"] == 1, name
        if "IllegalArgumentException" in told["error"]:
            # Such an error takes the records along that came with the same poll.
            assert (told["position"], row["consumers_stop_at"]) == (2663, 2721), name
        else:
            assert row["consumers_stop_at"] == told["position"], name


def clean_row(path: Path, **checkpoints: Any) -> dict[str, Any]:
    (log,) = find_partitions([str(path.parent)])
    return dict(recovery_row(log, replace(CLEAN, **checkpoints)))


def stop(path: Path, **checkpoints: Any) -> tuple[object, object]:
    row = clean_row(path, **checkpoints)
    return row["remaining_faults"], row["consumers_stop_at"]


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Offsets 0 to 17: two segments of three batches of three records."""
    segments = {base: [batch(base + 3 * i) for i in range(3)] for base in (0, 9)}
    return write_log(tmp_path / "logs", "orders-0", segments)


def overwrite(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def test_nothing_stops_at_a_sound_log(partition: Path) -> None:
    assert stop(partition) == (0, None)


@pytest.mark.parametrize(
    ("at", "data"),
    [
        pytest.param(70, b"\xff", id="checksum"),
        pytest.param(16, b"\x09", id="magic"),
        pytest.param(8, bytes(4), id="zeros in the length"),
        pytest.param(0, bytes(BATCH), id="a page of zeros"),
        pytest.param(8, b"\x00\x00\x00\x30", id="a length below a header's"),
    ],
)
def test_after_a_clean_stop_damage_stays_and_stops_consumers(
    at: int, data: bytes, partition: Path
) -> None:
    # F121.
    overwrite(partition / log_name(0), BATCH + at, data)
    faults, stopped = stop(partition)
    assert isinstance(faults, int)
    assert faults >= 1
    assert stopped == 3


def test_a_batch_cut_short_at_the_end_of_an_older_segment_stops_no_consumer(
    partition: Path,
) -> None:
    # As the copy first-segment-truncated shows, whose records a consumer just did not get.
    # What is left of the batch is one finding, the hole before the next segment another.
    os.truncate(partition / log_name(0), 3 * BATCH - 5)
    assert stop(partition) == (2, None)


def test_a_length_beyond_an_older_segment_stops_no_consumer(partition: Path) -> None:
    # A broker takes it for the end of the segment, and goes on with the next.
    overwrite(partition / log_name(0), BATCH + 8, b"\x7f\xff\xff\xf0")
    faults, stopped = stop(partition)
    assert (faults, stopped) == (1, None)


def test_oddities_of_offsets_stop_no_consumer(partition: Path) -> None:
    # As the copy offsets-go-back shows.
    overwrite(partition / log_name(0), BATCH, (0).to_bytes(8, "big"))
    assert stop(partition) == (1, None)


def test_records_are_handed_out_up_to_the_one_that_is_malformed(tmp_path: Path) -> None:
    # T13: the count says one more than there are, or one less.
    for count, stopped in ((4, 3), (2, 1)):
        data = bytearray(batch(0))
        data[57:61] = count.to_bytes(4, "big")
        path = write_log(tmp_path / str(count), "orders-0", {0: [with_checksum(bytes(data))]})
        assert stop(path) == (1, stopped), count


def test_what_lies_below_the_log_start_is_not_served(partition: Path) -> None:
    # F95.
    overwrite(partition / log_name(0), BATCH + 70, b"\xff")
    assert stop(partition, log_start_offset=9) == (0, None)
    assert stop(partition, log_start_offset=7) == (0, None)
    assert stop(partition, log_start_offset=4) == (1, 4)


def test_little_of_a_batch_of_any_size_is_in_memory(
    partition: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A sparse file whose last batch has 2 GiB by its length took 6 GiB.
    size = MAX_BATCH_BYTES + 1
    overwrite(partition / log_name(9), 2 * BATCH + 8, (size - 12).to_bytes(4, "big"))
    os.truncate(partition / log_name(9), 2 * BATCH + size)
    sizes = []
    read = InputFile.read

    def noted(file: InputFile, position: int, size: int) -> bytes:
        sizes.append(size)
        return read(file, position, size)

    monkeypatch.setattr(InputFile, "read", noted)
    assert stop(partition) == (1, 15)
    assert 0 < max(sizes) < 2**24


def test_a_record_with_more_headers_than_are_read_stops_no_consumer(tmp_path: Path) -> None:
    # Behind a damaged batch below the log start it ended with a traceback.
    damaged = batch(0, 2)[:-1] + b"\xff"
    headers = compressed(hostile_record(0, headers=MOST_HEADERS + 1))
    many = (2).to_bytes(8, "big") + hostile_batch(headers, 1)[8:]
    path = write_log(tmp_path / "logs", "orders-0", {0: [damaged, many, batch(3)]})
    assert stop(path, log_start_offset=2) == (2, None)


def test_of_a_log_that_no_broker_starts_with_nothing_is_served(partition: Path) -> None:
    (partition / "leader-epoch-checkpoint").write_text("nonsense")
    assert stop(partition) == (None, None)


def test_what_a_broker_cuts_off_does_not_stay(partition: Path) -> None:
    overwrite(partition / log_name(0), BATCH + 70, b"\xff")
    (log,) = find_partitions([str(partition.parent)])
    row = recovery_row(log, UNCLEAN)
    assert (row["remaining_faults"], row["consumers_stop_at"]) == (0, None)


def test_gaps_of_compaction_are_not_a_fault(tmp_path: Path) -> None:
    batches = [write_batch([record(offset)], BatchFields()) for offset in (0, 5, 9)]
    assert stop(write_log(tmp_path / "logs", "orders-0", {0: batches})) == (0, None)
