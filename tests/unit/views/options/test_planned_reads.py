"""From options to rows without a session: listing, planning and the reading of each segment.

Rules: F94 to F98, T31, T32.
"""

import logging
import shutil
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from kafkalog.errors import CorruptDataError, DataLossError, LogDirError, OptionError
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from kafkalog.storage.reading.read_plan import SegmentRead
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.planning import planned_groups
from kafkalog.views.reading.reading import read_segment
from tests.support.logs.log_dirs import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    UNIQUE,
    add_partition,
    checkpoint_text,
    log_name,
)
from tests.support.repository import Unpack

ORDERS = ("orders", 0)
# Two segments, ten records to a batch; the record at offset n has timestamp 1000 + n.
BASE_OFFSETS = (0, 30)
END = 50


def batches(first: int, end: int) -> list[bytes]:
    return [
        write_batch(
            [
                Record(offset, 1000 + offset, 0, b"key", str(offset).encode())
                for offset in range(start, start + 10)
            ]
        )
        for start in range(first, end, 10)
    ]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A log directory with orders-0."""
    partition = add_partition(tmp_path, "orders-0", *BASE_OFFSETS)
    (partition / log_name(0)).write_bytes(b"".join(batches(0, 30)))
    (partition / log_name(30)).write_bytes(b"".join(batches(30, END)))
    return tmp_path


def planned(path: Path, **given: str) -> list[SegmentRead]:
    options = read_options({"path": str(path), **given})
    return [r for group in planned_groups(options) for r in group if isinstance(r, SegmentRead)]


def rows(reads: list[SegmentRead], *columns: str, **given: str) -> list[tuple[Any, ...]]:
    options = read_options({"path": "as planned", **given})
    return [
        tuple(row.values())
        for read in reads
        for batch in read_segment(read, options, columns)
        for row in batch.to_pylist()
    ]


def offsets(path: Path, **given: str) -> list[int]:
    """The offsets of the records that a read with these options gives."""
    return [offset for (offset,) in rows(planned(path, **given), "offset", **given)]


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings so far; what a read costs is logged as information."""
    return [line.getMessage() for line in caplog.records if line.levelno >= logging.WARNING]


def test_everything_is_read_by_default(data: Path) -> None:
    # F96.
    assert offsets(data) == list(range(END))


def test_records_below_the_log_start_are_not_rows_though_their_batch_is_there(data: Path) -> None:
    # F95, T31.
    (data / LOG_STARTS).write_text(checkpoint_text({ORDERS: 15}))
    assert offsets(data) == list(range(15, END))


@pytest.mark.parametrize(
    ("stop_at", "clean", "end"),
    [("highWatermark", True, 42), ("highWatermark", False, END), ("logEnd", True, END)],
)
def test_a_read_stops_at_the_high_watermark_where_that_is_asked_and_known(
    stop_at: str, clean: bool, end: int, data: Path
) -> None:
    # F83, F97.
    (data / HIGH_WATERMARKS).write_text(checkpoint_text({ORDERS: 42}))
    if clean:
        (data / ".kafka_cleanshutdown").touch()
    assert offsets(data, stopAt=stop_at) == list(range(end))


@pytest.mark.parametrize(("clean", "told"), [(True, []), (False, ["orders-0"])])
def test_a_log_read_beyond_an_unknown_high_watermark_is_reported(
    clean: bool, told: list[str], data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # F97.
    (data / HIGH_WATERMARKS).write_text(checkpoint_text({ORDERS: 42}))
    if clean:
        (data / ".kafka_cleanshutdown").touch()
    planned(data, stopAt="highWatermark")
    assert [line.rpartition(": ")[2] for line in warned(caplog)] == told


def test_a_high_watermark_is_capped_by_the_log_end(data: Path) -> None:
    # F97.
    (data / HIGH_WATERMARKS).write_text(checkpoint_text({ORDERS: 60}))
    (data / ".kafka_cleanshutdown").touch()
    asked = {"stopAt": "highWatermark", "mode": "PERMISSIVE"}
    assert offsets(data, **asked) == list(range(END))


@pytest.mark.parametrize("checkpoint", [HIGH_WATERMARKS, "recovery-point-offset-checkpoint"])
def test_an_end_that_was_there_at_a_clean_stop_is_missed(data: Path, checkpoint: str) -> None:
    # F76: nothing is damaged in what is left.
    (data / checkpoint).write_text(checkpoint_text({ORDERS: END + 2}))
    assert offsets(data) == list(range(END))  # the copy of a running broker
    (data / ".kafka_cleanshutdown").touch()
    with pytest.raises(CorruptDataError, match=f"missing_end: offsets {END} to {END + 1} "):
        offsets(data)
    assert offsets(data, mode="PERMISSIVE") == list(range(END))
    asked = f'{{"orders":{{"0":{END - 1}}}}}'
    assert offsets(data, endingOffsets=asked) == list(range(END - 1))


def test_an_emptied_last_segment_is_missed_by_its_index(data: Path) -> None:
    # F76: an entry of an .index is a relative offset and a position.
    last = data / "orders-0" / log_name(30)
    last.write_bytes(b"")
    last.with_suffix(".index").write_bytes(pack(">ii", 19, 5000))
    assert offsets(data) == list(range(30))  # a killed broker may have cut it back itself
    (data / ".kafka_cleanshutdown").touch()
    said = f"missing_end: offsets 30 to {END - 1} are missing: the indexes or "
    with pytest.raises(CorruptDataError, match=said):
        offsets(data)
    assert offsets(data, endingOffsets='{"orders":{"0":30}}') == list(range(30))


@pytest.mark.parametrize("replicas", ["best", "all"])
def test_a_log_without_a_segment_is_missed_whole(
    replicas: str, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # F76: an active segment is there as long as a broker has the partition.
    (data / HIGH_WATERMARKS).write_text(checkpoint_text({ORDERS: END}))
    for segment in (data / "orders-0").glob("*.log"):
        segment.unlink()
    # F922: what is left beside it shows that it had records.
    with pytest.raises(CorruptDataError, match=f"missing_end: offsets 0 to {END - 1} "):
        offsets(data, replicas=replicas)
    for beside in (data / "orders-0").glob("0*"):
        beside.unlink()
    assert offsets(data, replicas=replicas) == []  # the copy of a running broker
    (data / ".kafka_cleanshutdown").touch()
    with pytest.raises(CorruptDataError, match=f"missing_end: offsets 0 to {END - 1} "):
        offsets(data, replicas=replicas)
    asked = '{"orders":{"0":0}}'
    assert offsets(data, replicas=replicas, endingOffsets=asked) == []
    caplog.clear()
    assert offsets(data, replicas=replicas, mode="PERMISSIVE") == []
    assert "missing_end" in "".join(warned(caplog))


def test_no_end_is_missed_where_checkpoints_tell_less(data: Path) -> None:
    # F76: the high watermark is behind what a leader has.
    (data / HIGH_WATERMARKS).write_text(checkpoint_text({ORDERS: END - 5}))
    (data / ".kafka_cleanshutdown").touch()
    assert offsets(data) == list(range(END))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": '{"orders":{"0":17}}'}, range(17, END)),
        ({"endingOffsets": '{"orders":{"0":33}}'}, range(33)),
        ({"endingOffsets": '{"orders":{"0":50}}'}, range(END)),
        ({"startingOffsets": '{"orders":{"0":50}}'}, range(0)),
        ({"startingTimestamp": "1017"}, range(17, END)),
        ({"endingTimestamp": "1033"}, range(33)),
        ({"endingTimestamp": "2000"}, range(END)),
        ({"startingOffsetsByTimestamp": '{"orders":{"0":1031}}'}, range(31, END)),
        ({"startingTimestamp": "1017", "endingOffsets": '{"orders":{"0":31}}'}, range(17, 31)),
        ({"startingOffsets": '{"orders":{"0":-2}}', "endingTimestamp": "0"}, range(0)),
    ],
)
def test_a_read_begins_and_ends_where_the_options_say(
    options: dict[str, str], expected: range, data: Path
) -> None:
    assert offsets(data, **options) == list(expected)


BEYOND = [
    {"startingOffsets": '{"orders":{"0":51}}'},
    {"endingOffsets": '{"orders":{"0":51}}'},
    {"startingOffsets": '{"orders":{"0":51}}', "endingOffsets": '{"orders":{"0":60}}'},
]


@pytest.mark.parametrize("options", BEYOND)
def test_an_offset_beyond_the_log_is_an_error_naming_the_valid_range(
    options: dict[str, str], data: Path
) -> None:
    # F98.
    with pytest.raises(DataLossError, match="orders-0 is not in the log, which holds 0 up to 50"):
        offsets(data, **options)


@pytest.mark.parametrize(("options", "count"), [*zip(BEYOND, (0, END, 0), strict=True)])
def test_an_offset_beyond_the_log_is_clamped_and_logged_where_that_is_asked(
    options: dict[str, str], count: int, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # F98.
    assert offsets(data, **options, failOnDataLoss="false") == list(range(count))
    (line,) = warned(caplog)
    assert "orders-0 is not in the log, which holds 0 up to 50" in line


def test_a_log_ends_behind_its_last_sound_batch(data: Path) -> None:
    # F96, F98: a broker that stopped while writing leaves a part of a batch.
    path = data / "orders-0" / log_name(30)
    path.write_bytes(path.read_bytes()[:-1])
    assert offsets(data) == list(range(40))
    with pytest.raises(DataLossError, match="holds 0 up to 40"):
        offsets(data, endingOffsets='{"orders":{"0":50}}')


def test_an_empty_range_beyond_the_log_is_an_error(data: Path) -> None:
    # F98.
    there = '{"orders":{"0":60}}'
    with pytest.raises(DataLossError):
        offsets(data, startingOffsets=there, endingOffsets=there)


@pytest.mark.parametrize("view", ["batches", "byte_ranges", "faults"])
def test_an_offset_beyond_the_log_is_an_error_in_every_view(view: str, data: Path) -> None:
    # F98.
    options = {"view": view, **BEYOND[0]}
    with pytest.raises(DataLossError):
        rows(planned(data, **options), "position", **options)


@pytest.mark.parametrize("option", ["startingOffsets", "endingOffsets"])
def test_an_offset_beyond_64_bits_is_an_error_naming_the_option(option: str, data: Path) -> None:
    with pytest.raises(OptionError, match=option):
        offsets(data, **{option: '{"orders":{"0":9223372036854775808}}'})


@pytest.mark.parametrize(
    "options",
    [{"startingTimestamp": "2000"}, {"startingOffsetsByTimestamp": '{"orders":{"0":2000}}'}],
)
def test_no_record_as_late_as_the_start_gives_none_where_that_is_asked(
    options: dict[str, str], data: Path
) -> None:
    assert offsets(data, **options, startingOffsetsByTimestampStrategy="latest") == []


def test_the_account_of_bytes_checks_what_is_below_the_log_start(data: Path) -> None:
    # F62, F95: every byte is in one range, and none is valid unseen.
    path = data / "orders-0" / log_name(0)
    damaged = bytearray(path.read_bytes())
    damaged[70] ^= 1
    path.write_bytes(bytes(damaged))
    (data / LOG_STARTS).write_text(checkpoint_text({ORDERS: 15}))
    reads = planned(data, view="byte_ranges")
    account = rows(reads, "position", "kind", view="byte_ranges")
    assert account[:2] == [(0, "checksum"), (len(batches(0, 10)[0]), None)]


def test_the_account_of_bytes_has_every_segment(data: Path) -> None:
    # F62, F95.
    (data / LOG_STARTS).write_text(checkpoint_text({ORDERS: 35}))
    reads = planned(data, view="byte_ranges")
    assert [read.base_offset for read in reads] == list(BASE_OFFSETS)


def test_a_deleted_segment_is_undeleted_by_its_path(data: Path) -> None:
    # F92, F95, T32: records up to 35 were deleted by kafka-delete-records.
    path = data / "orders-0" / log_name(0)
    deleted = path.rename(path.with_name(f"{path.name}.deleted"))
    (data / LOG_STARTS).write_text(checkpoint_text({ORDERS: 35}))
    assert offsets(deleted) == list(range(30))


def test_offsets_must_name_every_partition_that_is_read(data: Path) -> None:
    add_partition(data, "orders-1", 0)
    with pytest.raises(OptionError) as caught:
        planned(data, startingOffsets='{"orders":{"0":5}}')
    assert (caught.value.name, caught.value.value) == ("startingOffsets", "orders-0")
    assert "orders-0, orders-1" in str(caught.value)


def test_offsets_need_not_name_partitions_that_are_not_read(data: Path) -> None:
    add_partition(data, "users-0", 0)
    options = {"subscribe": "orders", "startingOffsets": '{"orders":{"0":45}}'}
    assert offsets(data, **options) == list(range(45, END))


def test_options_without_effect_are_one_line_in_the_log_without_their_values(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    planned(data, **{"kafka.sasl.jaas.config": "password", "maxTriggerDelay": "1m"})
    (line,) = warned(caplog)
    assert line == "options without effect here: kafka.sasl.jaas.config, maxTriggerDelay"


def test_topics_are_chosen_before_anything_is_read(data: Path) -> None:
    # F93.
    add_partition(data, "__consumer_offsets-0", 0)
    add_partition(data, "users-0", 0)
    assert [read.topic for read in planned(data)] == ["orders", "orders", "users"]
    assert [read.topic for read in planned(data, subscribe="users")] == ["users"]


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_a_bad_checkpoint_stops_only_a_read_that_stops_at_damage(mode: str, data: Path) -> None:
    # F80.
    (data / LOG_STARTS).write_text("garbage")
    with pytest.raises(LogDirError, match=LOG_STARTS):
        planned(data)
    assert offsets(data, mode=mode) == list(range(END))


def test_a_file_marked_as_deleted_after_planning_is_read_under_its_new_name(data: Path) -> None:
    # F94, T32.
    reads = planned(data)
    path = data / "orders-0" / log_name(0)
    moved = path.rename(path.with_name(f"{path.name}.deleted"))
    found = rows(reads, "offset", "file")
    expected = [(offset, str(moved)) for offset in range(30)]
    assert found[:30] == expected
    assert [offset for offset, _ in found[30:]] == list(range(30, END))


def test_a_partition_deleted_after_planning_is_read_under_its_new_name(data: Path) -> None:
    # F94, T32.
    reads = planned(data)
    (data / "orders-0").rename(data / f"orders-0.{UNIQUE}-delete")
    assert [offset for (offset,) in rows(reads, "offset")] == list(range(END))


def test_a_file_gone_after_planning_is_an_error_naming_it(data: Path) -> None:
    # F94, F98.
    reads = planned(data)
    shutil.rmtree(data / "orders-0")
    with pytest.raises(DataLossError) as caught:
        rows(reads, "offset")
    assert str(data / "orders-0" / log_name(0)) in str(caught.value)
    assert "failOnDataLoss=false" in str(caught.value)


def test_a_file_gone_after_planning_is_logged_where_that_is_asked(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # F94, F98.
    reads = planned(data)
    (data / "orders-0" / log_name(0)).unlink()
    found = rows(reads, "offset", failOnDataLoss="false")
    assert [offset for (offset,) in found] == list(range(30, END))
    (line,) = warned(caplog)
    assert str(data / "orders-0" / log_name(0)) in line


def test_what_lies_in_tiered_storage_is_reported(
    unpacked: Unpack, caplog: pytest.LogCaptureFixture
) -> None:
    # As kafka-get-offsets answered: --time earliest 0, --time earliest-local what follows.
    log_dir = unpacked("tiered43.logs") / "log-dirs"
    told = [
        f"{name} is read from offset {offset} on: those from 0 are in tiered storage only"
        for name, offset in (("tier.tiered-0", 331), ("tier.tiered-1", 508))
    ]
    planned(log_dir, subscribe="tier.tiered,tier.local")
    assert warned(caplog) == told
    caplog.clear()
    asked = '{"tier.tiered":{"0":331,"1":508}}'
    planned(log_dir, subscribe="tier.tiered", startingOffsets=asked)
    assert not warned(caplog)
